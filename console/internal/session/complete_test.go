package session_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/session"
	"github.com/drover-jobs/drover/protocol/client"
)

// hung is a manager that never answers.
type hung struct{ control }

func (hung) Status(ctx context.Context, _ *apiv1.StatusRequest) (*apiv1.StatusResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// hostile is a manager with a queue that no terminal should see.
type hostile struct{ control }

func (hostile) Status(context.Context, *apiv1.StatusRequest) (*apiv1.StatusResponse, error) {
	return &apiv1.StatusResponse{Queues: []*apiv1.Queue{{Name: "good"}, {Name: "bad\x1b[2J"}, {Name: "two\nlines"}}}, nil
}

// A shell is answered within 300 ms, with what the last word could become and nothing else: whatever is wrong, a person in the middle of a
// line sees no error. An exit code of 1 says that the word could be a file.
func TestWordsOfShells(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		words   []string
		manager func(c control) session.Control
		err     error
		code    int
		want    string
	}{
		"command":          {words: []string{"--", "stat"}, want: "status\n"},
		"without the dash": {words: []string{"stat"}, want: "status\n"},
		"no words":         {words: []string{"--", "versi"}, err: errors.New("refused"), want: "version\n"},
		"no manager":       {words: []string{"--", "pause", ""}, err: errors.New("refused")},
		"hung manager":     {words: []string{"--", "pause", ""}, manager: func(c control) session.Control { return hung{c} }},
		"hostile manager":  {words: []string{"--", "pause", ""}, manager: func(c control) session.Control { return hostile{c} }, want: "good\n"},
		"file":             {words: []string{"--", "status", "--socket", ""}, code: 1},
		"nonsense":         {words: []string{"--", "nonsense", "--x", "-", "y"}},
		"itself":           {words: []string{"--", "__comp"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &world{files: []string{"var/drover.sock"}, dialErr: c.err}
				w.dial = func() (client.Client, session.Control) {
					if c.manager != nil {
						return tasks{w: w}, c.manager(control{w: w})
					}
					return tasks{w: w}, control{w: w}
				}
				began := time.Now()
				code := w.run(append([]string{"__complete"}, c.words...)...)
				if code != c.code || w.out.String() != c.want || w.err.String() != "" {
					t.Errorf("exit %d, %q, errors %q", code, w.out.String(), w.err.String())
				}
				if took := time.Since(began); took > 300*time.Millisecond {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
}
