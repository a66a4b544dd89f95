package timetable

import "time"

// Next is the first due time after a moment; zero when there is none within five years.
//
// Where the clock of the zone is changed, it holds that
//
//   - a time that the clock skips is due once, at the moment at which the clock was put forward: 02:30 is 03:00 then;
//   - a time that the clock shows twice is due once, the first time;
//   - an expression whose hours are * goes by elapsed time instead: */15 * * * * is due every quarter of an hour, also in the
//     hour that comes twice, and nothing is due in one that does not come.
//
// These are the rules of most crons (Debian's cron(8), "Notes"). Two due times are never the same, and an interval has nothing to do
// with clocks that are changed.
func (t *Timetable) Next(after time.Time) time.Time {
	switch {
	case t.every > 0:
		return t.nextInterval(after)
	case t.hourly:
		return t.nextElapsed(after)
	default:
		return t.nextWall(after)
	}
}

func (t *Timetable) nextInterval(after time.Time) time.Time {
	every := int64(t.every / time.Second)
	periods := after.Unix() / every
	if after.Unix()%every < 0 { // before 1970 the division rounds up
		periods--
	}
	return time.Unix((periods+1)*every, 0).In(t.zone)
}

// wall is what the zone's clock shows at a moment, as a time in UTC.
func (t *Timetable) wall(at time.Time) time.Time {
	_, offset := at.In(t.zone).Zone()
	return at.UTC().Add(time.Duration(offset) * time.Second)
}

// nextWall finds the first time of the expression that the clock reaches after a moment. Times that the clock has shown already are
// passed over, and so is all but the first of those that a skip lets come true at one moment.
func (t *Timetable) nextWall(after time.Time) time.Time {
	for shown := t.spec.Next(t.wall(after)); !shown.IsZero(); shown = t.spec.Next(shown) {
		if due := t.reached(shown); due.After(after) {
			return due
		}
	}
	return time.Time{}
}

// reached is the first moment at which the clock shows a time or a later one.
func (t *Timetable) reached(shown time.Time) time.Time {
	const day = 24 * time.Hour // more than any zone differs from UTC
	from := shown.Add(-day).In(t.zone)
	for {
		_, offset := from.Zone()
		_, end := from.ZoneBounds()
		at := shown.Add(-time.Duration(offset) * time.Second).In(t.zone)
		switch {
		case at.Before(from): // it was skipped when this offset began
			return from
		case end.IsZero() || at.Before(end):
			return at
		}
		from = end
	}
}

// nextElapsed goes through the stretches between two changes of the clock; within one, the clock and the time that has elapsed agree.
func (t *Timetable) nextElapsed(after time.Time) time.Time {
	for from := after.In(t.zone); ; {
		_, end := from.ZoneBounds()
		offset := t.wall(from).Sub(from)
		shown := t.spec.Next(from.UTC().Add(offset))
		if shown.IsZero() {
			return time.Time{}
		}
		due := shown.Add(-offset).In(t.zone)
		if end.IsZero() || due.Before(end) {
			return due
		}
		// What the clock shows at the change itself may be due: ask from a moment before it, with the offset that begins there.
		next := t.spec.Next(t.wall(end).Add(-time.Nanosecond))
		if next.Equal(t.wall(end)) {
			return end
		}
		from = end
	}
}
