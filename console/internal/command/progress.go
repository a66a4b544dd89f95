package command

import (
	"fmt"
	"time"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

const (
	barColumns = 22
	tellEvery  = 2 * time.Second // progress in lines, for each task
)

// tellEvent shows what happens before the end: on the redrawn line where there is one, as lines elsewhere.
func (f *follower) tellEvent(e *task.Event) error {
	if f.env.JSON {
		return nil
	}
	text := eventText(e)
	if text == "" {
		return nil
	}
	f.note = text
	if f.line.To != nil && e.State != task.Failed {
		return nil // draw shows it
	}
	now := f.env.Now()
	if e.Progress != nil && now.Sub(f.said[e.ID]) < tellEvery {
		return nil
	}
	f.said[e.ID] = now
	f.line.Clear()
	_, err := fmt.Fprintf(f.env.Err, "%s: %s\n", screen.Clean(e.ID.String()), text)
	return err
}

// eventText is an event in words, cleaned; empty for one that says nothing new.
func eventText(e *task.Event) string {
	switch {
	case e.Progress != nil:
		return progressText(e.Progress)
	case e.State == task.Failed && e.Fault != fault.None:
		return fmt.Sprintf("run %d failed (%s); it will be tried again", e.Attempts, e.Fault)
	case e.State == task.Waiting && e.Attempts > 0:
		return "back in the queue"
	case e.State == task.Running:
		return fmt.Sprintf("run %d began", e.Attempts)
	default:
		return ""
	}
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
	if f.note != "" {
		text += "  " + f.note
	}
	f.line.Draw(text)
}
