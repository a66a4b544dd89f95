package orchestrator_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/client/direct"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// replicated is a Redis whose primary can be lost. In a Cluster it is the one that has the queue "noop".
type replicated struct {
	config   string // the section of the configuration
	url      string
	primary  func() *testenv.Redis
	await    func(before *testenv.Redis) *testenv.Redis
	failover func()
	away     func() // takes the primary away, and lets nobody replace it
}

func replicatedSets() map[string]func(t *testing.T) replicated {
	return map[string]func(t *testing.T) replicated{
		"sentinel": func(t *testing.T) replicated {
			t.Helper()
			s := testenv.StartSentinel(t, testenv.SentinelOptions{Password: "s3cret", SentinelPassword: "w4tch"})
			return replicated{
				config: fmt.Sprintf("{address: %q, password_file: %q, sentinel_password_file: %q}",
					"redis-sentinel://"+strings.Join(s.Addresses(), ",")+"/0?master="+testenv.MasterName, secret(t, "s3cret"), secret(t, "w4tch")),
				url: s.URL() + "&wait_replicas=1", primary: s.Primary, await: s.AwaitPrimary, failover: s.Failover,
				away: func() {
					primary := s.Primary()
					s.FreezeSentinels()
					primary.Kill()
				},
			}
		},
		"cluster": func(t *testing.T) replicated {
			t.Helper()
			c, key := testenv.StartCluster(t, testenv.ClusterOptions{Password: "s3cret"}), task.KeysOf("noop").Pending()
			return replicated{
				config: fmt.Sprintf("{address: %q, password_file: %q}", "redis-cluster://"+strings.Join(c.Addresses(), ","), secret(t, "s3cret")),
				url:    c.URL() + "?wait_replicas=1", primary: func() *testenv.Redis { return c.Primary(key) },
				await:    func(before *testenv.Redis) *testenv.Redis { return c.AwaitPrimary(key, before) },
				failover: func() { c.Failover(key) },
				away: func() {
					c.Replica(key).Kill()
					c.Primary(key).Kill()
				},
			}
		},
	}
}

// secret writes a password into a file.
func secret(t *testing.T, password string) string {
	t.Helper()
	path := testenv.ShortDir(t) + "/password"
	if err := os.WriteFile(path, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The primary is killed, and later told to give way, under 500 tasks a second to two managers: every task that was accepted ends,
// and work goes on within 5 seconds of the promotion. While there is no primary at all, a manager uses under 5 % of a core. In the long form there
// are ten failovers of each sort.
func TestFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	rounds := 1
	if long() {
		rounds = 10
	}
	for name, start := range replicatedSets() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := start(t)
			var managers []*manager
			for _, name := range []string{"first", "second"} {
				m := setUp(t, set.config, "", "")
				m.rename(name)
				managers = append(managers, m.start())
			}
			c, err := direct.Open(set.url, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			eventually(t, "a task ends", func() error {
				_, err := client.Call[struct{}](t.Context(), c, "noop", map[string]any{"n": "first of all"})
				return err
			})
			load := press(t, c)
			load.goOn(t)
			for range rounds {
				before := set.primary()
				load.lose(t, "the kill", func() time.Time {
					before.Kill()
					set.await(before)
					return time.Now()
				})
				before.Start() // as a replica
				load.goOn(t)
				before = set.primary()
				load.lose(t, "the failover by hand", func() time.Time {
					set.failover()
					set.await(before)
					return time.Now()
				})
				load.goOn(t)
			}
			load.settle(t)

			set.away()
			const absence = 4 * time.Second
			busy, began := processorTime(t, managers[0].process.Process.Pid), time.Now()
			time.Sleep(absence) //nolint:forbidigo // the time of the absence
			share := float64(processorTime(t, managers[0].process.Process.Pid)-busy) / float64(time.Since(began))
			t.Logf("the manager used %.1f %% of a core while there was no primary", 100*share)
			if share > 0.05 {
				t.Errorf("the manager used %.1f %% of a core while there was no primary", 100*share)
			}
		})
	}
}

// pressing submits tasks at a steady rate, whatever becomes of them, and notes those that were accepted.
type pressing struct {
	c    *direct.Client
	stop context.CancelFunc
	work sync.WaitGroup

	mu       sync.Mutex
	accepted []task.ID
	refused  int
	moments  []moment
}

// moment is a promotion, and what it was after.
type moment struct {
	what string
	at   time.Time
}

// The rate of the load: perTick tasks each tick are 500 a second.
const (
	loadTick = 20 * time.Millisecond
	perTick  = 10
)

func press(t *testing.T, c *direct.Client) *pressing {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &pressing{c: c, stop: stop}
	t.Cleanup(func() {
		stop()
		l.work.Wait()
	})
	l.work.Go(func() {
		ticker := time.NewTicker(loadTick)
		defer ticker.Stop()
		for n := 0; ; n += perTick {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			l.work.Go(func() { l.submit(ctx, n) })
		}
	})
	return l
}

// submit submits the tasks of one tick.
func (l *pressing) submit(ctx context.Context, n int) {
	const answerWithin = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerWithin)
	defer cancel()
	work := make([]client.Work, perTick)
	for i := range work {
		work[i] = client.Work{Queue: "noop", Payload: map[string]any{"n": n + i}}
	}
	batch, _ := l.c.SubmitBatch(ctx, work) // each task has its error
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range batch {
		if b.Err != nil {
			l.refused++
			continue
		}
		l.accepted = append(l.accepted, b.ID)
	}
}

func (l *pressing) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.accepted)
}

// goOn waits until a second's tasks more have been accepted.
func (l *pressing) goOn(t *testing.T) {
	t.Helper()
	from, enough := l.count(), int(time.Second/loadTick)*perTick
	eventually(t, "tasks are accepted", func() error {
		if n := l.count() - from; n < enough {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
}

// lose loses a primary, and notes when another one was there.
func (l *pressing) lose(t *testing.T, what string, how func() time.Time) {
	t.Helper()
	began := time.Now()
	at := how()
	t.Logf("%s: another primary after %s", what, at.Sub(began).Round(time.Millisecond))
	l.moments = append(l.moments, moment{what, at})
}

// settle ends the load and wants every task that was accepted to have ended, and work to have gone on soon after each promotion.
func (l *pressing) settle(t *testing.T) {
	t.Helper()
	late := watchLateness(t)
	l.stop()
	l.work.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ended, err := client.WaitAll(ctx, l.c, l.accepted...)
	if err != nil {
		t.Fatal(err)
	}
	again := 0
	next := make([]time.Time, len(l.moments))
	for i, e := range ended {
		if e.State != task.Completed {
			t.Errorf("task %s was accepted and is %s: %+v", l.accepted[i], e.State, e)
		}
		if e.Attempts > 1 || e.Counters.Losses > 0 {
			again++
		}
		for n, m := range l.moments {
			if e.Ended.After(m.at) && (next[n].IsZero() || e.Ended.Before(next[n])) {
				next[n] = e.Ended
			}
		}
	}
	for n, m := range l.moments {
		took := next[n].Sub(m.at)
		t.Logf("%s: the first task ended %s after the promotion", m.what, took.Round(time.Millisecond))
		late.within(t, "from the promotion after "+m.what+" to the end of a task", took, 5*time.Second)
	}
	t.Logf("%d tasks were accepted and ended, %d of them were known to run again, %d were refused", len(ended), again, l.refused)
}

// rename gives the manager another name.
func (m *manager) rename(name string) {
	m.t.Helper()
	text, err := os.ReadFile(m.config)
	if err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.config, []byte(strings.Replace(string(text), "name: test,", "name: "+name+",", 1)), 0o600); err != nil {
		m.t.Fatal(err)
	}
}
