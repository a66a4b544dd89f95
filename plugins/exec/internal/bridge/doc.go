// Package bridge is what the program exec does with a task: it hands it to a program that knows no gRPC, and brings back what
// that says.
//
// It owns the command line, the options, the programs' lives and the meaning of what they say. It does not own the form of
// the lines (package line) nor the processes (package child). A task is run in one of two ways:
//
//	persistent  the program serves one task after the other over lines of JSON. There is one child for each slot, so that a
//	            child that has to be killed takes no other task with it, and so that a program needs no concurrency of its own.
//	once        the program is started for each task: payload in, result out, exit code.
//
//	persistent child:  started --ready--> idle --task--> busy --result, error--> idle --drain, end of input--> ended
//	                                                      |--cancel--> answer in time: idle
//	                                                      |            none: SIGTERM, then SIGKILL: ended
//	                                                      '--death--> the task has crashed; the next task gets a new child
//
// A child's death is a fault of kind crash, reported for its task alone, and not the end of the worker process. The guilty
// task is known here: ending the process would make suspects of the tasks in the other slots. So a crash spends one of
// the queue's max_failures and carries the exit code or signal and the last lines of standard error; what a manager calls a
// kill stays the death of the whole worker, such as by memory_max, which counts all children.
//
// Program is called by main and by tests. Its children and goroutines end with the worker's Close.
package bridge
