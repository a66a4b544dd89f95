// Package pool holds one queue's worker processes and the jobs that wait for them. It alone decides how many processes
// there are and which process gets a job.
//
//	intake --Offer--> buffer --> the busiest process with a free slot --> Ender
//
// A pool never fails a job: what it cannot run it ends as Returned, and intake puts it back. It never kills for a task; the
// worker package does that and reports. How many processes there should be is a pure function (decide.go) of the load.
// A program that cannot be started opens the circuit: nothing is taken from the queue until a start succeeds, unless there are
// processes of earlier starts.
//
// A job that was in a process with others when that crashed comes back as a suspect: it gets a process for itself, so that it is
// known whose fault it is.
//
// Run(ctx) works until ctx ends, then lets running jobs finish within drain_timeout, interrupts what is left, and returns
// when every process is gone.
package pool
