package roster_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/roster"
	"github.com/drover-jobs/drover/protocol/testenv"
)

func onBoth(t *testing.T, test func(t *testing.T, rdb *redis.Client)) {
	t.Helper()
	for name, start := range map[string]func(t *testing.T) string{
		"redis":    func(t *testing.T) string { return testenv.StartRedis(t, testenv.RedisOptions{}).Addr() },
		"embedded": func(t *testing.T) string { return miniredis.RunT(t).Addr() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := redis.NewClient(&redis.Options{Addr: start(t)})
			t.Cleanup(func() { _ = rdb.Close() })
			test(t, rdb)
		})
	}
}

// journal is a log that tests read.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) count(text string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.text.String(), text)
}

// run runs the roster of a manager; the returned function ends it.
func run(t *testing.T, rdb *redis.Client, name string, log *journal) (*roster.Roster, func()) {
	t.Helper()
	r := roster.New(roster.Deps{Redis: rdb, Self: func() roster.Manager {
		return roster.Manager{Name: name, Host: "h", PID: 7, State: "running", Queues: []string{"q"}, Started: time.UnixMilli(1000)}
	}, Log: slog.New(slog.NewTextHandler(log, nil))})
	r.Hasten(10 * time.Millisecond)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	end := sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(end)
	return r, end
}

func names(t *testing.T, r *roster.Roster) string {
	t.Helper()
	all, _, err := r.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range all {
		list = append(list, m.Name)
	}
	return strings.Join(list, " ")
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); {
		if time.Now().After(deadline) {
			t.Fatalf("not within 10 s: %s", what)
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // between two looks
	}
}

// Every manager that runs is listed with what it says of itself, one that stopped is not, and one that fell silent is until it is
// forgotten.
func TestList(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		a, _ := run(t, rdb, "a", &journal{})
		_, endB := run(t, rdb, "b", &journal{})
		eventually(t, "both are listed", func() bool { return names(t, a) == "a b" })
		all, ahead, err := a.List(t.Context())
		if err != nil || ahead.Abs() > 2*time.Second {
			t.Fatalf("the clock of Redis is said to be %s ahead; %v", ahead, err)
		}
		if m := all[0]; !m.Own || m.Absent() || m.PID != 7 || m.Host != "h" || m.State != "running" || len(m.Queues) != 1 || !m.Started.Equal(time.UnixMilli(1000)) {
			t.Errorf("it is listed as %+v", m)
		}
		if all[1].Own {
			t.Error("the other is called this manager")
		}
		endB()
		if got := names(t, a); got != "a" {
			t.Errorf("after its end the list is %q", got)
		}
		now := rdb.Time(t.Context()).Val()
		for instance, silence := range map[string]time.Duration{"silent": time.Minute, "forgotten": time.Hour} {
			value := now.Add(-silence).UnixMilli()
			if err := rdb.HSet(t.Context(), roster.Key, instance, slog.Int64Value(value).String()+` {"name":"`+instance+`"}`).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if err := rdb.HSet(t.Context(), roster.Key, "broken", "x").Err(); err != nil {
			t.Fatal(err)
		}
		if got := names(t, a); got != "a silent" {
			t.Errorf("the list is %q, want the silent one in it and neither the forgotten nor the broken one", got)
		}
		all, _, err = a.List(t.Context())
		if err != nil || !all[1].Absent() || all[1].Silence < time.Minute || all[1].Silence > 2*time.Minute {
			t.Errorf("the silent one is %+v; %v", all[1], err)
		}
	})
}

// Two managers with one name are told of it, once, and again when it happens again.
func TestTwinsAreTold(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		log := &journal{}
		const line = "another manager has the same name"
		killed := strconv.FormatInt(rdb.Time(t.Context()).Val().UnixMilli(), 10) + ` {"name":"a"}`
		if err := rdb.HSet(t.Context(), roster.Key, "killed", killed).Err(); err != nil {
			t.Fatal(err)
		}
		run(t, rdb, "a", log)
		eventually(t, "it is listed beside the one that was killed", func() bool { return rdb.HLen(t.Context(), roster.Key).Val() == 2 })
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // some beats
		if log.count(line) > 0 {
			t.Error("a manager that was killed is told of")
		}
		if err := rdb.HDel(t.Context(), roster.Key, "killed").Err(); err != nil {
			t.Fatal(err)
		}
		_, end := run(t, rdb, "a", &journal{})
		eventually(t, "it is told", func() bool { return log.count(line) == 1 })
		end()
		eventually(t, "the other is gone", func() bool { return rdb.HLen(t.Context(), roster.Key).Val() == 1 })
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // some beats without a twin
		if n := log.count(line); n != 1 {
			t.Errorf("it is told %d times", n)
		}
		run(t, rdb, "a", &journal{})
		eventually(t, "it is told again", func() bool { return log.count(line) == 2 })
	})
}

// A manager that was killed and has come back is listed once as soon as the one before counts as absent; one of that name on another
// host, one of another name on the host, and one that may still live stay.
func TestComesBack(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, rdb *redis.Client) {
		now := rdb.Time(t.Context()).Val()
		for instance, e := range map[string]struct {
			silence time.Duration
			text    string
		}{
			"killed":   {16 * time.Second, `{"name":"a","host":"h"}`},
			"earlier":  {5 * time.Minute, `{"name":"a","host":"h"}`},
			"lives":    {5 * time.Second, `{"name":"a","host":"h"}`},
			"far":      {time.Minute, `{"name":"a","host":"far"}`},
			"other":    {time.Minute, `{"name":"b","host":"h"}`},
			"unlikely": {time.Minute, `{"name`},
			"odd":      {time.Minute, `"a"`},
		} {
			value := strconv.FormatInt(now.Add(-e.silence).UnixMilli(), 10) + " " + e.text
			if err := rdb.HSet(t.Context(), roster.Key, instance, value).Err(); err != nil {
				t.Fatal(err)
			}
		}
		_, end := run(t, rdb, "a", &journal{})
		eventually(t, "those before it are forgotten", func() bool {
			return !rdb.HExists(t.Context(), roster.Key, "killed").Val() && !rdb.HExists(t.Context(), roster.Key, "earlier").Val()
		})
		end()
		left := rdb.HKeys(t.Context(), roster.Key).Val()
		slices.Sort(left)
		if want := []string{"far", "lives", "odd", "other", "unlikely"}; !slices.Equal(left, want) {
			t.Errorf("left are %q, want %q", left, want)
		}
	})
}
