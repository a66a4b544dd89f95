// Package child starts and ends the programs that plugins/exec runs.
//
// It owns the processes: one thread that starts them all, their standard streams, the last lines of their standard error,
// their signals, and what they leave behind. It does not own what is said on the streams, nor when a process is to end.
//
// A child stays in the process group of the worker, so that a manager that kills the worker's group kills it too. On Linux
// the kernel kills it when the worker goes in any other way; the signal for that comes when the *thread* that started the
// child ends, hence the one thread. Every child has a mark of its own in its environment, and when it has ended, whatever
// still bears that mark is killed: a shell's pipeline, a browser, a forgotten background job. (The mark rather than the tree
// of parents: what a dead process leaves has lost its parent.) Elsewhere than on Linux that is left to the manager.
//
// Run of a Launcher lasts until its context ends and its children are collected; each child has two goroutines, which end
// with it.
package child
