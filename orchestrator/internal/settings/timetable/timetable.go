// Package timetable says when a schedule is due: a pure function of what a person wrote (a cron expression or an interval, a
// time zone, a jitter) and of a moment. All managers that hold the same words get the same times.
//
// It owns what those words mean, also on the days on which clocks are changed (see Next). It does not own who runs what is
// due, nor any clock: package schedule does that, and package settings refuses words that do not hold. It has nothing to stop.
//
// The fields of a cron expression are read by github.com/robfig/cron/v3, which is kept and known, and which asynq brings along
// anyway. Only its parser and its search through a calendar without changes of the clock are used: with a time zone, it would
// leave out what falls into a skipped hour and run twice what falls into a repeated one.
package timetable

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"
	_ "time/tzdata" // zones are known on every machine, also where no zone files are installed

	"github.com/robfig/cron/v3"
)

const (
	// Shortest is the least interval.
	Shortest = time.Second
	// Longest is the greatest interval.
	Longest = 366 * 24 * time.Hour
	// UTC is the zone of a schedule that names none.
	UTC = "UTC"
)

// Timetable is when one schedule is due. It is never changed.
type Timetable struct {
	name   string
	every  time.Duration // 0 for cron
	jitter time.Duration
	zone   *time.Location
	spec   *cron.SpecSchedule // in UTC, which stands for the wall clock of the zone
	// hourly is true when the expression names no hours, so that it goes by elapsed time where the clock is changed.
	hourly bool
}

// Spec is what a person wrote. One of Cron and Every is given.
type Spec struct {
	// Name is the schedule's; it spreads the jitter of schedules that are due together.
	Name string
	// Cron has five fields, minute to day of the week, or is one of @hourly, @daily, @weekly, @monthly and @yearly.
	Cron string
	// Every counts from midnight, 1 January 1970 UTC, so that all managers agree.
	Every time.Duration
	// Zone is a name of the IANA time zone database, such as Europe/Berlin; empty is UTC. It has no meaning for Every.
	Zone string
	// Jitter lets each run begin later than it is due, by a part of it that depends on the name and the due time alone.
	Jitter time.Duration
}

// New returns the timetable. The error says what cannot be read; it never names the schedule.
func New(s Spec) (*Timetable, error) {
	t := &Timetable{name: s.Name, every: s.Every, jitter: s.Jitter}
	var err error
	if t.zone, err = Zone(s.Zone); err != nil {
		return nil, err
	}
	switch {
	case (s.Cron == "") == (s.Every == 0):
		return nil, errors.New("one of cron and every is needed")
	case s.Every != 0 && (s.Every < Shortest || s.Every > Longest || s.Every%time.Second != 0):
		return nil, errors.New("every must be whole seconds, at least one and at most a year")
	case s.Jitter < 0:
		return nil, errors.New("jitter is negative")
	case s.Cron != "":
		if t.spec, err = parse(s.Cron); err != nil {
			return nil, err
		}
		t.hourly = t.spec.Hour&starBit != 0
	}
	return t, nil
}

// starBit marks a field that was written as *, in the parser's sets.
const starBit = 1 << 63

// ParseCron reports whether a cron expression can be read and ever comes due. The error reads on after the expression.
func ParseCron(text string) error {
	_, err := parse(text)
	return err
}

func parse(text string) (*cron.SpecSchedule, error) {
	text = strings.TrimSpace(text)
	switch {
	case strings.Contains(text, "TZ="):
		return nil, errors.New("names a time zone; write it into time_zone")
	case strings.HasPrefix(text, "@every"):
		return nil, errors.New("is an interval; write it into every")
	case text == "":
		return nil, errors.New("is empty")
	}
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.Descriptor)
	parsed, err := parser.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("is not a cron expression: %w", err)
	}
	spec, ok := parsed.(*cron.SpecSchedule)
	if !ok {
		return nil, errors.New("is not a cron expression")
	}
	spec.Location = time.UTC
	if spec.Next(leapYear).IsZero() {
		return nil, errors.New("never comes due: there is no such day")
	}
	return spec, nil
}

var leapYear = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // never written

// Zone finds a time zone. The error reads on after its name.
func Zone(name string) (*time.Location, error) {
	switch name {
	case "":
		return time.UTC, nil
	case "Local": // differs between managers
		return nil, errors.New("is not the name of a time zone: Local is another one on each machine")
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, errors.New("is not the name of a time zone")
	}
	return zone, nil
}

// FireAt is when the run that is due begins: due plus its part of the jitter, which is less than the whole, in milliseconds.
func (t *Timetable) FireAt(due time.Time) time.Time {
	window := uint64(t.jitter / time.Millisecond) //nolint:gosec // not negative
	if window == 0 {
		return due
	}
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, "%s %d", t.name, due.Unix())                 // never fails
	return due.Add(time.Duration(h.Sum64()%window) * time.Millisecond) //nolint:gosec // less than the window
}

// shortestOf is how many due times are looked at for the shortest distance between two: enough for a year of a daily schedule.
const shortestOf = 400

// Interval is the shortest distance between two due times that follow each other, as far as a year shows.
func (t *Timetable) Interval() time.Duration {
	if t.every > 0 {
		return t.every
	}
	least := Longest
	at := t.spec.Next(leapYear)
	for range shortestOf {
		next := t.spec.Next(at)
		if next.IsZero() {
			break
		}
		least, at = min(least, next.Sub(at)), next
	}
	return least
}
