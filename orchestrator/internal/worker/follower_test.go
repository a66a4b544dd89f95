package worker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/worker"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// rest reads a follower to its end.
func rest(t *testing.T, f *worker.Follower) (lines []string, missed int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		out, err := f.Next(ctx)
		if errors.Is(err, io.EOF) {
			return lines, missed
		}
		if err != nil {
			t.Fatal(err)
		}
		lines, missed = append(lines, out.Lines...), missed+out.Missed
	}
}

// Whoever follows a worker's output gets the last lines and then every line once, to the end.
func TestFollow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	program := testenv.BuildBinaries(t, "./plugins/sdk/sdktest/misbehave")[0]
	p, sink := r.startSpec(spec(script(t, "printf 'one\\ntwo\\nthree' >&2\nexec "+program)))
	eventually(t, "it has written", func() bool { return slices.Equal(p.Tail(9), []string{"one", "two", "three"}) })
	all, some, none := p.Logs().Follow(9), p.Logs().Follow(2), p.Logs().Follow(0)
	defer all.Close()
	defer some.Close()
	defer none.Close()
	if out, err := all.Next(t.Context()); err != nil || !slices.Equal(out.Lines, []string{"one", "two"}) {
		t.Errorf("%+v, %v", out, err) // three has no end yet
	}
	send(t, p, noLimits(), `{"do":"print","bytes":5,"value":1}`)
	eventually(t, "it has written more", func() bool { return strings.Contains(strings.Join(p.Tail(1), ""), "xxxxx") })
	p.Kill(job.ExitOperator)
	sink.exit(t)
	for name, c := range map[string]struct {
		f    *worker.Follower
		want []string
	}{"all": {all, []string{"threexxxxx"}}, "some": {some, []string{"two", "threexxxxx"}}, "none": {none, []string{"xxxxx"}}} {
		if lines, missed := rest(t, c.f); !slices.Equal(lines, c.want) || missed != 0 {
			t.Errorf("%s: %q, missed %d; want %q", name, lines, missed, c.want)
		}
	}
	late := p.Logs().Follow(1)
	defer late.Close()
	if lines, _ := rest(t, late); !slices.Equal(lines, []string{"threexxxxx"}) {
		t.Errorf("after the end: %q", lines)
	}
}

// A follower that does not read makes no worker wait, and is told how much it missed.
func TestFollowSlowly(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, sink := r.start()
	f := p.Logs().Follow(0)
	defer f.Close()
	const bytes, kept = 1_000_000, 64 << 10
	if o := sink.outcome(t, send(t, p, noLimits(), fmt.Sprintf(`{"do":"print","bytes":%d,"value":1}`, bytes))[0]); o.End != job.Succeeded {
		t.Errorf("%+v", o)
	}
	eventually(t, "the output is there", func() bool { return len(p.Tail(1)) == 1 })
	p.Kill(job.ExitOperator)
	sink.exit(t)
	if lines, missed := rest(t, f); len(lines) != 1 || missed < bytes-kept {
		t.Errorf("%d lines, missed %d", len(lines), missed)
	}
}

// Waiting for output ends with its context, and a closed follower tells nothing more.
func TestFollowNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p, _ := r.start()
	f := p.Logs().Follow(0)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if out, err := f.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%+v, %v", out, err)
	}
	f.Close()
	if out, err := f.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("%+v, %v", out, err)
	}
}
