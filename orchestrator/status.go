package orchestrator

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/intake"
	"github.com/drover-jobs/drover/orchestrator/internal/pool"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// countTimeout bounds the question to Redis in a status: the console gets its answer at once also while Redis is away.
const countTimeout = 40 * time.Millisecond

// status answers how the manager is doing.
type status struct {
	o     *Orchestrator
	state atomic.Pointer[string]

	mu   sync.Mutex
	last map[string]intake.Counts // what Redis said last
	when time.Time
}

func newStatus(o *Orchestrator) *status {
	s := &status{o: o}
	s.set("running")
	return s
}

func (s *status) set(state string) { s.state.Store(&state) }
func (s *status) stopping()        { s.set("stopping") }

// Status describes manager, queues, workers and plugins.
func (s *status) Status(ctx context.Context) (*apiv1.StatusResponse, error) {
	o := s.o
	answer := &apiv1.StatusResponse{Manager: &apiv1.Manager{
		Name: o.config.Manager.Name, Version: o.version, Pid: int32(os.Getpid()), StartedMs: o.began.UnixMilli(), //nolint:gosec // fits
		State: *s.state.Load(), Broker: o.brokerName(),
	}}
	counts, err := s.counts(ctx)
	if err == nil {
		err = o.brokerError()
	}
	if err != nil {
		answer.Manager.BrokerError = err.Error()
	}
	answer.Manager.Warnings = append(o.control.saved.warnings(), o.brokenSchedules()...)
	now := o.present.Load()
	for _, q := range now.all() {
		stats := q.pool.Stats()
		if served := now.queues[q.name]; served == nil || served == q { // else what is left of another plugin's
			answer.Queues = append(answer.Queues, s.queue(q, stats, counts))
		}
		for _, w := range stats.Workers {
			answer.Workers = append(answer.Workers, s.worker(q, w))
		}
	}
	for _, p := range o.catalog.All() {
		described := &apiv1.Plugin{
			Name: p.Name, Command: p.Command, Version: p.Manifest.GetVersion(),
			Description: p.Manifest.GetDescription(), PayloadSchema: p.Manifest.GetPayloadSchema(),
			Sha256: p.Sum, Refused: p.Refused,
		}
		if p.Err != nil {
			described.Error = p.Err.Error()
		}
		answer.Plugins = append(answer.Plugins, described)
	}
	slices.SortFunc(answer.Queues, func(a, b *apiv1.Queue) int { return strings.Compare(a.GetName(), b.GetName()) })
	slices.SortFunc(answer.Workers, func(a, b *apiv1.Worker) int { return int(a.GetId()) - int(b.GetId()) }) //nolint:gosec // small
	slices.SortFunc(answer.Plugins, func(a, b *apiv1.Plugin) int { return strings.Compare(a.GetName(), b.GetName()) })
	return answer, nil
}

// counts asks Redis, and falls back on what it said last: on the numbers only for a moment, since old ones would pass for new.
func (s *status) counts(ctx context.Context) (map[string]intake.Counts, error) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	counts, err := s.o.intake.Counts(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.last, s.when = counts, time.Now()
		return counts, nil
	}
	if time.Since(s.when) <= countsHold {
		return s.last, err
	}
	old := make(map[string]intake.Counts, len(s.last))
	for name, c := range s.last {
		old[name] = intake.Counts{Waiting: unknownCount, Active: unknownCount, Scheduled: unknownCount, Retry: unknownCount, Dead: unknownCount, Paused: c.Paused}
	}
	return old, err
}

// countsHold is how long the counts hold that Redis gave last: on a busy machine one answer may be late.
const countsHold = 2 * time.Second

// unknownCount stands for a count while Redis does not answer.
const unknownCount = -1

func (s *status) queue(of *served, stats pool.Stats, counts map[string]intake.Counts) *apiv1.Queue {
	settings := s.o.settingsOf(of)
	ended, times := s.o.controller.Counts(of.name), s.o.controller.Times(of.name)
	q := &apiv1.Queue{
		Name: of.name, Plugin: of.plugin, State: "ok",
		Waiting: unknownCount, Scheduled: unknownCount, Retry: unknownCount, Dead: unknownCount,
		Held: int64(stats.Held), LockWaiting: int64(of.locks.Waiting()), Running: int64(stats.Running), Workers: int64(len(stats.Workers) + stats.Starting), MaxWorkers: int64(settings.MaxWorkers),
		Completed: ended.Completed, Failed: ended.Failed, Killed: ended.Killed, Priority: string(settings.Priority),
		Exits:    make(map[string]uint64, len(stats.Exits)),
		RunP50Us: microseconds(times.RunP50), RunP99Us: microseconds(times.RunP99),
		WaitP50Us: microseconds(times.WaitP50), WaitP99Us: microseconds(times.WaitP99),
	}
	for reason, n := range stats.Exits {
		q.Exits[string(reason)] = n
	}
	if c, ok := counts[of.name]; ok {
		q.Waiting, q.Scheduled, q.Retry, q.Dead = c.Waiting, c.Scheduled, c.Retry, c.Dead
	}
	if why := paused(counts[of.name].Paused, of.gate.closed.Load()); why != "" {
		q.State, q.Reason = "paused", why
	}
	if stats.CircuitOpen {
		q.State, q.Reason = "circuit-open", stats.Reason
	}
	if of.leaving() {
		q.State, q.Reason = "leaving", "it is not in the configuration any more; its last tasks end, or go back"
	}
	return q
}

// microseconds is d in whole microseconds, rounded up: only nothing is 0.
func microseconds(d time.Duration) uint64 {
	return uint64(max(0, d+time.Microsecond-1) / time.Microsecond) //nolint:gosec // not negative
}

// paused says for whom a queue is paused; empty when it is not.
func paused(everywhere, here bool) string {
	switch {
	case everywhere && here:
		return "paused in Redis, for all managers, and in this manager"
	case everywhere:
		return "paused in Redis, for all managers"
	case here:
		return "paused in this manager"
	default:
		return ""
	}
}

// worker describes a worker.
func (s *status) worker(of *served, w pool.WorkerStats) *apiv1.Worker {
	state := "idle"
	switch {
	case w.Leaving:
		state = "draining"
	case w.Running > 0:
		state = "busy"
	}
	described := &apiv1.Worker{
		Id: w.ID, Queue: of.name, Pid: int32(w.PID), State: state, StartedMs: w.Since.UnixMilli(), //nolint:gosec // fits
		Tasks: w.Tasks, Running: int32(w.Running), Slots: int32(w.Slots), RssBytes: w.RSS, //nolint:gosec // fits
		MemoryMaxBytes: int64(s.o.settingsOf(of).MemoryMax), Leaving: string(w.Why),
	}
	if w.Leaving && w.Why == "" {
		described.Leaving = "by itself"
	}
	for _, id := range w.Jobs {
		described.TaskIds = append(described.TaskIds, id.String())
	}
	if process, ok := of.pool.Process(w.ID); ok {
		if stopper, ok := process.(interface{ Stopped() bool }); ok {
			described.Frozen = stopper.Stopped()
		}
	}
	return described
}

// brokerName says where the broker is, without secrets.
func (o *Orchestrator) brokerName() string {
	if o.config.Redis.Embedded {
		return "embedded"
	}
	return withoutPassword(o.config.Redis.Address)
}

// brokerError is why the broker does not do its work; nil while it does.
func (o *Orchestrator) brokerError() error {
	if err := o.intake.Health().Err(); err != nil {
		return err
	}
	if o.broker != nil {
		return o.broker.Err()
	}
	return nil
}

// absolute is the path from the root; the path itself when the working directory is gone.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
