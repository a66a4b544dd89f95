// Package sdk turns a Go function into a worker of Drover: a program that a manager starts, feeds with tasks and holds to
// its limits. A whole worker is
//
//	func main() {
//		sdk.Serve(sdk.Worker{Name: "greet", Version: "1.0.0"}, greet)
//	}
//
//	func greet(ctx context.Context, in struct{ Name string `json:"name"` }) (string, error) {
//		return "hello " + in.Name, nil
//	}
//
// The package owns the process: the handshake with the manager, the one Work stream, what runs in it, and its end. It does
// not own the task: whether it is tried again, when, and what its failures cost is the manager's to decide; a worker says
// what went wrong with an ordinary error, with Permanent and RetryAfter, or with a fault.Fault.
//
// # The life of a worker process
//
//	started --Describe--> --Configure--> ready --Work stream--> working --drain--> draining --last outcome--> ended
//
//	drain: the manager's Drain, the end of its half of the stream, or SIGTERM. Tasks that run finish; tasks that have not
//	       begun, and those that still come, are handed back as Interrupted; one that crosses with the end of the stream
//	       gets no answer, and has not begun either. Exit code 0.
//	panic: of a handler. It is reported as a Panic fault, then the process drains, since nobody knows what the panic left
//	       behind; what runs longer than a short bound is cancelled and handed back. Exit code 2.
//	loss:  the stream breaks. Nothing can be reported any more; runs are cancelled. Exit code 1.
//	       The lifeline ends: the manager is gone. The process exits at once.
//
// Inside, one goroutine reads instructions, one writes reports, and each running task has its own; see outbox for how
// reports share messages. Every one of them has ended when Serve or ServeOn returns, except a handler that ignores the end
// of its context: the exit of the process is what ends that.
//
// A program's standard output and error stay its author's. The first line of the real standard output belongs to the
// handshake, so once Serve has been called both lead to standard error, which the manager collects. A program must not
// print to standard output before it calls Serve.
package sdk
