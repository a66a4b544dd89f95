// Package worker starts, feeds and ends worker processes. It alone does so.
//
// A Launcher owns the thread that all processes are started from and the directory of their sockets. Start brings one
// process up: fork, go-plugin's handshake, Describe, Configure, the Work stream. A Process then takes jobs, tells its Sink
// what became of each, and tells it exactly once how the process itself ended, with the jobs that were left.
//
//	starting -> ready -> draining -> ended
//	    \________\__________\_______-> ended        (crash, kill, lost stream)
//
// Nothing that a worker starts outlives it: its group is killed with it, then what left the group, by package reaper. A program that
// is to start something lasting has to ask another, such as the system's service manager.
//
// It owns no decision about how many processes there are or what becomes of a task: the pool and the controller do that.
// A process that is told to go and does not is killed; so is one whose stream is lost. Every wait in here has an end.
// waitpid is the only truth about a process's end; a broken stream gets the process killed, not forgotten.
package worker
