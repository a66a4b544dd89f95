package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/worker"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// buffer is a log that may be read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// A worker's structured lines come to the manager's log with their level and attributes, bound to the worker and the task.
func TestStructuredLog(t *testing.T) {
	t.Parallel()
	log := &buffer{}
	launcher, err := worker.NewLauncher(testenv.ShortDir(t), slog.New(slog.NewJSONHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- launcher.Run(ctx) }()
	sink := newRecorder()
	p, err := launcher.Start(t.Context(), flawed(t, roleCountsSlots), sink)
	if err != nil {
		t.Fatal(err)
	}
	if p.Since().After(time.Now()) {
		t.Error("it was ready in the future")
	}
	j := send(t, p, noLimits(), `{"say":"hello","color":"red"}`)[0]
	sink.outcome(t, j)
	eventually(t, "the line is there", func() bool { return strings.Contains(log.String(), "hello") })
	for line := range strings.Lines(log.String()) {
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatal(err)
		}
		if got["msg"] == "hello" && (got["level"] != "WARN" || got["color"] != "red" || got["task"] != j.ID.String() || got["worker"] != float64(p.ID())) {
			t.Errorf("%s", line)
		}
		if got["msg"] == "too fine" {
			t.Error("a line below the level was passed on")
		}
	}
	p.Drain(job.ExitIdle)
	<-p.Done()
	sink.exit(t)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
