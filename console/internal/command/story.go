package command

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// storyPoint is one moment of a task's life.
type storyPoint struct {
	At   *time.Time `json:"at,omitempty"`
	What string     `json:"what"` // "submitted", "run", "retried", "running", "waiting" or "ended"
	Text string     `json:"text"`
	More []string   `json:"more,omitempty"`

	paint screen.Paint
}

// storyOf tells a task's life in order. It invents nothing: what is not known is not there.
func storyOf(t *task.Task, p place, now time.Time) []storyPoint {
	story := []storyPoint{{At: stamp(t.Submitted), What: "submitted", Text: "submitted to " + t.ID.Queue + scheduleText(t.ID)}}
	last := 0
	for i, a := range t.History {
		if i == len(t.History)-1 && tellsDetail(t) && strings.Contains(plainLines(t.Fault.Detail), plainLines(strings.Join(a.Tail, "\n"))) {
			a.Tail = nil // the details at the end have it all
		}
		if a.End == task.EndRetried {
			last = a.Number // the runs behind it count on from there
			story = append(story, storyPoint{At: stamp(a.Started), What: "retried", Text: retriedText(a), paint: screen.Faint})
			continue
		}
		if lossOnly(a) {
			last++ // it counts as a run
			story = append(story, lossPoint(a))
			continue
		}
		if forgotten := a.Number - last - 1; forgotten > 0 {
			story = append(story, storyPoint{What: "run", Text: notKept(last+1, a.Number-1), paint: screen.Faint})
		}
		story = append(story, attemptPoint(a))
		last = max(last, a.Number) // 0 is not known
	}
	if forgotten := t.Attempts - last; forgotten > 1 {
		story = append(story, storyPoint{What: "run", Text: notKept(last+1, t.Attempts-1), paint: screen.Faint})
	}
	end := endPoint(t, p, now, last)
	if tellsDetail(t) {
		end.More = append(end.More, detailLines(t)...)
	}
	return append(story, end)
}

// retriedText tells that somebody put the task back.
func retriedText(a task.Attempt) string {
	if a.Number == 0 {
		return "retried by hand: it begins anew, with its counters at nothing"
	}
	return "retried by hand: its next run is due at once"
}

// scheduleText says which schedule submitted a task; empty for others.
func scheduleText(id task.ID) string {
	switch name, at, ok := id.Schedule(); {
	case !ok:
		return ""
	case at.IsZero():
		return " as a run of schedule " + name + " that was asked for by hand"
	default:
		return " by schedule " + name + ", due at " + at.UTC().Format("2006-01-02 15:04:05 MST")
	}
}

// lossOnly reports whether all that is known of a run is that its manager died: who knew whether it had begun is dead.
func lossOnly(a task.Attempt) bool { return a.End == task.EndLost && a.Number == 0 && a.Worker == 0 }

const lossText = "its manager died; whether it had begun is not known"

func lossPoint(a task.Attempt) storyPoint {
	return storyPoint{At: stamp(a.Started), What: "run", Text: lossText + "; back in the queue, and it costs the task nothing", paint: screen.Warn}
}

// Of a detail, which may be a long stack, a person sees the first lines and the last.
const firstDetail, lastDetail = 20, 10

// boundedDetail are the lines of a fault's detail, cleaned.
func boundedDetail(detail string) []string {
	lines := screen.CleanLines(detail)
	left := len(lines) - firstDetail - lastDetail
	if left <= 1 {
		return lines
	}
	cut := fmt.Sprintf("(%d lines are left out; task ID --json has all)", left)
	return slices.Concat(lines[:firstDetail], []string{cut}, lines[len(lines)-lastDetail:])
}

// tellsDetail reports whether the details of the last failure belong to the story.
func tellsDetail(t *task.Task) bool {
	return t.Fault != nil && t.Fault.Detail != "" && t.State != task.Completed
}

// plainLines is a text without what does not matter when texts are compared.
func plainLines(text string) string { return strings.Join(strings.Fields(text), " ") }

// detailLines are what the worker gave for the last failure.
func detailLines(t *task.Task) []string {
	more := []string{"the details of its last failure:"}
	for _, line := range boundedDetail(t.Fault.Detail) {
		more = append(more, detailMark+line)
	}
	return more
}

// detailMark stands before lines of a worker.
const detailMark = "| "

func stamp(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	at = at.UTC()
	return &at
}

func notKept(from, to int) string {
	if from == to {
		return fmt.Sprintf("run %d: nothing is kept of it", from)
	}
	return fmt.Sprintf("runs %d to %d: nothing is kept of them", from, to)
}

// attemptPoint tells a run that did not end well.
func attemptPoint(a task.Attempt) storyPoint {
	point := storyPoint{At: stamp(a.Started), What: "run", paint: screen.Bad, Text: fmt.Sprintf("%s %s, for %s", runName(a.Number), whereRan(a), screen.Duration(a.Run))}
	if a.End == task.EndInterrupted || a.End == task.EndLost {
		point.paint = screen.Warn
	}
	end := a.End
	if a.Fault != fault.None || a.Message != "" {
		end += ": " + strings.TrimPrefix((&fault.Fault{Kind: a.Fault, Message: a.Message}).Error(), ": ")
	}
	point.More = append(point.More, end)
	if how := howDied(a); how != "" {
		point.More = append(point.More, how)
	}
	if len(a.Tail) > 0 {
		point.More = append(point.More, "the last lines of its worker:")
		for _, line := range a.Tail {
			point.More = append(point.More, detailMark+strings.Join(screen.CleanLines(line), " "))
		}
	}
	switch a.End {
	case task.EndSuspect:
		point.More = append(point.More, "others were in the process too, so nobody is charged: back in the queue, to run alone")
	case task.EndInterrupted:
		point.More = append(point.More, "back at the head of the queue; it costs the task nothing")
	case task.EndLost:
		point.More = append(point.More, "its manager died: back in the queue, and it costs the task nothing")
	case task.EndKilled:
		point.More = append(point.More, "it counts as a kill")
	}
	return point
}

// runName is a run by its number, where that is known.
func runName(number int) string {
	if number == 0 {
		return "a run"
	}
	return fmt.Sprintf("run %d", number)
}

// whereRan is the worker, as far as it is known.
func whereRan(a task.Attempt) string {
	where := "with no worker"
	if a.Worker != 0 {
		where = fmt.Sprintf("in worker %d", a.Worker)
		if a.PID != 0 {
			where += fmt.Sprintf(" (pid %d)", a.PID)
		}
	}
	if a.Manager != "" {
		where += " of manager " + a.Manager
	}
	return where
}

// howDied is the end of the process: reason, memory, signal; empty when it went on.
func howDied(a task.Attempt) string {
	var parts []string
	if a.Exit != "" {
		parts = append(parts, "its process ended: "+a.Exit)
	}
	switch {
	case a.RSS > 0 && a.Limit > 0:
		parts = append(parts, fmt.Sprintf("memory %s of at most %s", screen.Bytes(a.RSS), screen.Bytes(a.Limit)))
	case a.RSS > 0:
		parts = append(parts, "memory "+screen.Bytes(a.RSS))
	}
	if a.Signal != "" {
		parts = append(parts, "signal "+a.Signal)
	}
	return strings.Join(parts, ", ")
}

// endPoint tells where the task is now. last is the run that was told last.
func endPoint(t *task.Task, p place, now time.Time, last int) storyPoint {
	switch {
	case t.State.Ended():
		return ended(t, last)
	case t.State == task.Running:
		point := storyPoint{At: stamp(t.Started), What: "running", Text: fmt.Sprintf("run %d is running", t.Attempts)}
		if w := p.worker; w != nil {
			point.Text += fmt.Sprintf(" in worker %d (pid %d), memory %s", w.GetId(), w.GetPid(), screen.Bytes(w.GetRssBytes()))
		} else if t.Manager != "" {
			point.Text += " in manager " + t.Manager
		}
		if t.Progress != nil {
			point.More = append(point.More, progressText(t.Progress))
		}
		return point
	case t.State == task.Failed:
		return storyPoint{What: "waiting", Text: strings.TrimSpace("it will be tried again " + due(t.RunAt, now))}
	case t.State == task.Held:
		return storyPoint{What: "waiting", Text: "a manager has taken it, and it waits for " + p.waitsFor()}
	case t.RunAt.After(now):
		return storyPoint{What: "waiting", Text: "it waits in the queue until it is due, " + due(t.RunAt, now)}
	default:
		return storyPoint{What: "waiting", Text: "it waits in the queue"}
	}
}

// ended tells the end of a task.
func ended(t *task.Task, last int) storyPoint {
	point := storyPoint{At: stamp(t.Ended), What: "ended", Text: t.State.String(), paint: paintOf(t.State)}
	if t.Attempts > last {
		point.Text += fmt.Sprintf(" in run %d", t.Attempts)
		if t.Run > 0 { // shorter than a millisecond is 0
			point.Text += ", after " + screen.Duration(t.Run)
		}
	}
	if t.Queued > 0 && t.Attempts > last {
		point.More = append(point.More, fmt.Sprintf("that run had waited %s before", screen.Duration(t.Queued)))
	}
	if t.Fault != nil && (t.Attempts > last || t.State != task.Completed) {
		point.More = append(point.More, t.Fault.Error())
	}
	switch t.State {
	case task.Dead:
		why := "it is not tried again"
		if t.Fault != nil && t.Fault.Permanent {
			why = "the worker said that trying again cannot help"
		} else if n := t.Counters.Failures + t.Counters.Kills; n > 0 {
			why = fmt.Sprintf("it had failed %d times, and no more are allowed", n)
		}
		point.More = append(point.More, why, "retry begins anew, drop throws it away")
	case task.Quarantined:
		point.More = append(point.More, fmt.Sprintf("it killed its worker %d times", t.Counters.Kills), "retry begins anew, drop throws it away")
	default:
	}
	return point
}
