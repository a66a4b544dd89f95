package timetable_test

import (
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings/timetable"
)

func table(t *testing.T, s timetable.Spec) *timetable.Timetable {
	t.Helper()
	made, err := timetable.New(s)
	if err != nil {
		t.Fatalf("%+v: %v", s, err)
	}
	return made
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

// The next due times are those that a person expects, also on the days on which the clock of the zone is changed: what is skipped is due
// at the change, what comes twice the first time, and hours that are * go by elapsed time.
func TestNext(t *testing.T) {
	t.Parallel()
	const berlin, newYork = "Europe/Berlin", "America/New_York"
	for _, c := range []struct {
		name, cron string
		every      time.Duration
		zone       string
		after      string
		want       []string
	}{
		{name: "every day", cron: "30 3 * * *", after: "2026-12-01T03:30:00Z", want: []string{"2026-12-02T03:30:00Z", "2026-12-03T03:30:00Z"}},
		{name: "a moment before", cron: "30 3 * * *", after: "2026-12-01T03:29:59.999Z", want: []string{"2026-12-01T03:30:00Z"}},
		{name: "weekdays", cron: "0 9 * * 1-5", zone: berlin, after: "2026-12-04T12:00:00Z", want: []string{"2026-12-07T08:00:00Z"}},
		{name: "leap day", cron: "0 0 29 2 *", after: "2026-12-01T00:00:00Z", want: []string{"2028-02-29T00:00:00Z"}},
		{name: "word", cron: "@monthly", zone: newYork, after: "2026-11-15T00:00:00Z", want: []string{"2026-12-01T05:00:00Z"}},
		{name: "interval", every: 10 * time.Minute, zone: berlin, after: "2026-12-01T03:30:00Z", want: []string{"2026-12-01T03:40:00Z"}},
		{name: "odd interval", every: 7 * time.Second, after: "1970-01-01T00:00:00Z", want: []string{"1970-01-01T00:00:07Z", "1970-01-01T00:00:14Z"}},
		{name: "interval before 1970", every: 7 * time.Second, after: "1969-12-31T23:59:58Z", want: []string{"1970-01-01T00:00:00Z"}},
		// Berlin: on 29 March 2026, 02:00 becomes 03:00 at 01:00 UTC; on 25 October 2026, 03:00 becomes 02:00 at 01:00 UTC.
		{name: "Berlin, skipped", cron: "30 2 * * *", zone: berlin, after: "2026-03-28T12:00:00Z",
			want: []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{name: "Berlin, skipped several", cron: "*/20 2 * * *", zone: berlin, after: "2026-03-28T12:00:00Z",
			want: []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{name: "Berlin, skipped beside the hour of the change", cron: "30 2,3 * * *", zone: berlin, after: "2026-03-28T12:00:00Z",
			want: []string{"2026-03-29T01:00:00Z", "2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"}},
		{name: "Berlin, skipped together with the hour of the change", cron: "0 2,3 * * *", zone: berlin, after: "2026-03-28T12:00:00Z",
			want: []string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{name: "Berlin, twice", cron: "30 2 * * *", zone: berlin, after: "2026-10-24T12:00:00Z",
			want: []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{name: "Berlin, asked in the second hour", cron: "30 2 * * *", zone: berlin, after: "2026-10-25T01:15:00Z",
			want: []string{"2026-10-26T01:30:00Z"}},
		{name: "Berlin, at the change back", cron: "0 3 * * *", zone: berlin, after: "2026-10-24T12:00:00Z",
			want: []string{"2026-10-25T02:00:00Z"}},
		{name: "Berlin, hours are *, skipped", cron: "30 * * * *", zone: berlin, after: "2026-03-29T00:00:00Z",
			want: []string{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"}},
		{name: "Berlin, hours are *, on the change", cron: "0 * * * *", zone: berlin, after: "2026-03-29T00:00:00Z",
			want: []string{"2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"}},
		{name: "Berlin, hours are *, twice", cron: "*/30 * * * *", zone: berlin, after: "2026-10-25T00:00:00Z",
			want: []string{"2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"}},
		{name: "Berlin, interval over the change", every: time.Hour, zone: berlin, after: "2026-10-25T00:00:00Z",
			want: []string{"2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"}},
		// New York: on 8 March 2026, 02:00 becomes 03:00 at 07:00 UTC; on 1 November 2026, 02:00 becomes 01:00 at 06:00 UTC.
		{name: "New York, skipped", cron: "30 2 * * *", zone: newYork, after: "2026-03-07T12:00:00Z",
			want: []string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"}},
		{name: "New York, twice", cron: "30 1 * * *", zone: newYork, after: "2026-10-31T12:00:00Z",
			want: []string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
		{name: "New York, every two hours, twice", cron: "0 */1 * * *", zone: newYork, after: "2026-11-01T04:30:00Z",
			want: []string{"2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z", "2026-11-01T07:00:00Z"}},
		{name: "New York, midnight of a Sunday", cron: "@weekly", zone: newYork, after: "2026-10-26T12:00:00Z",
			want: []string{"2026-11-01T04:00:00Z", "2026-11-08T05:00:00Z"}},
		// Elsewhere: half an hour's change, a midnight that does not come, a day that does not come.
		{name: "Lord Howe, skipped", cron: "15 2 * * *", zone: "Australia/Lord_Howe", after: "2026-10-03T00:00:00Z",
			want: []string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		{name: "Cairo, no midnight", cron: "0 0 * * *", zone: "Africa/Cairo", after: "2026-04-23T12:00:00Z",
			want: []string{"2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"}},
		{name: "Samoa, no such day", cron: "0 12 30 12 *", zone: "Pacific/Apia", after: "2011-12-01T00:00:00Z",
			want: []string{"2011-12-30T10:00:00Z", "2012-12-29T22:00:00Z"}},
	} {
		made := table(t, timetable.Spec{Name: "s", Cron: c.cron, Every: c.every, Zone: c.zone})
		after := at(t, c.after)
		for _, want := range c.want {
			if after = made.Next(after); !after.Equal(at(t, want)) {
				t.Errorf("%s: due at %s, want %s", c.name, after.UTC().Format(time.RFC3339), want)
				break
			}
		}
	}
}

// A run begins at or after its due time, by less than the jitter; which part it is depends on the name and the due time alone, and
// differs between names and between times.
func TestJitter(t *testing.T) {
	t.Parallel()
	const jitter = 30 * time.Second
	spec := timetable.Spec{Name: "a", Every: time.Minute, Jitter: jitter}
	a, again := table(t, spec), table(t, spec)
	spec.Name = "b"
	b := table(t, spec)
	due, sum, same, still := at(t, "2026-12-01T00:00:00Z"), time.Duration(0), 0, 0
	const runs = 1000
	before := time.Duration(-1)
	for range runs {
		due = a.Next(due)
		late := a.FireAt(due).Sub(due)
		if late < 0 || late >= jitter || again.FireAt(due).Sub(due) != late {
			t.Fatalf("%s late at %s", late, due)
		}
		if b.FireAt(due).Sub(due) == late {
			same++
		}
		if late == before {
			still++
		}
		before = late
		sum += late
	}
	if mean := sum / runs; mean < jitter*4/10 || mean > jitter*6/10 || same > runs/100 || still > runs/100 {
		t.Errorf("late by %s in the mean, %d times as the other, %d times as before", mean, same, still)
	}
}

// What passed while nobody was there is one run or none, and counted; what is a little late is a run all the same.
func TestDecide(t *testing.T) {
	t.Parallel()
	const last, none = timetable.CatchUpLast, timetable.CatchUpNone
	for _, c := range []struct {
		name         string
		spec         timetable.Spec
		decided, now string
		catchUp      timetable.CatchUp
		due          string
		run          bool
		missed       int
	}{
		{"to come", timetable.Spec{Every: time.Hour}, "2026-12-01T03:00:00Z", "2026-12-01T03:10:00Z", last, "2026-12-01T04:00:00Z", true, 0},
		{"now", timetable.Spec{Every: time.Hour}, "2026-12-01T03:00:00Z", "2026-12-01T04:00:00Z", last, "2026-12-01T04:00:00Z", true, 0},
		{"late", timetable.Spec{Every: time.Hour}, "2026-12-01T03:00:00Z", "2026-12-01T04:01:00Z", none, "2026-12-01T04:00:00Z", true, 0},
		{"too late", timetable.Spec{Every: time.Hour}, "2026-12-01T03:00:00Z", "2026-12-01T04:01:01Z", none, "2026-12-01T04:00:00Z", false, 1},
		{"caught up", timetable.Spec{Every: time.Hour}, "2026-12-01T03:00:00Z", "2026-12-01T09:30:00Z", last, "2026-12-01T09:00:00Z", true, 5},
		{"not caught up", timetable.Spec{Every: time.Hour}, "2026-12-01T03:00:00Z", "2026-12-01T09:30:00Z", none, "2026-12-01T09:00:00Z", false, 6},
		{"back just in time", timetable.Spec{Every: time.Hour}, "2026-12-01T03:00:00Z", "2026-12-01T09:00:30Z", none, "2026-12-01T09:00:00Z", true, 5},
		{"a long time", timetable.Spec{Every: time.Second}, "2016-12-01T03:00:00Z", "2026-12-01T09:00:30Z", last, "2026-12-01T09:00:30Z", true, 10_000},
		{"a long time, rarely", timetable.Spec{Cron: "* 3 1 1 *"}, "1726-12-01T03:00:00Z", "2026-12-01T09:00:30Z", last, "2026-01-01T03:59:00Z", true, 10_000},
		{"a clock that went back", timetable.Spec{Every: time.Hour}, "2026-12-01T03:00:00Z", "2026-11-01T03:00:00Z", last, "2026-12-01T04:00:00Z", true, 0},
	} {
		turn := table(t, c.spec).Decide(at(t, c.decided), at(t, c.now), c.catchUp)
		if !turn.Due.Equal(at(t, c.due)) || turn.Run != c.run || turn.Missed != c.missed {
			t.Errorf("%s: %+v", c.name, turn)
		}
	}
	jittered := table(t, timetable.Spec{Name: "x", Every: time.Hour, Jitter: 30 * time.Minute})
	due := at(t, "2026-12-01T04:00:00Z")
	turn := jittered.Decide(due.Add(-time.Hour), due, last)
	if !turn.Due.Equal(due) || !turn.At.Equal(jittered.FireAt(due)) || turn.At.Equal(due) {
		t.Errorf("with a jitter: %+v", turn)
	}
}
