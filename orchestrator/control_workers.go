package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/pool"
	"github.com/drover-jobs/drover/orchestrator/internal/worker"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// talker is a process that can be asked about itself.
type talker interface {
	Stacks(ctx context.Context) (string, error)
}

var _ talker = (*worker.Process)(nil)

// find returns a worker and the queue that it works for.
func (c *control) find(number uint64) (queue string, p *pool.Pool, process pool.Process, err error) {
	for _, s := range c.o.present.Load().all() {
		if process, ok := s.pool.Process(number); ok {
			return s.name, s.pool, process, nil
		}
	}
	return "", nil, nil, api.NotFound(fmt.Errorf("worker %d: %w", number, pool.ErrNoWorker))
}

// talk returns a worker that can be asked about itself.
func (c *control) talk(number uint64) (talker, error) {
	_, _, process, err := c.find(number)
	if err != nil {
		return nil, err
	}
	if t, ok := process.(talker); ok {
		return t, nil
	}
	return nil, api.Refused(fmt.Errorf("worker %d cannot be asked", number))
}

// Restart replaces the workers of a queue, or one.
func (c *control) Restart(ctx context.Context, r *apiv1.RestartRequest) (*apiv1.RestartResponse, error) {
	queue, number := r.GetQueue(), r.GetWorker()
	switch {
	case (queue == "") == (number == 0):
		return nil, api.Invalid(errors.New("name a queue or the number of a worker, one of them"))
	case queue != "":
		s, err := c.served(queue)
		if err != nil {
			return nil, err
		}
		n := s.pool.Replace(job.ExitOperator)
		c.o.log.Info("workers are replaced, one by one", "queue", queue, "workers", n, "who", api.Caller(ctx))
		return &apiv1.RestartResponse{Workers: int32(n)}, nil //nolint:gosec // few
	}
	queue, p, _, err := c.find(number)
	if err != nil {
		return nil, err
	}
	if err := p.Restart(number, job.ExitOperator); err != nil {
		return nil, workerError(err)
	}
	c.o.log.Info("a worker is replaced", "queue", queue, "worker", number, "who", api.Caller(ctx))
	return &apiv1.RestartResponse{Workers: 1}, nil
}

// Kill ends a worker now.
func (c *control) Kill(ctx context.Context, r *apiv1.KillRequest) (*apiv1.KillResponse, error) {
	queue, p, _, err := c.find(r.GetWorker())
	if err != nil {
		return nil, err
	}
	ids, pid, err := p.Kill(r.GetWorker())
	if err != nil {
		return nil, workerError(err)
	}
	c.o.log.Warn("a worker is killed", "queue", queue, "worker", r.GetWorker(), "pid", pid, "tasks", len(ids), "who", api.Caller(ctx))
	answer := &apiv1.KillResponse{Pid: int32(pid)} //nolint:gosec // fits
	for _, id := range ids {
		answer.TaskIds = append(answer.TaskIds, id.String())
	}
	return answer, nil
}

// workerError gives errors of a pool their meaning for callers.
func workerError(err error) error {
	if errors.Is(err, pool.ErrNoWorker) {
		return api.NotFound(err)
	}
	return err
}

// Stacks returns the stacks of a worker's threads of execution.
func (c *control) Stacks(ctx context.Context, r *apiv1.StacksRequest) (*apiv1.StacksResponse, error) {
	t, err := c.talk(r.GetWorker())
	if err != nil {
		return nil, err
	}
	text, err := t.Stacks(ctx)
	if err != nil {
		return nil, api.Refused(fmt.Errorf("stacks of worker %d: %w", r.GetWorker(), err))
	}
	return &apiv1.StacksResponse{Text: text}, nil
}

// allLines is more than a manager keeps of a worker's output.
const allLines = 1 << 20

// Logs gives what a worker wrote, and with follow what it writes until its end; of one that has ended, what is kept.
func (c *control) Logs(ctx context.Context, r *apiv1.LogsRequest) iter.Seq2[*apiv1.LogsResponse, error] {
	return func(yield func(*apiv1.LogsResponse, error) bool) {
		if r.GetLines() < 0 {
			yield(nil, api.Invalid(fmt.Errorf("lines: %d is negative; 0 is all that is kept", r.GetLines())))
			return
		}
		logs, end, ok := c.o.writings.find(r.GetWorker())
		if !ok {
			yield(nil, api.NotFound(fmt.Errorf("worker %d: %w, nor one of the latest %d that have ended", r.GetWorker(), pool.ErrNoWorker, endedKept)))
			return
		}
		n := int(r.GetLines())
		if n == 0 {
			n = allLines
		}
		if !r.GetFollow() {
			yield(&apiv1.LogsResponse{Lines: logs.Tail(n), Ended: end}, nil)
			return
		}
		f := logs.Follow(n)
		defer f.Close()
		var first *apiv1.LogsResponse
		if end != "" {
			first = &apiv1.LogsResponse{Ended: end}
		}
		if !yield(first, nil) {
			return
		}
		for {
			out, err := f.Next(ctx)
			if errors.Is(err, io.EOF) || ctx.Err() != nil {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&apiv1.LogsResponse{Lines: out.Lines, MissedBytes: out.Missed}, nil) {
				return
			}
		}
	}
}
