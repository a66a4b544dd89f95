package conform

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/protocol/fault"
)

// muchOutput is what a task has to write, in bytes.
const muchOutput = 1 << 20

// writesMuch runs the noisy task.
func writesMuch(ctx context.Context, k *kit) verdict {
	if k.Noisy == nil {
		return skip("no task is known that writes much (on the command line: --noisy JSON)")
	}
	return k.with(ctx, func(t *trial) verdict {
		p, ok := t.process()
		if !ok {
			return skip("it runs inside this process")
		}
		before := p.Written()
		run := t.Begin(k.task(k.Noisy))
		if !within(ctx, k.TaskTimeout, run.Ended()) {
			return fail(fmt.Sprintf("the task has no outcome after %s; %d bytes of output came", rounded(k.TaskTimeout), p.Written()-before),
				"write to the real standard streams, which a manager always reads; a pipe of your own needs a reader")
		}
		result, err := run.Wait()
		if v, bad := k.unsound(k.Noisy, result, err); bad && v.state == Fail {
			return v
		}
		if wrote := p.Written() - before; wrote < muchOutput {
			return skip(fmt.Sprintf("the task ended, and %d bytes of its output came here; %d are needed to see something (with exec, on standard error)", wrote, muchOutput))
		}
		return pass(fmt.Sprintf("%d bytes came, and the task ended with %s", p.Written()-before, orResult(err)))
	})
}

// reportsPanic runs the task that panics.
func reportsPanic(ctx context.Context, k *kit) verdict {
	if k.Panic == nil {
		return skip("no task is known that panics (on the command line: --panic JSON)")
	}
	return k.with(ctx, func(t *trial) verdict {
		run := t.Begin(k.task(k.Panic))
		if !within(ctx, k.TaskTimeout, run.Ended()) {
			return fail(fmt.Sprintf("the task has no outcome after %s%s", rounded(k.TaskTimeout), t.wrote()), "report the panic as the task's fault")
		}
		var f *fault.Fault
		_, err := run.Wait()
		if !errors.As(err, &f) || f.Kind != fault.Panic && f.Kind != fault.Crash {
			return fail("got "+orResult(err)+t.wrote(), fmt.Sprintf("report a fault of kind %s, or %s, with the stack", fault.Panic, fault.Crash))
		}
		if f.Kind == fault.Crash {
			return k.goesOn(ctx, t, "reported: "+cut(f.Error(), muchText)+"; the next task ran")
		}
		if !within(ctx, k.EndTimeout, t.Exited()) {
			return fail("the process lives on after a panic", "end the process: nobody knows what the panic left behind")
		}
		if code, _ := t.Exit(); code == 0 {
			return fail("the process ended with exit code 0 after a panic", "end it with another exit code")
		}
		return pass("reported: " + cut(f.Error(), muchText) + "; then the process ended")
	})
}

const muchText = 300

// drains drains a worker that runs a task.
func drains(ctx context.Context, k *kit) verdict {
	return k.with(ctx, func(t *trial) verdict {
		payload := k.Payloads[0]
		run := t.Begin(k.task(payload))
		if !within(ctx, k.TaskTimeout, run.Begun()) {
			return fail("the task did not begin within "+rounded(k.TaskTimeout), "say Accepted when a task begins")
		}
		t.Drain()
		if !within(ctx, k.TaskTimeout, run.Ended()) {
			return fail(fmt.Sprintf("the task that ran has no outcome after %s%s", rounded(k.TaskTimeout), t.wrote()), "finish what runs")
		}
		result, err := run.Wait()
		if v, bad := k.unsound(payload, result, err); bad && v.state == Fail {
			return v
		}
		var f *fault.Fault
		if errors.As(err, &f) && f.Kind == fault.Interrupted {
			return fail("the task that ran was handed back: "+f.Message, "finish what has begun")
		}
		return k.endsWell(ctx, t, "after its last task", "leave when the last task has ended: a manager kills a worker that stays")
	})
}

// endsWell waits for an end with exit code 0.
func (k *kit) endsWell(ctx context.Context, t *trial, when, advice string) verdict {
	begun := time.Now()
	if !within(ctx, k.EndTimeout, t.Exited()) {
		return fail(fmt.Sprintf("it still lived %s %s%s", rounded(k.EndTimeout), when, t.wrote()), advice)
	}
	took := time.Since(begun)
	if code, err := t.Exit(); code != 0 || err != nil {
		how := fmt.Sprintf("it ended with exit code %d", code)
		if err != nil && code < 0 {
			how = err.Error()
		} else if err != nil {
			how += " (" + err.Error() + ")"
		}
		return fail(how+t.wrote(), "end with exit code 0: any other counts as a crash")
	}
	return pass(fmt.Sprintf("ended with exit code 0, %s %s", rounded(took), when))
}

// heedsTerm sends SIGTERM to an idle worker.
func heedsTerm(ctx context.Context, k *kit) verdict {
	return k.with(ctx, func(t *trial) verdict {
		p, ok := t.process()
		if !ok {
			return skip("it runs inside this process")
		}
		if v := k.goesOn(ctx, t, ""); v.state != Pass { // it has certainly opened its stream by then
			return v
		}
		if err := p.Terminate(); err != nil {
			return fail("it could not be sent SIGTERM: "+err.Error()+t.wrote(), "live on after a task")
		}
		return k.endsWell(ctx, t, "after the signal", "take SIGTERM as a drain: finish what runs and leave")
	})
}

// heedsLifeline lets the manager die.
func heedsLifeline(ctx context.Context, k *kit) verdict {
	return k.with(ctx, func(t *trial) verdict {
		p, ok := t.process()
		if !ok {
			return skip("it runs inside this process")
		}
		if k.Slow == nil {
			if v := k.goesOn(ctx, t, ""); v.state != Pass {
				return v
			}
		} else if run := t.Begin(k.task(k.Slow)); !within(ctx, k.TaskTimeout, run.Begun()) {
			return fail("the slow task did not begin within "+rounded(k.TaskTimeout), "say Accepted when a task begins")
		}
		begun := time.Now()
		p.CutLifeline()
		const advice = "read the file descriptor in DROVER_LIFELINE_FD until its end and exit then, with all that you started; sdk.Serve and exec do"
		if !within(ctx, lifelineBound, t.Exited()) {
			return fail(fmt.Sprintf("it still lived %s after its manager was gone", rounded(lifelineBound)), advice)
		}
		took := time.Since(begun)
		const pause = 20 * time.Millisecond
		for p.LeavesBehind() {
			if time.Since(begun) > lifelineBound || within(ctx, pause, nil) || ctx.Err() != nil {
				return fail("what it had started still lived "+rounded(time.Since(begun))+" after its manager was gone", advice)
			}
		}
		return pass("gone after " + rounded(took))
	})
}
