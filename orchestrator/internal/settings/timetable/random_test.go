package timetable_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings/timetable"
)

// anySpec makes a timetable that a person could write.
func anySpec(r *rand.Rand) timetable.Spec {
	zones := []string{"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca", "Pacific/Apia", "Asia/Tehran"}
	s := timetable.Spec{Name: fmt.Sprint(r.IntN(5)), Zone: zones[r.IntN(len(zones))]}
	if r.IntN(4) == 0 {
		s.Every = time.Duration(1+r.IntN(100_000)) * time.Second
		return s
	}
	field := func(low, high int) string {
		switch r.IntN(4) {
		case 0:
			return "*"
		case 1:
			return fmt.Sprintf("*/%d", 1+r.IntN(high))
		case 2:
			from := low + r.IntN(high-low)
			return fmt.Sprintf("%d-%d", from, from+r.IntN(high-from)+1)
		default:
			return fmt.Sprint(low + r.IntN(high-low+1))
		}
	}
	s.Cron = field(0, 59) + " " + field(0, 23) + " * * " + field(0, 6)
	return s
}

// Over random timetables, zones and moments: the next due time is after the moment, a whole minute or second, none lies between the
// two, none comes twice, and its run begins within the jitter.
func TestRandomTimes(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		spec := anySpec(r)
		spec.Jitter = time.Duration(r.IntN(60)) * time.Second
		made := table(t, spec)
		now := time.Unix(1_500_000_000+r.Int64N(500_000_000), r.Int64N(1_000_000_000))
		seen := map[int64]bool{}
		for range 50 {
			due := made.Next(now)
			if due.IsZero() {
				t.Fatalf("%+v: nothing is due after %s", spec, now)
			}
			if !due.After(now) || seen[due.Unix()] || due.Nanosecond() != 0 || spec.Cron != "" && due.Second() != 0 {
				t.Fatalf("%+v: due at %s after %s", spec, due, now)
			}
			if between := now.Add(time.Duration(r.Int64N(int64(due.Sub(now))))); !made.Next(between).Equal(due) {
				t.Fatalf("%+v: due at %s after %s, but at %s after %s", spec, due, now, made.Next(between), between)
			}
			if late := made.FireAt(due).Sub(due); late < 0 || late > 0 && late >= spec.Jitter {
				t.Fatalf("%+v: %s late", spec, late)
			}
			seen[due.Unix()] = true
			now = due
		}
	}
}

// On days without a change of the clock a timetable in a zone is that of the plain calendar, moved by the zone's offset.
func TestAsThePlainCalendar(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	const offset = time.Hour // of Berlin in winter
	for range 200 {
		spec := anySpec(r)
		if spec.Every > 0 {
			continue
		}
		spec.Zone = "Europe/Berlin"
		local := table(t, spec)
		spec.Zone = ""
		plain := table(t, spec)
		from := time.Date(2026, time.December, 1+r.IntN(20), r.IntN(24), r.IntN(60), 0, 0, time.UTC)
		if want, got := plain.Next(from.Add(offset)).Add(-offset), local.Next(from); !got.Equal(want) {
			t.Errorf("%q after %s: %s, want %s", spec.Cron, from, got, want)
		}
	}
}

// Whatever stands in the fields, the answer is a timetable or a reason, never a panic, and a timetable moves on.
func FuzzNew(f *testing.F) {
	for _, seed := range []string{"30 3 * * *", "@daily", "* * * * *", "*/0 * * * *", "TZ=", "CRON_TZ=X 1 2 3 4 5", "@every 1s", "1-0 * * * *", "0 0 31 2 *", "?", "0 0 * * 7", "\x00"} {
		f.Add(seed, "Europe/Berlin", int64(1_700_000_000))
	}
	f.Fuzz(func(t *testing.T, cron, zone string, moment int64) {
		made, err := timetable.New(timetable.Spec{Name: "f", Cron: cron, Zone: zone})
		if err != nil {
			return
		}
		now := time.Unix(moment%4_000_000_000, 0)
		if next := made.Next(now); !next.IsZero() && !next.After(now) {
			t.Errorf("%q in %q: due at %s after %s", cron, zone, next, now)
		}
	})
}
