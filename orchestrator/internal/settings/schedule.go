package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings/timetable"
)

// longestJitter bounds a jitter; it must be shorter than the schedule's shortest interval besides.
const longestJitter = day

func scheduleFields() []field[Schedule] {
	row := func(name, off, form, meaning string) Setting {
		return Setting{Scope: ScopeSchedule, Name: name, Takes: EffectNow, Off: off, Form: form, Meaning: meaning}
	}
	return []field[Schedule]{
		written(row("cron", "every says when", `five fields, minute to day of the week, such as "30 3 * * 1-5", or @hourly, @daily, @weekly, @monthly, @yearly`,
			"When it is due, by the clock of time_zone. A time that the clock skips is due when the clock is put forward, one that comes twice the first time."),
			off, parseCron, func(s *Schedule) *string { return &s.Cron }),
		duration(row("every", "cron says when", "",
			"Time from one due time to the next, counted from midnight, 1 January 1970 UTC, so that all managers agree."),
			bounds[time.Duration]{timetable.Shortest, timetable.Longest, 0}, func(s *Schedule) *time.Duration { return &s.Every }),
		written(row("time_zone", "", "a name of the IANA time zone database, such as UTC or Europe/Berlin",
			"The zone whose clock cron goes by."),
			timetable.UTC, parseZone, func(s *Schedule) *string { return &s.TimeZone }),
		duration(row("jitter", "none", "",
			"How much later than it is due a run may begin at most; the name and the due time say how much, so all managers agree."),
			bounds[time.Duration]{time.Second, longestJitter, 0}, func(s *Schedule) *time.Duration { return &s.Jitter }),
		choice(row("overlap", "", "",
			"When the earlier run has not ended: skip leaves this one out, queue lets it wait, replace cancels the earlier one and then runs, allow runs both."),
			[]Overlap{OverlapSkip, OverlapQueue, OverlapReplace, OverlapAllow}, func(s *Schedule) *Overlap { return &s.Overlap }),
		choice(row("catch_up", "", "",
			"When due times passed while no manager was there: last runs the last of them, none runs none; up to a minute late is not missed."),
			[]timetable.CatchUp{timetable.CatchUpLast, timetable.CatchUpNone}, func(s *Schedule) *timetable.CatchUp { return &s.CatchUp }),
		written(row("payload", "", `a JSON object that fits the queue's worker, such as {"url": "https://go.dev/blog/feed.atom"}`,
			"What each run gets."),
			"{}", parsePayload, func(s *Schedule) *string { return &s.Payload }),
		choice(row("enabled", "", "",
			"false: this manager does not run it; others that have it in their configuration do."),
			[]Switch{SwitchOn, SwitchOff}, func(s *Schedule) *Switch { return &s.Enabled }),
	}
}

func parseCron(text string) (string, error) {
	text = strings.Join(strings.Fields(text), " ")
	return text, timetable.ParseCron(text)
}

func parseZone(text string) (string, error) {
	if text == "" {
		return "", errors.New("is empty")
	}
	_, err := timetable.Zone(text)
	return text, err
}

func parsePayload(text string) (string, error) {
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		return "", fmt.Errorf("is not JSON: %w", err)
	}
	if !strings.HasPrefix(out.String(), "{") {
		return "", errors.New("is not a JSON object")
	}
	return out.String(), nil
}

func scheduleRules() []rule[Schedule] {
	return []rule[Schedule]{
		{[]string{"cron", "every"}, func(s Schedule) (reason, allowed string) {
			switch {
			case s.Cron == "" && s.Every == 0:
				return "is off, and so is every: it would never be due", "one of cron and every"
			case s.Cron != "" && s.Every != 0:
				return fmt.Sprintf("is there, and so is every, which is %s", FormatDuration(s.Every)), "one of cron and every, and the other off"
			case s.Every%time.Second != 0:
				return "is off, and every is not in whole seconds", "every in whole seconds"
			}
			return "", ""
		}},
		{[]string{"jitter", "cron", "every", "time_zone"}, func(s Schedule) (reason, allowed string) {
			if s.Jitter == 0 {
				return "", ""
			}
			t, err := s.Timetable("")
			if err != nil { // another rule says that
				return "", ""
			}
			if shortest := t.Interval(); s.Jitter >= shortest {
				return fmt.Sprintf("is not shorter than the time between two runs, which is %s", FormatDuration(shortest)), "less than that"
			}
			return "", ""
		}},
	}
}

// scheduleEffect says what follows from a change of a schedule.
func scheduleEffect(name string, now Schedule) string {
	switch name {
	case "cron", "every", "time_zone":
		return "it counts from now on: what was missed before is not caught up"
	case "enabled":
		if now.Enabled == SwitchOff {
			return "this manager runs it no more; another that has it goes on"
		}
		return "due from now on; what was missed before is not caught up"
	case "payload":
		return "runs that were submitted keep theirs"
	case "overlap":
		return "a run that waits goes on waiting"
	}
	return ""
}
