package command

import (
	"fmt"
	"strings"
	"time"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// words are an event for a person, cleaned: what happened, why, and what comes next. Each but the first may be empty; what is
// empty for an event that says nothing new.
type words struct {
	what, why, next string
}

// line is all of it. The reason is cut so that the line has no more than the given columns, as long as a part of it that is
// worth reading remains; 0 columns is no bound.
func (w words) line(columns int) string {
	const worthReading = 40
	why := w.why
	if columns > 0 {
		why = screen.Cut(why, max(worthReading, columns-screen.Width(w.short())-len(": ")))
	}
	text := w.what
	if why != "" {
		text += ": " + why
	}
	return w.withNext(text)
}

// short leaves the reason out.
func (w words) short() string { return w.withNext(w.what) }

func (w words) withNext(text string) string {
	if w.next == "" {
		return text
	}
	return text + "; " + w.next
}

// wordsOf says an event at a moment in words.
func wordsOf(e *task.Event, now time.Time) words {
	switch {
	case e.Progress != nil:
		return words{what: progressText(e.Progress)}
	case e.State == task.Failed && e.Fault != fault.None:
		why := e.Fault.String()
		if e.Message != "" {
			why += ": " + screen.Clean(e.Message)
		}
		return words{fmt.Sprintf("run %d failed", e.Attempts), why, strings.TrimSpace("it will be tried again " + due(e.RunAt, now))}
	case e.State == task.Waiting && e.Fault != fault.None:
		return wordsOfReturn(e)
	case e.State == task.Waiting && e.Attempts > 0:
		return words{what: "back in the queue"}
	case e.State == task.Running:
		return words{what: fmt.Sprintf("run %d began", e.Attempts)}
	default:
		return words{}
	}
}

// wordsOfReturn says why a task went back into its queue in the middle of a run.
func wordsOfReturn(e *task.Event) words {
	const again, free = "it goes back into the queue at once", "it goes back into the queue, and that costs it nothing"
	why := screen.Clean(e.Message)
	run := func(format string) string { return fmt.Sprintf(format, e.Attempts) }
	switch e.Fault {
	case fault.Crash:
		return words{run("its worker died in run %d"), why, again}
	case fault.Memory:
		return words{run("its worker was killed in run %d for its memory"), why, again}
	case fault.Timeout:
		return words{run("run %d ran out of time"), why, again}
	case fault.Interrupted:
		return words{run("run %d was interrupted"), why, free}
	case fault.Lost:
		return words{run("its manager died in run %d"), why, free}
	default:
		return words{run("run %d was broken off"), strings.TrimSuffix(e.Fault.String()+": "+why, ": "), again}
	}
}

// due says when a moment to come will be; empty for none.
func due(at, now time.Time) string {
	switch d := at.Sub(now); {
	case at.IsZero():
		return ""
	case d > 0:
		return "in " + screen.Duration(d)
	default:
		return "now"
	}
}
