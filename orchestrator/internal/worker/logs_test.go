package worker_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
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

// The last lines of a run are those that were written in its time, whether the process lives on or not: none of the tasks before.
func TestLinesOfARun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, sink := r.startSpec(flawed(t, roleWrites))
	run := func(limits job.Limits, payload string) *job.Job {
		t.Helper()
		j := order(payload)
		if !p.Send(j, limits) {
			t.Fatal("the process takes no job")
		}
		return j
	}
	for i := range 50 {
		if o := sink.outcome(t, run(noLimits(), fmt.Sprintf(`{"say":"good %d"}`, i))); o.End != job.Succeeded || o.Tail != nil {
			t.Fatalf("%+v", o)
		}
		line := fmt.Sprintf("bad %d", i)
		if o := sink.outcome(t, run(noLimits(), fmt.Sprintf(`{"say":%q,"then":"fail"}`, line))); o.End != job.Faulted || !slices.Equal(o.Tail, []string{line}) {
			t.Errorf("a failure: %q, want %q", o.Tail, line)
		}
	}
	if o := sink.outcome(t, run(job.Limits{TaskTimeout: 50 * time.Millisecond, KillGrace: patience}, `{"say":"slow","then":"wait"}`)); !slices.Equal(o.Tail, []string{"slow"}) {
		t.Errorf("a timeout: %q", o.Tail)
	}
	j := run(noLimits(), `{"say":"last words","then":"exit"}`)
	if exit := sink.exit(t); len(exit.Tail) < 2 {
		t.Errorf("the process: %q", exit.Tail)
	}
	if u := sink.unfinished[j]; !slices.Equal(u.Tail, []string{"last words"}) {
		t.Errorf("a crash: %q", u.Tail)
	}
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
