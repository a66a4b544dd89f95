package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/orchestrator/internal/settings/timetable"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/client/direct"
)

// runner fires one schedule for as long as it stays as it is.
type runner struct {
	*Schedules
	spec  Spec
	table *timetable.Timetable

	state   State
	read    time.Time // when the state was read, by this machine's clock
	adopted bool      // Redis knows that this manager has begun with it
	catchUp timetable.CatchUp
}

func newRunner(s *Schedules, spec Spec) *runner {
	return &runner{Schedules: s, spec: spec, catchUp: spec.CatchUp}
}

// run fires the schedule until ctx ends.
func (r *runner) run(ctx context.Context) {
	var err error
	if r.table, err = r.spec.Timetable(r.spec.Name); err != nil { // settings that do not hold never get here
		r.problem(r.spec.Name, err)
		return
	}
	for ctx.Err() == nil {
		pause := againAfter
		err := r.look(ctx)
		if err == nil && r.spec.Enabled == settings.SwitchOff {
			<-ctx.Done()
			return
		}
		if err == nil {
			pause, err = r.step(ctx)
		}
		if ctx.Err() == nil {
			r.problem(r.spec.Name, err)
		}
		sleep(ctx, pause)
	}
}

// step decides what is to be decided now, and returns after which pause to look again.
func (r *runner) step(ctx context.Context) (time.Duration, error) {
	if !r.state.Paused.IsZero() { // but it may be resumed before something is due
		next := r.table.Next(r.now())
		if next.IsZero() {
			return lookEvery, nil
		}
		return r.patience(r.table.FireAt(next).Sub(r.now())), nil
	}
	if err := r.replace(ctx); err != nil {
		return againAfter, err
	}
	if !r.state.Queued.IsZero() {
		taken, err := r.take(ctx, direct.Turn{Due: r.state.Queued, Queued: true, Run: true}, r.state.Queued)
		if err != nil || taken.Verdict == direct.TurnFired {
			return pauseAfter(err), err
		}
	}
	turn := r.table.Decide(r.state.Decided, r.now(), r.catchUp)
	if turn.Due.IsZero() {
		return lookEvery, nil
	}
	if wait := turn.At.Sub(r.now()); wait > 0 {
		return r.patience(wait), nil
	}
	taken, err := r.take(ctx, direct.Turn{
		Decided: r.state.Decided, Due: turn.Due, At: turn.At, Missed: turn.Missed, Run: turn.Run, Overlap: direct.Overlap(r.spec.Overlap),
	}, turn.At)
	switch {
	case err != nil:
		return pauseAfter(err), err
	case taken.Verdict == direct.TurnEarly: // this machine's clock runs faster than that of Redis
		return r.patience(turn.At.Sub(taken.Now)), nil
	default:
		r.catchUp = r.spec.CatchUp
		return 0, nil
	}
}

// pauseAfter is how long to wait after a turn that could not be taken: what a person has to mend takes a while.
func pauseAfter(err error) time.Duration {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, client.ErrInvalidPayload), errors.Is(err, client.ErrUnknownQueue):
		return lookEvery
	default:
		return againAfter
	}
}

// patience is how long to wait for a moment that is that far away: what else may happen is looked at in between.
func (r *runner) patience(wait time.Duration) time.Duration {
	if !r.state.Queued.IsZero() {
		return min(wait, againAfter)
	}
	return min(wait, lookEvery)
}

// now is the time by the clock of Redis.
func (r *runner) now() time.Time { return r.state.Now.Add(time.Since(r.read)) }

// take takes a turn, and tells of it when it was this manager that decided. planned is when its run should have begun.
func (r *runner) take(ctx context.Context, t direct.Turn, planned time.Time) (direct.TurnTaken, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout) // or nobody would tell of what was decided
	defer cancel()
	t.Queue, t.Schedule, t.Manager, t.Payload = r.spec.Queue, r.spec.Name, r.Manager, json.RawMessage(r.spec.Payload)
	taken, err := r.Tasks.TakeTurn(ctx, t)
	if err != nil {
		return taken, err
	}
	switch taken.Verdict {
	case direct.TurnFired, direct.TurnSkipped, direct.TurnQueued, direct.TurnMissed:
		d := Decided{Spec: r.spec, Verdict: taken.Verdict, Due: t.Due, Missed: t.Missed, Late: -1}
		if taken.Verdict == direct.TurnFired {
			d.ID = taken.ID
			if !t.Queued && t.Missed == 0 {
				d.Late = max(0, taken.Now.Sub(planned))
			}
		}
		r.Told(d)
	case direct.TurnMoved, direct.TurnEarly, direct.TurnPaused, direct.TurnBusy: // nothing was decided here
	}
	return taken, nil
}

// replace cancels the run in whose place a later one waits. Whoever looks does that, so it does not matter which manager dies.
func (r *runner) replace(ctx context.Context) error {
	if r.state.Replace.IsZero() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	switch _, err := r.Tasks.Cancel(ctx, r.state.Replace); {
	case err == nil || errors.Is(err, client.ErrUnknownTask): // it has ended
		return nil
	default:
		return err
	}
}

// look reads the schedule's state. The first time it also says what this manager begins with.
func (r *runner) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	manager, words := "", ""
	if !r.adopted {
		manager, words = r.Manager, wordsOf(r.spec)
	}
	began := time.Now()
	state, err := read(ctx, r.Redis, r.spec, manager, words)
	if err != nil {
		return err
	}
	if state.WasOff {
		r.catchUp = timetable.CatchUpNone
	}
	r.state, r.read, r.adopted = state, began.Add(time.Since(began)/2), true
	return nil
}

// wordsOf is what the due times of a schedule are made from; empty for one that is off.
func wordsOf(s Spec) string {
	switch {
	case s.Enabled == settings.SwitchOff:
		return ""
	case s.Cron != "":
		return "cron " + s.Cron + " in " + s.TimeZone
	default:
		return "every " + settings.FormatDuration(s.Every)
	}
}

// sleep waits, and not longer than ctx.
func sleep(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
