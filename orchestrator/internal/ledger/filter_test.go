package ledger_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/ledger"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// Dead letters are found by what they died for, when, and with which message, and a list, a dry run and a retry find the same ones.
func TestFilters(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		ids := r.submit(6)
		now := time.Now().Truncate(time.Second)
		r.bury(now.Add(-3*time.Hour), task.Dead, fault.Timeout, ids[0])
		r.bury(now.Add(-2*time.Hour), task.Quarantined, fault.Memory, ids[1])
		r.bury(now.Add(-time.Hour), task.Expired, fault.Timeout, ids[2])
		r.bury(now.Add(-time.Minute), task.Dead, fault.HTTPStatus, ids[3:]...)
		history, err := task.EncodeHistory([]task.Attempt{{End: task.EndKilled, Exit: "crash"}, {End: task.EndKilled, Exit: "memory-max"}})
		if err != nil || r.rdb.HSet(t.Context(), r.keys.Task(ids[1].Key), task.FieldHistory, history).Err() != nil {
			t.Fatal(err)
		}
		all := []int{0, 1, 2, 3, 4, 5}
		for name, c := range map[string]struct {
			filter ledger.Filter
			want   []int
		}{
			"all":      {ledger.Filter{}, all},
			"kind":     {ledger.Filter{Reason: "timeout"}, []int{0, 2}},
			"exit":     {ledger.Filter{Reason: "memory-max"}, []int{1}},
			"not last": {ledger.Filter{Reason: "crash"}, nil},
			"state":    {ledger.Filter{Reason: "dead"}, []int{0, 3, 4, 5}},
			"expired":  {ledger.Filter{Reason: "expired"}, []int{2}},
			"older":    {ledger.Filter{DiedBefore: now.Add(-2 * time.Hour)}, []int{0}},
			"newer":    {ledger.Filter{DiedSince: now.Add(-2 * time.Hour)}, []int{1, 2, 3, 4, 5}},
			"between":  {ledger.Filter{DiedSince: now.Add(-2 * time.Hour), DiedBefore: now.Add(-time.Hour)}, []int{1}},
			"match":    {ledger.Filter{Match: "WHY"}, all},
			"no match": {ledger.Filter{Match: "because"}, nil},
			"together": {ledger.Filter{Match: "w", Reason: "timeout", DiedSince: now.Add(-time.Hour)}, []int{2}},
		} {
			var want []task.ID
			for _, i := range c.want {
				want = append(want, ids[i])
			}
			listed, total := r.list(ledger.Query{State: task.Dead, Filter: c.filter})
			if !sameSet(idsOf(listed), want) || (total == -1) != (name != "all") {
				t.Errorf("%s: listed %v (%d), want %v", name, idsOf(listed), total, want)
			}
			part, err := r.ledger.DropDead(t.Context(), ledger.Selection{Queue: queue, Filter: c.filter, DryRun: true})
			if err != nil || part.Changed != len(want) || len(part.Refused) != 0 {
				t.Errorf("%s: a dry run counts %+v, %v; want %d", name, part, err, len(want))
			}
		}
		if n := r.rdb.ZCard(t.Context(), r.keys.Archived()).Val(); n != 6 {
			t.Fatalf("dry runs left %d of 6", n)
		}
		part, err := r.ledger.RetryDead(t.Context(), ledger.Selection{Queue: queue, Filter: ledger.Filter{Reason: "timeout", DiedBefore: now.Add(-2 * time.Hour)}})
		waiting, _ := r.list(ledger.Query{State: task.Waiting})
		if err != nil || part.Changed != 1 || !slices.Equal(idsOf(waiting), ids[:1]) {
			t.Errorf("retried %+v, %v: %v", part, err, idsOf(waiting))
		}
	})
}

// In parts of any size everybody who fits is put back once: who dies again after the first part began is left, also where most do not fit.
func TestParts(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, r *rig) {
		ids := r.submit(400)
		at := time.Now().Add(-time.Minute)
		for i, id := range ids {
			kind := fault.Timeout
			if i%2 == 0 {
				kind = fault.HTTPStatus
			}
			r.bury(at.Add(time.Duration(i/150)*time.Second), task.Dead, kind, id)
		}
		for _, dry := range []bool{true, false} {
			s := ledger.Selection{Queue: queue, Filter: ledger.Filter{Reason: "timeout"}, Limit: 60, DryRun: dry}
			sum, parts := 0, 0
			for ; parts == 0 || s.Token != ""; parts++ {
				part, err := r.ledger.RetryDead(t.Context(), s)
				if err != nil || part.Changed > 60+50 || parts > 10 {
					t.Fatalf("part %d: %+v, %v", parts, part, err)
				}
				sum += part.Changed
				if s.Token = part.Next; parts == 0 && !dry {
					again, _ := r.list(ledger.Query{State: task.Waiting, Limit: 1})
					r.bury(time.Now().Add(2*time.Second), task.Dead, fault.Timeout, again[0].ID)
				}
			}
			if sum != 200 || parts < 3 {
				t.Errorf("dry %v: %d in %d parts, want 200", dry, sum, parts)
			}
		}
		if n := r.rdb.LLen(t.Context(), r.keys.Pending()).Val(); n != 199 {
			t.Errorf("%d wait, want 199: all but the one that died again", n)
		}
		for _, token := range []string{"x", "1.?", "." + strings.Repeat("x", 9)} {
			if _, err := r.ledger.DropDead(t.Context(), ledger.Selection{Queue: queue, Token: token}); err == nil {
				t.Errorf("token %q is taken", token)
			}
		}
	})
}

// Why a process ends may be asked for, whatever the reason.
func TestReasons(t *testing.T) {
	t.Parallel()
	for _, reason := range job.ExitReasons() {
		if !slices.Contains(task.Reasons(), string(reason)) {
			t.Errorf("%s is missing", reason)
		}
	}
}
