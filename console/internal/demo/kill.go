package demo

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/task"
)

// recoverTime bounds how long a task may take to end after its worker has died.
const recoverTime = 20 * time.Second

// killWorker kills the process that pulls a feed and checks that the pull completes on another.
func (d *demo) killWorker(ctx context.Context) error {
	submitted, err := d.manager.tasks.Submit(ctx, feedQueue, map[string]string{"url": d.site.url(pathStuck)})
	if err != nil {
		return fmt.Errorf("submit the stuck feed: %w", err)
	}
	select {
	case <-d.site.stuckAsked:
	case <-ctx.Done():
		return fmt.Errorf("no worker asked for the stuck feed: %w", ctx.Err())
	}
	victim, err := d.busyWorker(ctx)
	if err != nil {
		return err
	}
	d.tell.say("Worker process %d is waiting for %s, which does not answer. kill -9 %d.", victim, pathStuck, victim)
	killed := time.Now()
	if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill the worker process %d: %w", victim, err)
	}
	t, err := d.waitFor(ctx, submitted.ID, recoverTime)
	if err != nil {
		return fmt.Errorf("wait for the pull whose worker was killed: %w", err)
	}
	if t.State != task.Completed || t.Attempts != 2 || t.Counters != (task.Counters{Kills: 1}) {
		return fmt.Errorf("the pull whose worker was killed is %s after %d attempts with counters %+v (%v), not completed after 2 with 1 kill",
			t.State, t.Attempts, t.Counters, reason(t))
	}
	if alive(victim) {
		return fmt.Errorf("the killed process %d is still there", victim)
	}
	d.tell.proved("The task lost one run and completed on another process, %d ms after the kill.", time.Since(killed).Milliseconds())
	return nil
}

// busyWorker is the process ID of the only worker that pulls a feed now.
func (d *demo) busyWorker(ctx context.Context) (int, error) {
	s, err := d.manager.status(ctx)
	if err != nil {
		return 0, fmt.Errorf("ask the manager for its workers: %w", err)
	}
	pid := 0
	for _, w := range s.GetWorkers() {
		if w.GetQueue() != feedQueue || w.GetRunning() == 0 {
			continue
		}
		if pid != 0 {
			return 0, errors.New("two workers are busy with one feed")
		}
		pid = int(w.GetPid())
	}
	if pid <= 1 {
		return 0, errors.New("no worker is busy, though one asked for a feed")
	}
	return pid, nil
}

// poison submits a task that kills every worker that runs it, and checks that it is locked away and the queue works on.
func (d *demo) poison(ctx context.Context) error {
	submitted, err := d.manager.tasks.Submit(ctx, misbehave, map[string]any{"do": "exit", "code": 3})
	if err != nil {
		return fmt.Errorf("submit the task that kills its worker: %w", err)
	}
	t, err := d.waitFor(ctx, submitted.ID, recoverTime)
	if err != nil {
		return fmt.Errorf("wait for the task that kills its worker: %w", err)
	}
	if t.State != task.Quarantined || t.Counters.Kills != maxKills || t.Fault == nil {
		return fmt.Errorf("the task that kills its worker is %s with counters %+v (%v), not quarantined after %d kills", t.State, t.Counters, reason(t), maxKills)
	}
	d.tell.say("%s", t.Fault)
	d.tell.proved("After %d processes it is quarantined: it will not run again by itself.", maxKills)

	harmless, err := d.manager.tasks.Submit(ctx, misbehave, map[string]any{"do": "return", "value": 42}, client.Unique(false))
	if err != nil {
		return fmt.Errorf("submit a harmless task behind it: %w", err)
	}
	if t, err = d.waitFor(ctx, harmless.ID, recoverTime); err != nil {
		return fmt.Errorf("wait for the harmless task behind it: %w", err)
	}
	if t.State != task.Completed || string(t.Result) != "42" {
		return fmt.Errorf("the harmless task behind it is %s with result %s (%v), not completed with 42", t.State, t.Result, reason(t))
	}
	d.tell.proved("The next task of the same queue ran as if nothing had happened.")
	return nil
}

// survived checks that the manager is the process that was started, sound, with nothing left to do.
func (d *demo) survived(ctx context.Context) error {
	s, err := d.manager.status(ctx)
	if err != nil {
		return fmt.Errorf("ask the manager how it is: %w", err)
	}
	m := s.GetManager()
	if int(m.GetPid()) != d.manager.process.Process.Pid || m.GetState() != "running" || m.GetBrokerError() != "" {
		return fmt.Errorf("the manager is %v, not the running process %d", m, d.manager.process.Process.Pid)
	}
	for _, q := range s.GetQueues() {
		if q.GetState() != "ok" || left(q) != 0 {
			return fmt.Errorf("the queue %s is not sound and empty: %v", q.GetName(), q)
		}
	}
	d.tell.proved("The manager is still process %d, every queue is sound and nothing is left to do.", m.GetPid())
	return nil
}

func left(q *apiv1.Queue) int64 {
	return q.GetWaiting() + q.GetScheduled() + q.GetRetry() + q.GetHeld() + q.GetRunning()
}
