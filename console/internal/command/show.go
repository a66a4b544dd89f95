package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// showTask writes what is known of a task, in full.
func showTask(env *Env, t *task.Task) error {
	var f screen.Fields
	f.Add("Task", t.ID.String())
	if t.Kind != t.ID.Queue {
		f.Add("Kind", t.Kind)
	}
	f.AddPainted("State", stateText(env, t), paintOf(t.State))
	if t.Attempts > 0 {
		f.Add("Attempts", attemptsText(t))
	}
	f.Add("Submitted", screen.Time(t.Submitted, env.Zone))
	if !t.Started.IsZero() {
		f.Add("Started", fmt.Sprintf("%s, after %s in the queue", screen.Time(t.Started, env.Zone), screen.Duration(t.Queued)))
	}
	switch {
	case !t.Ended.IsZero() && t.Run > 0:
		f.Add("Ended", fmt.Sprintf("%s, after %s of work", screen.Time(t.Ended, env.Zone), screen.Duration(t.Run)))
	default:
		f.Add("Ended", screen.Time(t.Ended, env.Zone))
	}
	f.Add("Manager", t.Manager)
	if t.Progress != nil {
		f.Add("Progress", progressText(t.Progress))
	}
	if len(t.Payload) > 0 {
		f.AddLines("Payload", payloadLines(t))
	}
	if t.Fault != nil {
		f.AddPainted("Error", t.Fault.Error(), screen.Bad)
		if t.Fault.Detail != "" {
			f.AddLines("Detail", boundedDetail(t.Fault.Detail))
		}
	}
	f.AddLines("History", historyLines(t.History))
	if len(t.Result) > 0 {
		f.AddLines("Result", screen.IndentJSON(t.Result))
	}
	return f.Write(env.Out, env.style())
}

// firstPayload is how many lines of a payload a person sees.
const firstPayload = 20

// payloadLines are the first lines of a payload, cleaned.
func payloadLines(t *task.Task) []string {
	lines := screen.IndentJSON(t.Payload)
	left := len(lines) - firstPayload
	if left <= 1 {
		return lines
	}
	return append(lines[:firstPayload:firstPayload], fmt.Sprintf("(%d lines are left out; task ID --json has all)", left))
}

// historyLines are the runs that did not end well, a line each, cleaned; why tells more.
func historyLines(history []task.Attempt) []string {
	lines := make([]string, len(history))
	for i, a := range history {
		if a.End == task.EndRetried {
			lines[i] = "retried by hand at " + a.Started.UTC().Format("2006-01-02 15:04:05 MST")
			continue
		}
		if lossOnly(a) {
			lines[i] = "lost: " + lossText
			continue
		}
		text := fmt.Sprintf("%s: %s after %s", runName(a.Number), a.End, screen.Duration(a.Run))
		if a.Fault != fault.None {
			text += ", " + (&fault.Fault{Kind: a.Fault, Message: a.Message}).Error()
		}
		if a.Exit != "" && a.Message == "" { // a message says it in its own words, and why says all
			text += " (" + howDied(a) + ")"
		}
		lines[i] = screen.Clean(text)
	}
	return lines
}

// stateText is the state, with the time of the next run when there is one.
func stateText(env *Env, t *task.Task) string {
	text := t.State.String()
	if !t.State.Ended() && !t.RunAt.IsZero() {
		text += ", runs " + inTime(env, t)
	}
	return text
}

func inTime(env *Env, t *task.Task) string {
	return due(t.RunAt, env.Now())
}

// attemptsText is the number of runs and how the bad ones ended.
func attemptsText(t *task.Task) string {
	var parts []string
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	add(t.Counters.Failures, "failed")
	add(t.Counters.Kills, "killed")
	add(t.Counters.Interruptions, "interrupted")
	add(t.Counters.Losses, "lost with a manager")
	text := fmt.Sprintf("%d", t.Attempts)
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return text
}

// showTaskLine writes the end of a task as one line that fits the terminal.
func showTaskLine(env *Env, t *task.Task) error {
	style := env.style()
	state := screen.Pad(t.State.String(), len("quarantined"), false)
	head := fmt.Sprintf("%s  %s", screen.Clean(t.ID.String()), screen.Duration(t.Run))
	text := head + "  " + endText(t)
	if style.Width > 0 {
		text = screen.Cut(text, max(0, style.Width-screen.Width(state)-1-1))
	}
	_, err := fmt.Fprintln(env.Out, style.Paint(paintOf(t.State), state)+" "+text)
	return err
}

// endText is the error or the result on one line, cleaned.
func endText(t *task.Task) string {
	if t.Fault != nil && t.State != task.Completed {
		return screen.Clean(t.Fault.Error())
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, t.Result); err != nil {
		return screen.Clean(string(t.Result))
	}
	return screen.Clean(compact.String())
}

func paintOf(s task.State) screen.Paint {
	switch s {
	case task.Completed:
		return screen.Good
	case task.Failed, task.Dead, task.Quarantined:
		return screen.Bad
	case task.Cancelled, task.Dropped, task.Expired:
		return screen.Warn
	default:
		return screen.Plain
	}
}
