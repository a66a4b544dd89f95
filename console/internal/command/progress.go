package command

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

const (
	barColumns = 22
	tellEvery  = time.Second // progress in lines, for each task at most
	lookAtMost = 16          // tasks whose past is asked for
)

// tellEvent shows what happens before the end: on the redrawn line where there is one, as lines elsewhere. A run that went
// wrong is a line everywhere.
func (f *follower) tellEvent(e *task.Event) error {
	w := wordsOf(e, f.env.Now())
	if f.env.JSON || w.what == "" {
		return nil
	}
	f.last = e
	wrong := e.Fault != fault.None
	if wrong && f.wrong[e.ID] >= e.Attempts && e.State == task.Failed {
		return nil // look has said it
	}
	if wrong {
		f.wrong[e.ID] = e.Attempts
	}
	if f.line.To != nil && !wrong {
		return nil // draw shows it
	}
	delete(f.unsaid, e.ID) // it is older
	now := f.env.Now()
	if e.Progress != nil && now.Sub(f.said[e.ID]) < tellEvery {
		f.unsaid[e.ID] = e
		return nil
	}
	if e.Progress != nil {
		f.said[e.ID] = now
	}
	return f.say(e.ID, w)
}

// tellUnsaid says the progress that came too soon behind a line, once it has waited long enough.
func (f *follower) tellUnsaid() error {
	for _, id := range f.ids {
		e, waits := f.unsaid[id]
		if !waits || !f.open[id] || f.env.Now().Sub(f.said[id]) < tellEvery {
			continue
		}
		if err := f.tellEvent(e); err != nil {
			return err
		}
	}
	return nil
}

// say writes a line about a task. Where the redrawn line names the only task, the line does not.
func (f *follower) say(id task.ID, w words) error {
	head := screen.Clean(id.String()) + ": "
	columns := 0
	if f.line.To != nil {
		if len(f.ids) == 1 {
			head = ""
		}
		columns = max(0, f.env.Width()-screen.Width(head))
	}
	f.line.Clear()
	_, err := fmt.Fprintln(f.env.Err, head+w.line(columns))
	return err
}

// look asks, once, for the past of the tasks that are still open, and says what went wrong before the subscription could
// hear of it. What it cannot learn is left out: the subscription says what is wrong with the manager.
func (f *follower) look(ctx context.Context) error {
	if f.looked || f.env.JSON {
		return nil
	}
	f.looked = true
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	for _, id := range f.ids[:min(len(f.ids), lookAtMost)] {
		if !f.open[id] || f.wrong[id] > 0 {
			continue
		}
		t, err := f.env.Tasks.Get(ctx, id)
		if err != nil {
			break
		}
		if err := f.tellPast(t); err != nil {
			return err
		}
	}
	return nil
}

// tellPast says what went wrong with a task that has not ended.
func (f *follower) tellPast(t *task.Task) error {
	switch {
	case t.State.Ended():
		return nil // the subscription brings it
	case t.State == task.Failed && t.Fault != nil:
		return f.tellEvent(&task.Event{
			ID: t.ID, State: task.Failed, Attempts: t.Attempts, Fault: t.Fault.Kind, Message: t.Fault.Message, RunAt: t.RunAt,
		})
	case t.Counters == task.Counters{}:
		return nil
	}
	w := words{what: "runs so far: " + attemptsText(t)}
	if t.Fault != nil {
		w.why = "the last failure was " + screen.Clean(t.Fault.Error())
	}
	return f.say(t.ID, w)
}

func progressText(p *task.Progress) string {
	text := fmt.Sprintf("%d", p.Done)
	if p.Total > 0 {
		text = fmt.Sprintf("%s %d/%d", screen.Bar(p.Done, p.Total, barColumns), p.Done, p.Total)
	}
	if p.Note != "" {
		text += " " + screen.Clean(p.Note)
	}
	return text
}

// draw shows on the terminal's line how many have ended, for how long it has waited and what happened last.
func (f *follower) draw() {
	if f.line.To == nil || len(f.open) == 0 {
		return
	}
	what := screen.Clean(f.ids[0].String())
	if len(f.ids) > 1 {
		what = fmt.Sprintf("%d of %d tasks ended", len(f.ids)-len(f.open), len(f.ids))
	}
	text := fmt.Sprintf("%s  %s", what, screen.Duration(f.env.Now().Sub(f.began)))
	if f.last != nil {
		text += "  " + wordsOf(f.last, f.env.Now()).short()
	}
	f.line.Draw(text)
}
