package command

import (
	"fmt"
	"io"
	"strings"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// happeningJSON is one event of watch.
type happeningJSON struct {
	At       *time.Time     `json:"at,omitempty"`
	Kind     string         `json:"kind"` // "task", "worker", "queue" or "missed"
	Task     string         `json:"task,omitempty"`
	State    string         `json:"state,omitempty"`
	Runs     int            `json:"attempts,omitempty"`
	Error    string         `json:"error_kind,omitempty"`
	Worker   uint64         `json:"worker,omitempty"`
	Queue    string         `json:"queue,omitempty"`
	PID      int32          `json:"pid,omitempty"`
	Event    string         `json:"event,omitempty"`
	Reason   string         `json:"reason,omitempty"`
	Text     string         `json:"text,omitempty"`
	RunAt    *time.Time     `json:"run_at,omitempty"`
	Missed   int64          `json:"missed,omitempty"`
	Progress *task.Progress `json:"progress,omitempty"`
}

// one writes one event when it is of the kind that is asked for.
func (w *watcher) one(out io.Writer, e *apiv1.WatchResponse) error {
	view, line := happening(e, w.env.Now())
	if w.kind != "" && view.Kind != "missed" && view.Kind+"s" != w.kind || line == "" {
		return nil
	}
	if id, err := task.ParseID(view.Task); err == nil {
		w.env.Seen.add(id)
	}
	if w.env.JSON {
		return screen.WriteJSON(out, view)
	}
	at := ""
	if e.GetAtMs() != 0 {
		at = time.UnixMilli(e.GetAtMs()).In(w.env.Zone).Format("15:04:05.000")
	}
	text := screen.Pad(at, len("15:04:05.000"), false) + "  " + line
	if width := w.env.Width(); width > 0 {
		text = screen.Cut(text, width)
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

// happening is an event for a program and, cleaned, for a person; the line is empty for an event that says nothing.
func happening(e *apiv1.WatchResponse, now time.Time) (happeningJSON, string) {
	view := happeningJSON{At: moment(e.GetAtMs())}
	switch h := e.GetHappened().(type) {
	case *apiv1.WatchResponse_Task:
		event, err := task.EventFromProto(h.Task)
		if err != nil {
			return view, ""
		}
		view.Kind, view.Task, view.Queue, view.State = "task", event.ID.String(), event.ID.Queue, event.State.String()
		view.Runs, view.Error, view.Text, view.Progress = event.Attempts, event.Fault.String(), event.Message, event.Progress
		if !event.RunAt.IsZero() {
			view.RunAt = moment(event.RunAt.UnixMilli())
		}
		return view, screen.Clean(view.Task) + "  " + taskWords(event, now)
	case *apiv1.WatchResponse_Worker:
		x := h.Worker
		view.Kind, view.Worker, view.Queue, view.PID = "worker", x.GetWorker(), x.GetQueue(), x.GetPid()
		view.Event, view.Reason, view.Text = x.GetEvent(), x.GetReason(), x.GetText()
		if strings.HasPrefix(x.GetText(), "worker ") { // it names the worker and the reason
			return view, screen.Clean(x.GetQueue() + "  " + x.GetText())
		}
		return view, screen.Clean(joinWords(fmt.Sprintf("%s  worker %d (pid %d) %s", x.GetQueue(), x.GetWorker(), x.GetPid(), x.GetEvent()), x.GetReason(), ""))
	case *apiv1.WatchResponse_Queue:
		x := h.Queue
		view.Kind, view.Queue, view.Event, view.Text = "queue", x.GetQueue(), x.GetEvent(), x.GetText()
		who := x.GetQueue()
		if who == "" {
			who = managerScope
		}
		return view, screen.Clean(joinWords(who+"  "+eventWords(x.GetEvent()), "", x.GetText()))
	case *apiv1.WatchResponse_Missed:
		view.Kind, view.Missed = "missed", h.Missed
		return view, fmt.Sprintf("(%d events are missing here: this reader was slow)", h.Missed)
	default:
		return view, "" // of a newer release
	}
}

// eventWords is what happened to a queue or a manager, in words; one of a newer release stays as it is.
func eventWords(event string) string {
	switch event {
	case "program-refused":
		return "a newer program is refused, the old one goes on"
	case "program-replaced":
		return "a newer program is in use"
	case "circuit-open":
		return "its workers cannot start"
	case "circuit-closed":
		return "its workers start again"
	case "lock-lost":
		return "a lock is lost"
	case "broker-away":
		return "the broker is away"
	case "broker-back":
		return "the broker is back"
	default:
		return event
	}
}

// joinWords is what, a reason and a text, where there are such.
func joinWords(what, reason, text string) string {
	for _, more := range []string{reason, text} {
		if more != "" && !strings.HasSuffix(what, more) {
			what += ": " + more
		}
	}
	return what
}

// taskWords says a task's event.
func taskWords(e *task.Event, now time.Time) string {
	if w := wordsOf(e, now); w.what != "" {
		return w.line(0)
	}
	text := e.State.String()
	if e.Fault != fault.None {
		text += ": " + e.Fault.String()
		if e.Message != "" {
			text += ": " + screen.Clean(e.Message)
		}
	}
	return text
}
