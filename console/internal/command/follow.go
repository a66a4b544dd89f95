package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// follower waits for tasks and tells each end as it comes. It is used by one goroutine.
type follower struct {
	env      *Env
	ids      []task.ID
	open     map[task.ID]bool // those that have not ended
	began    time.Time
	patience time.Duration // 0 is without limit
	line     *screen.Progress
	last     *task.Event             // what the line says behind the count
	said     map[task.ID]time.Time   // when progress was last told in lines
	unsaid   map[task.ID]*task.Event // progress since then
	wrong    map[task.ID]int         // the last run that was told to have gone wrong
	looked   bool                    // the past has been asked for
	worst    Code
}

// followTasks tells the end of each task. The error says how they ended, or that the time ran out.
func followTasks(ctx context.Context, env *Env, ids []task.ID, patience time.Duration) error {
	f := &follower{
		env: env, ids: ids, open: make(map[task.ID]bool, len(ids)), began: env.Now(), patience: patience,
		line: env.progress(), said: map[task.ID]time.Time{}, unsaid: map[task.ID]*task.Event{}, wrong: map[task.ID]int{},
	}
	for _, id := range ids {
		f.open[id] = true
	}
	return f.run(ctx)
}

type followed struct {
	update client.Update
	err    error
}

func (f *follower) run(ctx context.Context) error {
	own, cancel := withPatience(ctx, f.patience)
	updates := make(chan followed)
	go f.subscribe(own, updates)
	defer func() { // the subscription has ended when this returns
		cancel()
		for range updates {
		}
		f.line.Clear()
	}()
	const redraw = 200 * time.Millisecond
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	f.draw()
	for {
		select {
		case u, more := <-updates:
			switch {
			case !more:
				return f.finish(ctx, own)
			case u.err != nil && (own.Err() != nil || f.ranOut(u.err)):
				return f.leave(ctx)
			case u.err != nil:
				return u.err
			}
			if err := f.take(u.update); err != nil {
				return err
			}
		case <-tick.C: // by now the subscription is there
			if err := errors.Join(f.look(own), f.tellUnsaid()); err != nil {
				return err
			}
		}
		f.draw()
	}
}

// withPatience is a context that ends after d, or only with its parent when d is 0.
func withPatience(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d > 0 {
		return context.WithTimeout(ctx, d)
	}
	return context.WithCancel(ctx)
}

// subscribe hands the updates over and closes the channel after the last.
func (f *follower) subscribe(ctx context.Context, updates chan<- followed) {
	defer close(updates)
	var options []client.FollowOption
	if !f.env.JSON {
		options = append(options, client.WithEvents())
	}
	for update, err := range f.env.Tasks.Subscribe(ctx, f.ids, options...) {
		select {
		case updates <- followed{update: update, err: err}:
		case <-ctx.Done():
			return
		}
	}
}

func (f *follower) take(u client.Update) error {
	switch {
	case u.Ended != nil:
		f.settle(u.Ended.ID, codeOf(u.Ended.State))
		f.line.Clear()
		return f.tellEnd(u.Ended)
	case u.Unknown:
		f.settle(u.ID, Failed)
		f.line.Clear()
		return f.tellUnknown(u.ID)
	case u.Event != nil:
		return f.tellEvent(u.Event)
	default:
		return nil
	}
}

// ranOut reports whether an error says that the patience is over: the manager knows the deadline too, and may be first.
func (f *follower) ranOut(err error) bool {
	return f.patience > 0 && errors.Is(err, context.DeadlineExceeded)
}

func (f *follower) settle(id task.ID, code Code) {
	delete(f.open, id)
	f.worst = max(f.worst, code)
}

// codeOf is the exit code that the end of a task gives.
func codeOf(s task.State) Code {
	if s == task.Completed {
		return Done
	}
	return Failed
}

func (f *follower) tellEnd(t *task.Task) error {
	switch {
	case f.env.JSON:
		return screen.WriteJSON(f.env.Out, t)
	case len(f.ids) == 1:
		return showTask(f.env, t)
	default:
		return showTaskLine(f.env, t)
	}
}

func (f *follower) tellUnknown(id task.ID) error {
	const message = "no such task: it was never submitted, or its record has expired"
	if f.env.JSON {
		return screen.WriteJSON(f.env.Out, unknownJSON{ID: id, Queue: id.Queue, Error: errorJSON{Kind: "unknown_task", Message: message}})
	}
	return f.env.tell(fmt.Sprintf("drover: %s: %s", id, message))
}

type unknownJSON struct {
	ID    task.ID   `json:"id"`
	Queue string    `json:"queue"`
	Error errorJSON `json:"error"`
}

// finish is the end of the subscription, whose context is own.
func (f *follower) finish(ctx, own context.Context) error {
	if len(f.open) == 0 {
		return told(f.worst)
	}
	if own.Err() != nil {
		return f.leave(ctx)
	}
	return fmt.Errorf("wait for %d tasks: %w: the manager ended the subscription early", len(f.open), client.ErrUnavailable)
}

// leave tells which tasks have not ended, because the time ran out or the caller was interrupted: their IDs alone on standard
// output, the reason and what to do beside it on standard error.
func (f *follower) leave(ctx context.Context) error {
	f.line.Clear()
	code, kind := TimeRanOut, "wait_timeout"
	if ctx.Err() != nil {
		code, kind = Interrupted, "interrupted"
	}
	var open []string
	for _, id := range f.ids {
		if !f.open[id] {
			continue
		}
		shown := screen.Clean(id.String())
		open = append(open, shown)
		if err := f.tellOpen(ctx, id, errorJSON{Kind: kind, Message: f.leaveText(code, shown)}); err != nil {
			return err
		}
	}
	if f.env.JSON || len(open) == 0 {
		return told(max(f.worst, code))
	}
	text, them := f.leaveText(code, open[0]), "it"
	if len(open) > 1 {
		text, them = f.leaveManyText(code), "them"
	}
	if err := f.env.tell(fmt.Sprintf("drover: %s; drover wait %s waits for %s again", text, strings.Join(open, " "), them)); err != nil {
		return err
	}
	return told(max(f.worst, code))
}

func (f *follower) leaveText(code Code, id string) string {
	if code == Interrupted {
		return fmt.Sprintf("the wait for %s was interrupted; the task goes on", id)
	}
	return fmt.Sprintf("%s has not ended within %s and goes on", id, f.patience)
}

func (f *follower) leaveManyText(code Code) string {
	if code == Interrupted {
		return fmt.Sprintf("the wait was interrupted; %d of %d tasks have not ended and go on", len(f.open), len(f.ids))
	}
	return fmt.Sprintf("%d of %d tasks have not ended within %s and go on", len(f.open), len(f.ids), f.patience)
}

// tellOpen prints a task that goes on: its ID, or its object.
func (f *follower) tellOpen(ctx context.Context, id task.ID, why errorJSON) error {
	if !f.env.JSON {
		_, err := fmt.Fprintln(f.env.Out, screen.Clean(id.String()))
		return err
	}
	line, err := openJSON(current(ctx, f.env, id), why)
	if err != nil {
		return err
	}
	return screen.WriteJSON(f.env.Out, line)
}

// current is what is known of a task now, at least its ID.
func current(ctx context.Context, env *Env, id task.ID) *task.Task {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	defer cancel()
	t, err := env.Tasks.Get(ctx, id)
	if err != nil {
		return &task.Task{ID: id}
	}
	return t
}

// openJSON is a task's object with the reason for leaving beside what is known of the task.
func openJSON(t *task.Task, why errorJSON) (json.RawMessage, error) {
	object, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("write task %s as JSON: %w", t.ID, err)
	}
	reason, err := json.Marshal(why)
	if err != nil {
		return nil, fmt.Errorf("write the reason for leaving task %s as JSON: %w", t.ID, err)
	}
	object = append(object[:len(object)-1], `,"wait":`...)
	return append(append(object, reason...), '}'), nil
}
