package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Health is whether Redis answers, as seen by the lanes. It logs the beginning and the end of a trouble, not every call in it.
type Health struct {
	log *slog.Logger

	mu       sync.Mutex
	err      error
	lastGood time.Time
	taking   trouble
	storing  trouble
}

// trouble is that calls of a sort fail.
type trouble struct {
	on    bool
	since time.Time // the last failure
}

// took reports a call that takes or keeps tasks, made at the given time.
func (h *Health) took(queue string, began time.Time, err error) {
	if err != nil {
		err = fmt.Errorf("take tasks from queue %s: %w", queue, err)
	}
	h.report(&h.taking, "taken", began, err)
}

// stored reports a call that stores what became of tasks, made at the given time.
func (h *Health) stored(queue string, began time.Time, err error) {
	if err != nil {
		err = fmt.Errorf("store what became of tasks of queue %s: %w", queue, err)
	}
	h.report(&h.storing, "settled", began, err)
}

func (h *Health) report(t *trouble, what string, began time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case errors.Is(err, context.Canceled):
	case err != nil:
		h.err = err
		t.since = time.Now()
		if !t.on {
			t.on = true
			h.log.Warn("Redis is in trouble; nothing is lost, work goes on when it is well again", "error", err)
		}
	case began.Before(t.since): // older news than the failure
	default:
		h.lastGood = time.Now()
		if t.on {
			t.on = false
			h.log.Info("Redis is well again: tasks are " + what)
		}
		if !h.taking.on && !h.storing.on {
			h.err = nil
		}
	}
}

// announced reports a call that told clients of the queues. A failure shows in Err only: who tells tries again, and is not work.
func (h *Health) announced(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.err = err
	}
}

// Err is what Redis said last; nil while it answers.
func (h *Health) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

// LastGood is when Redis last answered; zero when it never did.
func (h *Health) LastGood() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lastGood
}

// asynqLog writes asynq's log lines as ours. What asynq does inside is of interest only to somebody who looks for it.
type asynqLog struct{ log *slog.Logger }

// unsubscribed is what asynq complains of every few seconds, because the gateway does not let it subscribe.
const unsubscribed = "cannot subscribe to cancelation channel"

func (a asynqLog) write(args []any) {
	if line := strings.TrimSpace(fmt.Sprint(args...)); !strings.HasPrefix(line, unsubscribed) {
		a.log.Debug("asynq: " + line)
	}
}

func (a asynqLog) Debug(args ...any) { a.write(args) }
func (a asynqLog) Info(args ...any)  { a.write(args) }
func (a asynqLog) Warn(args ...any)  { a.write(args) }
func (a asynqLog) Error(args ...any) { a.write(args) }
func (a asynqLog) Fatal(args ...any) { a.write(args) }
