package conform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-jobs/drover/plugins/sdk/sdktest/session"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/fault"
)

// runsTask runs each payload to its end.
func runsTask(ctx context.Context, k *kit) verdict {
	return k.with(ctx, func(t *trial) verdict {
		var seen []string
		for _, payload := range k.Payloads {
			begun := time.Now()
			run := t.Begin(k.task(payload))
			if !within(ctx, k.TaskTimeout, run.Ended()) {
				k.hopeless = "its tasks do not end" // each of the other checks would wait as long
				return fail(fmt.Sprintf("payload %s has no outcome after %s%s", shown(payload), rounded(k.TaskTimeout), t.wrote()),
					"end the task, or allow it more time (on the command line: --timeout)")
			}
			result, err := run.Wait()
			k.progress = append(k.progress, run.Progress()...)
			if v, bad := k.unsound(payload, result, err); bad {
				v.seen += t.wrote()
				return v
			}
			said := "result " + shown(result)
			if err != nil {
				said = "fault " + err.Error()
			}
			k.worked = k.worked || err == nil
			seen = append(seen, fmt.Sprintf("%s: %s after %s", shown(payload), said, rounded(time.Since(begun))))
		}
		return pass(strings.Join(seen, "; "))
	})
}

// unsound judges an outcome that no worker may have for a payload that it accepts.
func (k *kit) unsound(payload, result json.RawMessage, err error) (verdict, bool) {
	var f *fault.Fault
	switch {
	case err == nil && !json.Valid(result):
		return fail(fmt.Sprintf("payload %s: the result %s is not JSON", shown(payload), shown(result)), "send a result that is JSON"), true
	case err == nil:
		return verdict{}, false
	case !errors.As(err, &f):
		return fail(fmt.Sprintf("payload %s: the worker went without an outcome: %v", shown(payload), err), "give each task an outcome before the process ends"), true
	case f.Kind == fault.InvalidPayload && k.derived:
		return skip(fmt.Sprintf("the payload %s, made from the schema, is refused: %v; give one that it accepts (on the command line: --payload JSON)", shown(payload), f)), true
	case f.Kind == fault.InvalidPayload:
		return fail(fmt.Sprintf("payload %s: %v", shown(payload), f), "give it a payload that it accepts, or let its schema say what it does not"), true
	case f.Kind == fault.Panic || f.Kind == fault.Crash || f.Kind == fault.Protocol:
		return fail(strings.TrimSpace(fmt.Sprintf("payload %s: %v\n%s", shown(payload), f, f.Detail)), "correct the worker: this is no way for a task to end"), true
	}
	return verdict{}, false
}

// refusesPayloads gives the worker what a manager never would.
func refusesPayloads(ctx context.Context, k *kit) verdict {
	broken := breaking(k.schema, k.Payloads[0])
	return k.with(ctx, func(t *trial) verdict {
		for _, payload := range []string{`[]`, `null`, `"x"`, `{`, ``} {
			run := t.Begin(k.task(json.RawMessage(payload)))
			if !within(ctx, k.TaskTimeout, run.Ended()) {
				return fail(fmt.Sprintf("payload %q has no outcome after %s%s", payload, rounded(k.TaskTimeout), t.wrote()), "refuse what is not an object")
			}
			var f *fault.Fault
			if _, err := run.Wait(); !errors.As(err, &f) || f.Kind != fault.InvalidPayload || !f.Permanent {
				return fail(fmt.Sprintf("payload %q: got %v", payload, orResult(err)), "end it with a permanent fault of kind "+fault.InvalidPayload.String())
			}
		}
		if len(broken) == 0 {
			return pass("its schema accepts every object; what is none is refused for good")
		}
		for _, payload := range broken {
			run := t.Begin(k.task(payload))
			if !within(ctx, k.TaskTimeout, run.Ended()) {
				return fail(fmt.Sprintf("payload %s, which the schema refuses, has no outcome after %s%s", shown(payload), rounded(k.TaskTimeout), t.wrote()), "refuse it")
			}
			var f *fault.Fault
			_, err := run.Wait()
			if err != nil && !errors.As(err, &f) || f != nil && (f.Kind == fault.Panic || f.Kind == fault.Crash) {
				return fail(fmt.Sprintf("payload %s, which the schema refuses: %v%s", shown(payload), err, t.wrote()), "refuse it, or make do with it, but live on")
			}
		}
		return pass(fmt.Sprintf("%d payloads that do not fit are refused by the schema; the worker survives them all", len(broken)))
	})
}

func orResult(err error) string {
	if err == nil {
		return "a result"
	}
	return err.Error()
}

// ignoresUnknown says what a newer manager might, and what none would.
func ignoresUnknown(ctx context.Context, k *kit) verdict {
	return k.with(ctx, func(t *trial) verdict {
		const nobody = 1 << 40
		t.Send(unknownInstruction(), &workerv1.Instruction{},
			&workerv1.Instruction{Kind: &workerv1.Instruction_Cancel{Cancel: &workerv1.Cancel{Run: nobody, Reason: "cancelled"}}})
		foreign := k.task(k.Payloads[0])
		foreign.Kind = "drover-plugin-test-unknown"
		run := t.Begin(foreign)
		if !within(ctx, k.TaskTimeout, run.Ended()) {
			return fail("a task of a kind that it does not run has no outcome after "+rounded(k.TaskTimeout), "end it with a permanent fault of kind "+fault.UnknownKind.String())
		}
		var f *fault.Fault
		if _, err := run.Wait(); !errors.As(err, &f) || f.Kind != fault.UnknownKind || !f.Permanent {
			return fail("a task of a kind that it does not run: got "+orResult(err), "end it with a permanent fault of kind "+fault.UnknownKind.String())
		}
		return k.goesOn(ctx, t, "unknown instructions are ignored, a task of another kind is refused for good")
	})
}

// goesOn runs one task more.
func (k *kit) goesOn(ctx context.Context, t *trial, seen string) verdict {
	run := t.Begin(k.task(k.Payloads[0]))
	if !within(ctx, k.TaskTimeout, run.Ended()) {
		return fail(fmt.Sprintf("the next task has no outcome after %s%s", rounded(k.TaskTimeout), t.wrote()), "take the next task after that")
	}
	result, err := run.Wait()
	if v, bad := k.unsound(k.Payloads[0], result, err); bad && v.state == Fail {
		v.seen = "the next task: " + v.seen + t.wrote()
		return v
	}
	return pass(seen)
}

// reportsProgress judges what the tasks before have reported.
func reportsProgress(ctx context.Context, k *kit) verdict {
	if len(k.progress) == 0 && k.Slow != nil {
		if v, ok := k.awaitProgress(ctx); !ok {
			return v
		}
	}
	if len(k.progress) == 0 {
		return skip("no task reported any")
	}
	for i, p := range k.progress {
		if p.Total > 0 && p.Done > p.Total {
			return fail(fmt.Sprintf("%d of %d", p.Done, p.Total), "report no more than the total, or 0 as the total when it is not known")
		}
		if i > 0 && len(k.Payloads) == 1 && p.Done < k.progress[i-1].Done {
			return fail(fmt.Sprintf("%d after %d", p.Done, k.progress[i-1].Done), "report what has been done so far")
		}
	}
	last := k.progress[len(k.progress)-1]
	return pass(fmt.Sprintf("%d of %d at last (reports: %d)", last.Done, last.Total, len(k.progress)))
}

// awaitProgress runs the slow task until it has reported something or for a moment.
func (k *kit) awaitProgress(ctx context.Context) (verdict, bool) {
	v := k.with(ctx, func(t *trial) verdict {
		const moment, pause = 3 * time.Second, 20 * time.Millisecond
		run := t.Begin(k.task(k.Slow))
		for begun := time.Now(); len(run.Progress()) == 0 && time.Since(begun) < moment; {
			if within(ctx, pause, run.Ended()) || ctx.Err() != nil {
				break
			}
		}
		k.progress = run.Progress()
		return pass("")
	})
	return v, v.state == Pass
}

// heedsCancel cancels a task.
func heedsCancel(ctx context.Context, k *kit) verdict {
	grace := k.grace()
	return k.with(ctx, func(t *trial) verdict {
		payload := k.slow()
		run := t.Begin(k.task(payload))
		if !within(ctx, k.TaskTimeout, run.Begun()) {
			return fail("the task did not begin within "+rounded(k.TaskTimeout), "say Accepted when a task begins")
		}
		if ended(run) && k.Slow != nil {
			return skip(fmt.Sprintf("the slow task %s ended before it could be cancelled", shown(payload)))
		}
		cancelled := time.Now()
		run.Cancel("cancelled")
		if !within(ctx, grace, run.Ended()) {
			return fail(fmt.Sprintf("it still ran %s after it was cancelled; a manager kills the process then%s", rounded(grace), t.wrote()),
				"watch for the cancel while you work: in Go ctx.Done(), with exec the line \"cancel\" or SIGTERM")
		}
		took := time.Since(cancelled)
		_, err := run.Wait()
		var f *fault.Fault
		switch {
		case err == nil && k.Slow == nil:
			return skip("the task ended by itself before a cancel could matter; give one that takes long (on the command line: --slow JSON)")
		case err != nil && !errors.As(err, &f):
			return fail(fmt.Sprintf("the worker went without an outcome: %v%s", err, t.wrote()), "end the task, not the process")
		case f != nil && f.Kind == fault.Panic:
			return fail(f.Error(), "end the task with an error when it is cancelled")
		}
		return k.goesOn(ctx, t, fmt.Sprintf("ended %s after it was cancelled, with %s; the next task ran", rounded(took), orResult(err)))
	})
}

// grace is what a cancelled task gets.
func (k *kit) grace() time.Duration {
	if d, err := time.ParseDuration(k.manifest.GetDefaultLimits()["kill_grace"]); err == nil && d > 0 {
		return d
	}
	return killGrace
}

func ended(r *session.Run) bool {
	select {
	case <-r.Ended():
		return true
	default:
		return false
	}
}

// fillsSlots sends as many tasks as there are slots.
func fillsSlots(ctx context.Context, k *kit) verdict {
	const most = 16
	slots := min(k.slots(), most)
	if slots < 2 {
		return skip("it runs one task at once (slots: 1)")
	}
	return k.with(ctx, func(t *trial) verdict {
		runs := make([]*session.Run, slots)
		for i := range runs {
			runs[i] = t.Begin(k.task(k.slow()))
		}
		for i, run := range runs {
			if !within(ctx, k.TaskTimeout, run.Begun()) {
				return fail(fmt.Sprintf("task %d of %d had not begun after %s%s", i+1, slots, rounded(k.TaskTimeout), t.wrote()), "run tasks at once, or say fewer slots")
			}
		}
		if k.Slow != nil {
			if slices.ContainsFunc(runs, ended) {
				return skip("a slow task ended before all had begun")
			}
			return pass(fmt.Sprintf("%d tasks ran side by side", slots))
		}
		for i, run := range runs {
			if !within(ctx, k.TaskTimeout, run.Ended()) {
				return fail(fmt.Sprintf("task %d of %d had no outcome after %s%s", i+1, slots, rounded(k.TaskTimeout), t.wrote()), "end every task")
			}
			result, err := run.Wait()
			if v, bad := k.unsound(k.slow(), result, err); bad && v.state == Fail {
				return v
			}
		}
		return pass(fmt.Sprintf("%d tasks sent at once have all ended", slots))
	})
}
