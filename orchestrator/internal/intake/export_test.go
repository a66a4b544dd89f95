package intake

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// IsDequeue, TaskOf and EndsRun are how the gateway knows asynq's scripts.
func IsDequeue(queue string, keys []string) bool {
	return (&gateway{keys: task.KeysOf(queue)}).isDequeue(keys)
}

// TaskOf is the gateway's taskOf.
func TaskOf(queue string, keys []string) (string, bool) { return taskOf(task.KeysOf(queue), keys) }

// EndsRun is the gateway's endsRun.
func EndsRun(ctx context.Context) bool { return endsRun(ctx) }

// Bench is a lane without asynq, to call its scripts one by one.
type Bench struct{ l *lane }

// NewBench returns one.
func NewBench(deps Deps, conf Lane) Bench {
	return Bench{newLane(conf, deps, newScripts(deps.Redis), &Health{log: deps.Log}, &totals{})}
}

// Take is one pull of up to n tasks. It returns the jobs that were handed down, in their order.
func (b Bench) Take(n int) []*job.Job {
	b.l.puller.pull(n)
	var jobs []*job.Job
	for _, t := range b.l.fetched.takeAll() {
		jobs = append(jobs, t.job)
	}
	return jobs
}

// Settle carries out verdicts of tasks that were taken, in one call, and returns what settle.lua said of each.
func (b Bench) Settle(jobs []*job.Job, verdicts []job.Verdict) ([]int64, error) {
	now := time.Now()
	batch := make([]*settlement, len(jobs))
	for i, j := range jobs {
		batch[i] = newSettlement(b.taken(j), verdicts[i], now)
	}
	return b.l.settler.write(batch, now)
}

// SettleAll is Settle for jobs in the order in which they were taken, and lets go of them.
func (b Bench) SettleAll(jobs []*job.Job, verdicts []job.Verdict) {
	now := time.Now()
	byJob := make(map[*job.Job]*held, len(jobs))
	for _, t := range b.l.hand.all() {
		byJob[t.job] = t
	}
	batch := make([]*settlement, len(jobs))
	for i, j := range jobs {
		batch[i] = newSettlement(byJob[j], verdicts[i], now)
	}
	b.l.settler.carryOut(batch, nil)
}

func (b Bench) taken(j *job.Job) *held {
	for _, t := range b.l.hand.all() {
		if t.job == j {
			return t
		}
	}
	return nil
}

// Beat renews the leases of all that is held.
func (b Bench) Beat() { b.l.leases.beat() }

// Expire makes all leases of the lane look as if they had run out.
func (b Bench) Expire() {
	for _, t := range b.l.hand.all() {
		t.received = t.received.Add(-leaseDuration)
	}
}

// Attend attends the run of a job as asynq's handler does. It returns when the verdict has been carried out.
func (b Bench) Attend(j *job.Job) {
	b.Settling(func() { b.l.attend(b.taken(j)) })
}

// AttendOnly is Attend where the settler is at work already.
func (b Bench) AttendOnly(j *job.Job) {
	if t := b.taken(j); t != nil {
		b.l.attend(t)
	}
}

// Cancel is what a client's cancel does.
func (b Bench) Cancel(key string) { b.l.cancel(key) }

// Settling runs f with the settler at work.
func (b Bench) Settling(f func()) {
	done := background(func() { b.l.settler.run(nil) })
	f()
	b.l.settler.close()
	<-done
}

// GiveBack puts jobs back in one batch, through the settler's own sorting.
func (b Bench) GiveBack(ctx context.Context, jobs []*job.Job) {
	batch := make([]*settlement, len(jobs))
	for i, j := range jobs {
		t := b.taken(j)
		batch[i] = newSettlement(t, job.Verdict{Move: job.GiveBack, State: task.Waiting, Counters: t.counters}, time.Now())
	}
	b.l.settler.carryOut(batch, ctx.Done())
}

// Gateway is the Redis client that the lane's asynq.Server works on.
func (b Bench) Gateway() redis.UniversalClient {
	return newGateway(b.l)
}

// Held is how many tasks are held.
func (b Bench) Held() int { return b.l.hand.size() }
