package conform

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/drover-jobs/drover/plugins/sdk/sdktest/session"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/schema"
	"github.com/drover-jobs/drover/protocol/task"
)

// Bounds of what a worker may take, where its manager has one by default.
const (
	describeBound  = time.Second      // to say what it is
	configureBound = 10 * time.Second // to prepare itself
	killGrace      = 10 * time.Second // to heed a cancel, unless its default_limits say otherwise
	lifelineBound  = 2 * time.Second  // to end without a manager
)

// A check keeps one promise of a worker.
type check struct {
	name, promise string
	run           func(ctx context.Context, k *kit) verdict
}

// checks are all, in their order: each needs no more than what those before it have found to work.
func checks() []check {
	return []check{
		{"handshake", "it starts within start_timeout, and prints nothing before the handshake", handshakes},
		{"describe", "it says within a second what it is, and all of that is sound", describes},
		{"options", "it accepts its options, and accepts or refuses with a message one that it does not know", configures},
		{"task", "a task that fits ends with a result or a fault", runsTask},
		{"environment", "it needs nothing in its environment but PATH, LANG, TMPDIR and TZ", needsNoEnvironment},
		{"schema", "a payload that does not fit is refused by the schema, and survived by the worker", refusesPayloads},
		{"unknown", "what it does not know is ignored, or refused with a fault", ignoresUnknown},
		{"progress", "progress goes forward and not past its total", reportsProgress},
		{"cancel", "a cancelled task ends within kill_grace, and the worker goes on", heedsCancel},
		{"slots", "as many tasks run at once as its slots say", fillsSlots},
		{"output", "1 MiB of output without a line's end does not block it", writesMuch},
		{"panic", "a panic is reported as a fault, and nothing hangs", reportsPanic},
		{"drain", "told to drain it finishes what runs, and ends by itself with exit code 0", drains},
		{"sigterm", "on SIGTERM it ends by itself with exit code 0", heedsTerm},
		{"lifeline", "it and all that it started are gone within 2 s when its manager is", heedsLifeline},
	}
}

// kit is what the checks share.
type kit struct {
	Subject
	manifest *workerv1.Manifest
	schema   *schema.Schema
	derived  bool   // the payload was made here
	hopeless string // why nothing more can be tested
	started  bool
	worked   bool // a task has ended with a result
	progress []task.Progress
}

// Run runs all checks, tells each result as it comes, and reports whether none failed. The end of ctx leaves the rest untested.
func Run(ctx context.Context, s Subject, tell func(Result)) bool {
	if s.TaskTimeout <= 0 {
		s.TaskTimeout = DefaultTaskTimeout
	}
	if s.EndTimeout <= 0 {
		s.EndTimeout = DefaultEndTimeout
	}
	k, sound := &kit{Subject: s}, true
	for _, c := range checks() {
		begun := time.Now()
		v := skip(k.hopeless)
		switch {
		case ctx.Err() != nil:
			v = skip("the test was interrupted")
		case k.hopeless == "" || c.name == "environment":
			v = c.run(ctx, k)
		}
		if ctx.Err() != nil && v.state == Fail {
			v = skip("the test was interrupted")
		}
		sound = sound && v.state != Fail
		tell(Result{Check: c.name, State: v.state, Expected: c.promise, Seen: v.seen, Advice: v.advice, Took: time.Since(begun)})
	}
	return sound
}

// trial is one life with a session on it.
type trial struct {
	Life
	*session.Session
	mu         sync.Mutex
	complaints []string
}

func (t *trial) complain(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.complaints = append(t.complaints, fmt.Sprintf(format, args...))
}

// Close ends the life and what reads from it.
func (t *trial) Close() {
	t.HangUp()
	t.Life.Close()
	t.Session.Close()
}

// process is the life as a process, if it is one.
func (t *trial) process() (Process, bool) {
	p, ok := t.Life.(Process)
	return p, ok
}

// wrote is what a process wrote, for the end of a message.
func (t *trial) wrote() string {
	p, ok := t.process()
	if !ok || p.Output() == "" {
		return ""
	}
	const most = 1000
	return "; it wrote: " + cut(strings.ReplaceAll(p.Output(), "\n", " | "), most)
}

// begin starts a life and no more.
func (k *kit) begin(ctx context.Context) (*trial, error) {
	life, err := k.Start(ctx)
	if err != nil {
		return nil, err
	}
	t := &trial{Life: life}
	t.Session = session.New(life.Service(), false, t.complain)
	return t, nil
}

// with runs a check in a life that is configured and has its stream, and adds what broke the protocol.
func (k *kit) with(ctx context.Context, run func(t *trial) verdict) verdict {
	t, err := k.begin(ctx)
	if err != nil {
		return fail("it did not start this time: "+err.Error(), "")
	}
	defer t.Close()
	if err := k.configure(ctx, t, k.Options); err != nil {
		return fail("it refused its configuration this time: "+plain(err)+t.wrote(), "")
	}
	if err := t.Open(); err != nil {
		return fail("it opened no work stream: "+plain(err)+t.wrote(), "serve WorkerService.Work")
	}
	v := run(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.complaints) > 0 {
		return fail(strings.Join(t.complaints, "; "), "report on runs that have begun and have no outcome, and give each exactly one outcome")
	}
	return v
}

func (k *kit) configure(ctx context.Context, t *trial, options json.RawMessage) error {
	ctx, cancel := context.WithTimeout(ctx, configureBound)
	defer cancel()
	return t.Configure(ctx, &workerv1.ConfigureRequest{
		Queue: k.queue(), Options: options, Slots: uint32(k.slots()), Manager: "plugin-test", //nolint:gosec // bounded by describes
	})
}

func (k *kit) queue() string {
	if k.Queue != "" {
		return k.Queue
	}
	return k.manifest.GetName()
}

// slots is how many tasks the worker gets at once.
func (k *kit) slots() int {
	if k.Slots > 0 {
		return k.Slots
	}
	return max(1, int(k.manifest.GetSlots()))
}

// task is a task with a payload.
func (k *kit) task(payload json.RawMessage) *workerv1.Task {
	return &workerv1.Task{Id: task.RandomID(k.queue()).String(), Kind: k.manifest.GetName(), Payload: payload, Attempt: 1}
}

// slow is the payload for tests that need a task to last, as well as it is known.
func (k *kit) slow() json.RawMessage {
	if k.Slow != nil {
		return k.Slow
	}
	return k.Payloads[0]
}

// within waits until done is closed, at most for bound.
func within(ctx context.Context, bound time.Duration, done <-chan struct{}) bool {
	late := time.NewTimer(bound)
	defer late.Stop()
	select {
	case <-done:
		return true
	case <-late.C:
	case <-ctx.Done():
	}
	return false
}
