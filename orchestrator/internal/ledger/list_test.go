package ledger_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/drover-jobs/drover/orchestrator/internal/ledger"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// Waiting tasks are listed in the order in which they will run, those that are not due yet behind the others, in pages of any size.
func TestListWaiting(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		first := r.submit(7)
		later := r.submit(1, client.Delay(time.Hour), client.Unique(false))
		soon := r.submit(1, client.Delay(time.Minute), client.Unique(false))
		want := slices.Concat(first, soon, later)
		for _, limit := range []int{0, 1, 2, 3, 8, 9, 10} {
			got, total := r.list(ledger.Query{State: task.Waiting, Limit: limit, Payloads: limit == 1})
			if !slices.Equal(idsOf(got), want) || total != 9 {
				t.Errorf("with pages of %d: %v (%d), want %v", limit, idsOf(got), total, want)
			}
			for _, w := range got {
				if w.State != task.Waiting || (len(w.Payload) > 0) != (limit == 1) {
					t.Errorf("listed as %+v", w)
				}
			}
			if got[7].RunAt.IsZero() || !got[0].RunAt.IsZero() {
				t.Errorf("due at %s and %s", got[0].RunAt, got[7].RunAt)
			}
		}
	})
}

// While the head of the queue is taken, a list that goes on from page to page repeats nothing and leaves nothing out.
func TestListWhileTaken(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		ids := r.submit(30)
		page, err := r.ledger.List(t.Context(), ledger.Query{Queue: queue, State: task.Waiting, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		r.take(5)
		page, err = r.ledger.List(t.Context(), ledger.Query{Queue: queue, State: task.Waiting, Limit: 10, Token: page.Next})
		if err != nil || !slices.Equal(idsOf(page.Tasks), ids[10:20]) {
			t.Errorf("after five were taken: %v, %v", idsOf(page.Tasks), err)
		}
		r.take(17) // the last of the page as well
		page, err = r.ledger.List(t.Context(), ledger.Query{Queue: queue, State: task.Waiting, Limit: 10, Token: page.Next})
		if err != nil || !slices.Equal(idsOf(page.Tasks), ids[22:]) || page.Next != "" {
			t.Errorf("after all that was listed was taken: %v, %v", idsOf(page.Tasks), err)
		}
	})
}

// What managers have taken is listed, the longest taken first, with what this manager knows of it.
func TestListTaken(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		ids := r.submit(3)
		r.take(3)
		r.ledger.Known = func(known *task.Task) {
			if known.ID == ids[1] {
				known.State = task.Held
			}
		}
		running, total := r.list(ledger.Query{State: task.Running})
		if !slices.Equal(idsOf(running), ids) || running[1].State != task.Held || running[0].State != task.Running || total != 3 {
			t.Errorf("taken: %v (%d)", running, total)
		}
		if held, _ := r.list(ledger.Query{State: task.Held}); !slices.Equal(idsOf(held), ids[1:2]) {
			t.Errorf("held: %v", held)
		}
	})
}

// Failed tasks are listed by the time at which they are tried again.
func TestListFailed(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		ids := r.submit(5)
		due := time.Now().Add(time.Hour).Truncate(time.Second)
		r.fail(due, ids...)
		got, total := r.list(ledger.Query{State: task.Failed, Limit: 2})
		if !slices.Equal(idsOf(got), ids) || total != 5 || !got[1].RunAt.Equal(due.Add(time.Second)) || got[0].Counters.Failures != 2 {
			t.Errorf("%v (%d)", got, total)
		}
	})
}

// Dead letters of all kinds are listed from the latest on, each with its own state, quarantined and expired ones by themselves too, by what they died for when that is asked for, and
// with their history. Many that died in one second are listed once each.
func TestListDead(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		ids := r.submit(12)
		now := time.Now()
		r.bury(now.Add(-time.Hour), task.Dead, fault.Timeout, ids[:5]...)
		r.bury(now, task.Dead, fault.HTTPStatus, ids[5:8]...)
		r.bury(now, task.Quarantined, fault.Memory, ids[8:10]...)
		r.bury(now.Add(-2*time.Hour), task.Expired, fault.Timeout, ids[10])
		dead, total := r.list(ledger.Query{State: task.Dead, Limit: 1})
		if len(dead) != 11 || total != 11 || !sameSet(idsOf(dead[:5]), ids[5:10]) || !sameSet(idsOf(dead[5:10]), ids[:5]) || dead[10].ID != ids[10] {
			t.Fatalf("dead: %v (%d)", idsOf(dead), total)
		}
		for _, d := range dead {
			want := task.Dead
			switch {
			case slices.Contains(ids[8:10], d.ID):
				want = task.Quarantined
			case d.ID == ids[10]:
				want = task.Expired
			}
			if d.State != want {
				t.Errorf("%s is %s, want %s", d.ID, d.State, want)
			}
		}
		if d := dead[slices.IndexFunc(dead, func(d *task.Task) bool { return d.ID == ids[5] })]; d.Fault == nil || d.Fault.Kind != fault.HTTPStatus || len(d.History) != 1 || d.History[0].Message != "why" || d.Counters.Failures != 5 {
			t.Errorf("a dead letter: %+v", d)
		}
		if q, total := r.list(ledger.Query{State: task.Quarantined}); !sameSet(idsOf(q), ids[8:10]) || total != 2 {
			t.Errorf("quarantined: %v (%d)", q, total)
		}
		if e, total := r.list(ledger.Query{State: task.Expired}); !slices.Equal(idsOf(e), ids[10:11]) || total != 1 {
			t.Errorf("expired: %v (%d)", e, total)
		}
		if d, total := r.list(ledger.Query{State: task.Dead, Filter: ledger.Filter{Reason: "timeout"}, Limit: 2}); !sameSet(idsOf(d), append(ids[:5:5], ids[10])) || total != -1 {
			t.Errorf("died of a timeout: %v (%d)", idsOf(d), total)
		}
	})
}

// Tasks of foreign asynq clients are listed like others, and an ID without a task is left out.
func TestListForeign(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		info, err := r.foreign.EnqueueContext(t.Context(), asynq.NewTask("theirs", []byte("not JSON")), asynq.Queue(queue), asynq.TaskID("their-id"))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.rdb.LPush(t.Context(), r.keys.Pending(), "ghost").Err(); err != nil {
			t.Fatal(err)
		}
		if err := r.rdb.HSet(t.Context(), r.keys.Task("garbage"), "msg", "\xff\xff", "state", "pending").Err(); err != nil {
			t.Fatal(err)
		}
		if err := r.rdb.LPush(t.Context(), r.keys.Pending(), "garbage").Err(); err != nil {
			t.Fatal(err)
		}
		got, _ := r.list(ledger.Query{State: task.Waiting})
		if len(got) != 2 || got[0].ID.Key != info.ID || got[0].Kind != "theirs" || got[1].ID.Key != "garbage" || got[1].Fault == nil {
			t.Errorf("%+v", got)
		}
	})
}

// What cannot be listed is refused with the reason.
func TestListRefused(t *testing.T) {
	t.Parallel()
	l := ledger.New(ledger.Deps{}) // Redis is not even asked
	for name, c := range map[string]struct {
		q    ledger.Query
		want string
	}{
		"completed": {ledger.Query{State: task.Completed}, "record"},
		"cancelled": {ledger.Query{State: task.Cancelled}, "record"},
		"unknown":   {ledger.Query{}, "say which"},
		"limit":     {ledger.Query{State: task.Dead, Limit: 1001}, "1000"},
		"negative":  {ledger.Query{State: task.Dead, Limit: -1}, "between"},
		"token":     {ledger.Query{State: task.Dead, Token: "?"}, "page_token"},
		"token 2":   {ledger.Query{State: task.Dead, Token: "OTkgMCB4"}, "page_token"},
		"kind":      {ledger.Query{State: task.Waiting, Filter: ledger.Filter{Reason: "timeout"}}, "dead letters"},
		"reason":    {ledger.Query{State: task.Dead, Filter: ledger.Filter{Reason: "memory-mux"}}, `did you mean "memory-max"`},
		"match":     {ledger.Query{State: task.Dead, Filter: ledger.Filter{Match: strings.Repeat("x", 1025)}}, "1024"},
		"never":     {ledger.Query{State: task.Dead, Filter: ledger.Filter{DiedBefore: time.Unix(5, 0), DiedSince: time.Unix(5, 0)}}, "died_since"},
	} {
		c.q.Queue = queue
		_, err := l.List(t.Context(), c.q)
		var refused *ledger.InvalidError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A page is bounded in what it carries, however large the payloads are.
func TestListBounded(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		large := strings.Repeat("x", 3<<20)
		var ids []task.ID
		for i := range 5 {
			s, err := r.tasks.Submit(t.Context(), queue, map[string]any{"n": i, "large": large})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, s.ID)
		}
		page, err := r.ledger.List(t.Context(), ledger.Query{Queue: queue, State: task.Waiting})
		if err != nil || len(page.Tasks) != 3 || page.Next == "" {
			t.Errorf("%d tasks, more: %v, %v", len(page.Tasks), page.Next != "", err)
		}
		if got, _ := r.list(ledger.Query{State: task.Waiting}); !slices.Equal(idsOf(got), ids) {
			t.Errorf("%v, want %v", idsOf(got), ids)
		}
	})
}

func sameSet(a, b []task.ID) bool {
	compare := func(x, y task.ID) int { return strings.Compare(x.Key, y.Key) }
	return slices.Equal(slices.SortedFunc(slices.Values(a), compare), slices.SortedFunc(slices.Values(b), compare))
}
