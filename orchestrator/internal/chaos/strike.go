package chaos

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos/actor"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/judge"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/plan"
)

// strike carries out one timeline. It ends with ctx, and leaves its victims running.
func (r *run) strike(ctx context.Context, line plan.Timeline) {
	for _, in := range line.Injections {
		if actor.Rest(ctx, time.Until(r.began.Add(in.At))) != nil {
			return
		}
		struck, err := r.inject(ctx, line.Manager, in)
		if err != nil {
			r.problem(fmt.Errorf("%s at %s: %w", in.Kind, in.At.Round(time.Millisecond), err))
			return
		}
		r.note(func(*judge.Facts) { r.tally.count(in, struck) })
	}
}

// inject does one fault and waits until it is over. It reports whether there was a victim.
func (r *run) inject(ctx context.Context, manager int, in plan.Injection) (struck bool, err error) {
	switch in.Kind {
	case plan.WorkerKill:
		injury, found := r.workers.Kill(ctx, in.Choice)
		r.injured(injury, found)
		return found, nil
	case plan.WorkerFreeze:
		injury, found := r.workers.FreezeFor(ctx, in.Choice, in.For)
		r.injured(injury, found)
		return found, nil
	case plan.RedisKill:
		return true, r.outage(func() error { return r.redis.KillFor(ctx, in.For) })
	case plan.RedisFreeze:
		return true, r.outage(func() error { return r.redis.FreezeFor(ctx, in.For) })
	case plan.MemcachedKill:
		return true, r.cache.KillFor(ctx, in.For)
	case plan.MemcachedFreeze:
		return true, r.cache.FreezeFor(ctx, in.For)
	default:
		return r.strikeManager(ctx, r.managers[manager], in)
	}
}

// outage notes when Redis was away.
func (r *run) outage(strike func() error) error {
	outage := judge.Freeze{From: actor.Now()}
	err := strike()
	outage.To = actor.Now()
	r.note(func(f *judge.Facts) { f.Outages = append(f.Outages, outage) })
	return err
}

func (r *run) injured(injury actor.Injury, found bool) {
	if found {
		r.note(func(f *judge.Facts) { f.Injuries = append(f.Injuries, injury) })
	}
}

func (r *run) strikeManager(ctx context.Context, m *actor.Manager, in plan.Injection) (struck bool, err error) {
	if !m.Alive() {
		return false, fmt.Errorf("manager %s has ended by itself; see %s", m.Name, m.Log())
	}
	whatever := context.WithoutCancel(ctx) // it must be up again in any case
	switch in.Kind {
	case plan.ManagerKill:
		orphans := m.Kill(ctx, r.options.OrphansWithin)
		r.note(func(f *judge.Facts) { f.Orphans = append(f.Orphans, orphans) })
		_ = actor.Rest(ctx, in.For-orphans.After)
		return true, m.Start(whatever)
	case plan.ManagerFreeze:
		freeze := judge.Freeze{PID: m.PID(), From: actor.Now()}
		err := m.FreezeFor(ctx, in.For)
		freeze.To = actor.Now()
		r.note(func(f *judge.Facts) { f.Freezes = append(f.Freezes, freeze) })
		return true, err
	case plan.ManagerStop:
		r.stop(m)
		_ = actor.Rest(ctx, in.For)
		return true, m.Start(whatever)
	case plan.ManagerReload:
		return true, m.Reload(in.Choice)
	case plan.ManagerReplace:
		return true, m.Replace()
	default:
		return false, fmt.Errorf("%s is no fault of a manager", in.Kind)
	}
}
