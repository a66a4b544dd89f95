package intake_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
)

// deaf is a Redis client that carries out some scripts and loses their answers.
type deaf struct {
	redis.UniversalClient
	lose atomic.Int64 // how many answers are still to be lost
}

func (d *deaf) Process(ctx context.Context, cmd redis.Cmder) error {
	err := d.UniversalClient.Process(ctx, cmd)
	if err == nil && d.lose.Load() > 0 {
		d.lose.Add(-1)
		err = context.DeadlineExceeded
		cmd.SetErr(err)
	}
	return err
}

// A dequeue whose answer is lost loses no task: the next call brings what it took, in the old order, before anything new.
func TestLostAnswerLosesNoTask(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		keys := submit(t, b.client, 10)
		check(t, newBench(b.client).warm(t)) // Redis knows the scripts
		d := &deaf{UniversalClient: b.client}
		d.lose.Store(2)
		lane := newBench(d)
		if got := lane.Take(4); len(got) != 0 {
			t.Fatalf("a lost answer brought %d tasks", len(got))
		}
		if got := lane.Take(0); len(got) != 0 {
			t.Fatalf("a lost answer brought %d tasks", len(got))
		}
		if got := keysOf(lane.Take(2)); !slices.Equal(got, keys[:6]) {
			t.Errorf("it took %v, want %v", got, keys[:6])
		}
		ledger(t, b.client, 6)
		if got := keysOf(lane.Take(10)); !slices.Equal(got, keys[6:]) {
			t.Errorf("then %v, want %v", got, keys[6:])
		}
		if lane.Held() != 10 {
			t.Errorf("%d are held, want 10", lane.Held())
		}
	})
}

// A stop right after a dequeue whose answer was lost finds out what it took and gives it back.
func TestStopAfterLostAnswer(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		keys := submit(t, b.client, 20)
		check(t, newBench(b.client).warm(t))
		d := &deaf{UniversalClient: b.client}
		d.lose.Store(1)
		m := start(t, d, 4, 4, untilTold)
		until(t, "the answer is lost", func() bool { return d.lose.Load() == 0 })
		check(t, m.stop())
		if got := waiting(t, b.client); !slices.Equal(got, keys) {
			t.Errorf("the queue is %v", got)
		}
		ledger(t, b.client, 0)
	})
}

func (b bench) warm(t *testing.T) error {
	t.Helper()
	b.Take(0)
	_, err := b.Settle(nil, nil)
	return err
}

func keysOf(jobs []*job.Job) []string {
	keys := make([]string, len(jobs))
	for i, j := range jobs {
		keys[i] = j.ID.Key
	}
	return keys
}

// Whatever the order and the batches in which tasks come back, and whoever takes some of them meanwhile, they stand at the
// head of the queue in the order in which they were first there, before those that were never taken.
func TestOrderOfThoseGivenBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b broker) {
		for seed := range uint64(30) {
			random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's choices
			check(t, b.client.FlushAll(t.Context()).Err())
			keys := submit(t, b.client, 30)
			lanes := []bench{newBench(b.client), newBench(b.client)}
			held := [][]*job.Job{nil, nil}
			for range 20 {
				i := random.IntN(2)
				if random.IntN(2) == 0 {
					held[i] = append(held[i], lanes[i].Take(random.IntN(8))...)
					continue
				}
				random.Shuffle(len(held[i]), func(a, b int) { held[i][a], held[i][b] = held[i][b], held[i][a] })
				n := random.IntN(len(held[i]) + 1)
				lanes[i].giveBack(t, held[i][:n])
				held[i] = held[i][n:]
			}
			lanes[0].giveBack(t, held[0])
			lanes[1].giveBack(t, held[1])
			if got := waiting(t, b.client); !slices.Equal(got, keys) {
				t.Fatalf("seed %d: the queue is\n%v\nwant\n%v", seed, got, keys)
			}
			ledger(t, b.client, 0)
		}
	})
}

// giveBack settles jobs as never begun, sorted as the settler sorts them, and lets go of them.
func (b bench) giveBack(t *testing.T, jobs []*job.Job) {
	t.Helper()
	if len(jobs) > 0 {
		b.GiveBack(t.Context(), jobs)
	}
}
