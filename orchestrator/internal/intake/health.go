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

// Health is whether Redis answers, as seen by the lanes.
type Health struct {
	mu       sync.Mutex
	err      error
	lastGood time.Time
}

func (h *Health) report(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
	if err == nil {
		h.lastGood = time.Now()
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

// trouble logs the beginning and the end of a trouble, not every call in it.
type trouble struct {
	mu sync.Mutex
	on bool
}

func (t *trouble) note(log *slog.Logger, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.on && !errors.Is(err, context.Canceled) {
		log.Warn("Redis does not answer; nothing is lost, work goes on when it is back", "error", err)
		t.on = true
	}
}

func (t *trouble) over(log *slog.Logger, message string, attrs ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.on {
		log.Info("Redis answers again: "+message, attrs...)
		t.on = false
	}
}

// asynqLog writes asynq's log lines as ours. What asynq does inside is of interest only to somebody who looks for it.
type asynqLog struct{ log *slog.Logger }

func (a asynqLog) write(args []any) {
	a.log.Debug("asynq: " + strings.TrimSpace(fmt.Sprint(args...)))
}

func (a asynqLog) Debug(args ...any) { a.write(args) }
func (a asynqLog) Info(args ...any)  { a.write(args) }
func (a asynqLog) Warn(args ...any)  { a.write(args) }
func (a asynqLog) Error(args ...any) { a.write(args) }
func (a asynqLog) Fatal(args ...any) { a.write(args) }
