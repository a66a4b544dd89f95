package sdk_test

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol/task"
)

// Progress arrives while the task runs, in its latest form, and without invalid text.
func TestProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		worker := sdktest.Start(t, program(func(ctx context.Context, _ input) (string, error) {
			for i := range uint64(100) {
				sdk.Progress(ctx, i, 100, "many")
			}
			time.Sleep(time.Second) //nolint:forbidigo // the time of a synctest bubble
			sdk.Progress(ctx, 100, 100, "done\xff")
			return "", nil
		}))
		run := worker.Begin(`{}`)
		time.Sleep(500 * time.Millisecond) //nolint:forbidigo // the time of a synctest bubble
		if got, want := run.Progress(), []task.Progress{{Done: 99, Total: 100, Note: "many"}}; !reflect.DeepEqual(got, want) {
			t.Errorf("in the middle: %v, want %v", got, want)
		}
		if _, err := run.Wait(); err != nil {
			t.Error(err)
		}
		if got := run.Progress(); len(got) != 2 || got[1] != (task.Progress{Done: 100, Total: 100, Note: "done\uFFFD"}) {
			t.Errorf("at the end: %v", got)
		}
	})
	sdk.Progress(t.Context(), 1, 2, "outside of a handler it does nothing")
}

// What a handler logs arrives as structured lines bound to its run, whatever slog can express.
func TestLogger(t *testing.T) {
	t.Parallel()
	worker := sdktest.Start(t, program(func(ctx context.Context, _ input) (string, error) {
		log := sdk.Logger(ctx)
		log.Debug("plain")
		log.With("a", 1).WithGroup("g").With("b", "x").Warn("deep", "c", []int{1}, "level", "own", "msg", "own")
		log.Error("own\xff", "level", "mine", "msg", "mine", "time", 3)
		log.Info("long", "text", strings.Repeat("x", 1<<20))
		log.Info(strings.Repeat("m", 1<<20))
		return "", nil
	}))
	run := worker.Begin(`{}`)
	if _, err := run.Wait(); err != nil {
		t.Fatal(err)
	}
	want := []sdktest.Log{
		{Run: run, Level: slog.LevelDebug, Message: "plain"},
		{Run: run, Level: slog.LevelWarn, Message: "deep", Attributes: map[string]any{
			"a": 1.0, "g": map[string]any{"b": "x", "c": []any{1.0}, "level": "own", "msg": "own"},
		}},
		{Run: run, Level: slog.LevelError, Message: "own\uFFFD", Attributes: map[string]any{"level": "mine", "msg": "mine", "time": 3.0}},
		{Run: run, Level: slog.LevelInfo, Message: "long", Attributes: map[string]any{"attributes": "left out: too long"}},
	}
	got := run.Logs()
	if len(got) != 5 {
		t.Fatalf("got %d lines", len(got))
	}
	for i, w := range want {
		if g := got[i]; g.Run != w.Run || g.Level != w.Level || g.Message != w.Message || !reflect.DeepEqual(g.Attributes, w.Attributes) {
			t.Errorf("got %v %q %v, want %v %q %v", g.Level, g.Message, g.Attributes, w.Level, w.Message, w.Attributes)
		}
	}
	if len(got[4].Message) > 16<<10 {
		t.Errorf("a message of %d bytes arrived", len(got[4].Message))
	}
}

// A handler that logs faster than the stream carries is never held up; what is dropped is counted in a line.
func TestLogFlood(t *testing.T) {
	t.Parallel()
	const lines = 50_000
	worker := sdktest.Start(t, program(func(ctx context.Context, _ input) (string, error) {
		log := sdk.Logger(ctx)
		for range lines {
			log.Info("a line of the flood", "pad", "................................................")
		}
		return "", nil
	}))
	if _, err := worker.Run(t.Context(), `{}`); err != nil {
		t.Fatal(err)
	}
	arrived, dropped := 0, 0
	count := func() int {
		arrived, dropped = 0, 0
		for _, line := range worker.Logs() {
			var n int
			if _, err := fmt.Sscanf(line.Message, "%d log lines were dropped", &n); err == nil {
				dropped += n
			} else {
				arrived++
			}
		}
		return arrived + dropped
	}
	poll(t, "every line, sent or counted", func() bool { return count() == lines })
	if dropped == 0 {
		t.Log("nothing was dropped: the stream kept up")
	}
}
