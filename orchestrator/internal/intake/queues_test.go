package intake_test

import (
	"context"
	"testing"

	"github.com/drover-jobs/drover/orchestrator/internal/intake"
	"github.com/drover-jobs/drover/protocol/task"
)

// A queue that comes is announced, counted and listened for, beside one that runs; one that has been left is neither counted nor
// listened for, and what was said of it stays, because its tasks wait for whoever serves it next.
func TestQueuesComeAndGo(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		m := start(t, b.client, 1, 1, atOnce)
		names := task.KeysOf("second")
		listeners := func(want int64) func() bool {
			return func() bool {
				heard := must[map[string]int64](t)(b.client.PubSubNumSub(t.Context(), names.WakeChannel(), names.CancelChannel()).Result())
				return heard[names.WakeChannel()] == want && heard[names.CancelChannel()] == want
			}
		}
		counted := func() bool {
			_, there := must[map[string]intake.Counts](t)(m.in.Counts(t.Context()))["second"]
			return there
		}
		for range 2 { // it may come again
			q := m.in.Queue(intake.Lane{
				Queue: "second", Dispatcher: newPool(judge{}, 1, 1, atOnce),
				Kind: func() string { return kind }, Check: func([]byte) error { return nil },
				Entry: func() task.Entry { return task.Entry{Queue: "second", Kind: kind} },
			})
			ctx, leave := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := q.Run(ctx, m.giveUp)
				ended <- err
			}()
			check(t, m.in.Announce(t.Context()))
			until(t, "it is listened for", listeners(1))
			if n := b.client.Exists(t.Context(), names.Entry()).Val(); n != 1 || !counted() {
				t.Errorf("%d entries, counted: %v", n, counted())
			}
			leave()
			check(t, <-ended)
			until(t, "nobody listens", listeners(0))
			if n := b.client.Exists(t.Context(), names.Entry()).Val(); n != 1 || counted() {
				t.Errorf("after it was left: %d entries, counted: %v", n, counted())
			}
		}
		submit(t, b.client, 5)
		until(t, "the other queue goes on", func() bool { return len(m.pool.taken()) == 5 && m.in.InHand() == 0 })
	})
}
