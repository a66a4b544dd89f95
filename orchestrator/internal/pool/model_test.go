package pool_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/budget"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// Whatever happens, in whatever order: every job that was offered ends exactly once, no process runs more than its slots, none is
// sent more than worker_max_tasks, no suspect has company, and the stop leaves nothing.
func TestNothingIsLostOrDoubled(t *testing.T) {
	t.Parallel()
	for range 4 {
		seed := rand.Uint64()                                                                   //nolint:gosec // another run, another order
		synctest.Test(t, func(t *testing.T) { chaos(t, rand.New(rand.NewPCG(seed, 0)), seed) }) //nolint:gosec // repeatable
	}
}

func chaos(t *testing.T, random *rand.Rand, seed uint64) {
	t.Helper()
	const maxTasks = 7
	var shared *budget.Budget
	most := 1 << 20
	if random.IntN(2) == 0 {
		most = 1 + random.IntN(4)
		shared = budget.New(func() budget.Limits { return budget.Limits{Processes: most} })
	}
	r := newRigWithin(t, "q", queue(func(q *settings.Queue) { q.Slots, q.WorkerIdle, q.WorkerMaxTasks = 3, 5*time.Millisecond, maxTasks }), shared)
	r.manager.DrainTimeout = time.Duration(random.IntN(20)) * time.Millisecond
	r.took = time.Duration(random.IntN(300)) * time.Microsecond
	obeys := random.IntN(2) == 0
	r.makes = func(p *fakeProcess) { p.obeys = obeys }
	r.run()

	var mu sync.Mutex
	var offered []*job.Job
	some := func(pick *rand.Rand) *job.Job {
		mu.Lock()
		defer mu.Unlock()
		if len(offered) == 0 {
			return newJob()
		}
		return offered[pick.IntN(len(offered))]
	}
	const actors, steps = 4, 400
	var acting sync.WaitGroup
	for range actors {
		own := rand.New(rand.NewPCG(random.Uint64(), 1)) //nolint:gosec // repeatable
		acting.Go(func() {
			for range steps {
				if own.IntN(3) == 0 {
					pass(time.Duration(own.IntN(2000)) * time.Microsecond)
				}
				if n := len(r.live()); n > most {
					t.Errorf("seed %d: %d processes, the budget has %d", seed, n, most)
				}
				act(r, own, some, func(j *job.Job) {
					mu.Lock()
					offered = append(offered, j)
					mu.Unlock()
					r.Offer(j)
				})
			}
		})
	}
	pass(time.Duration(random.IntN(300)) * time.Millisecond)
	if random.IntN(2) == 0 {
		acting.Wait()
	}
	r.finished() // as often as not in the middle of it
	acting.Wait()

	for _, j := range offered {
		if n := len(r.outcomes[j]); n != 1 {
			t.Errorf("seed %d: a job ended %d times", seed, n)
		}
	}
	if len(r.outcomes) != len(offered) {
		t.Errorf("seed %d: %d jobs ended, %d were offered", seed, len(r.outcomes), len(offered))
	}
	for _, p := range r.all() {
		if p.most > p.slots || p.mixed || len(p.sent) > maxTasks {
			t.Errorf("seed %d: process with %d slots ran %d at once and %d in all, suspect with company: %v", seed, p.slots, p.most, len(p.sent), p.mixed)
		}
	}
}

// act does one thing at random.
func act(r *rig, random *rand.Rand, some func(*rand.Rand) *job.Job, offer func(*job.Job)) {
	switch n := random.IntN(100); {
	case n < 45:
		j := newJob()
		j.Suspect = random.IntN(10) == 0
		offer(j)
	case n < 50:
		r.Cancel(some(random))
	case n < 54:
		r.set(func(q *settings.Queue) {
			q.MaxWorkers, q.Slots = 1+random.IntN(6), 1+random.IntN(4)
			q.MinWorkers = random.IntN(q.MaxWorkers + 1)
		})
	case n < 56:
		r.fails.Store(random.IntN(3) == 0)
		r.dies.Store(random.IntN(8) == 0)
	case n < 58:
		r.Stats()
		r.Capacity()
		r.Explain()
	case n < 59:
		r.Replace(job.ExitReload)
		r.Resume()
	case n < 60:
		for _, p := range r.live() {
			_, _, _ = r.Kill(p.id) // it may have ended
			_ = r.Restart(p.id, job.ExitOperator)
			break
		}
	default:
		live := r.live()
		if len(live) == 0 {
			return
		}
		p := live[random.IntN(len(live))]
		switch runs := p.running(); {
		case random.IntN(30) == 0:
			p.end([]job.ExitReason{job.ExitCrash, job.ExitLeft, job.ExitTaskTimeout, job.ExitOperator}[random.IntN(4)])
		case len(runs) > 0:
			p.finish(runs[random.IntN(len(runs))], []job.End{job.Succeeded, job.Faulted, job.Killed, job.Interrupted}[random.IntN(4)])
		}
	}
}
