package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/task"
)

func whyCommand() *Command {
	return &Command{
		Section: SectionTasks,
		Name:    "why",
		Args:    "ID",
		Summary: "the story of a task: what happened to it, and what it waits for",
		Help: `It tells when the task was submitted, where each run went that did not end well (worker, process, memory, signal,
last lines), and where it is now, with the stack or the last lines that the worker gave for its last failure, and with its
payload while it lies in its queue, as dead letters do. Of a task that waits it says what its queue is limited by, and who
has its lock. A task keeps its last 8 such runs.`,
		Examples: []Example{{`drover why feed-pull:mzxw6ytboi`, "why it failed, or why it does not run yet"}},
		Min:      1, Max: 1,
		Complete: completeTask(task.Running, task.Dead, task.Failed),
		Run:      runWhy,
	}
}

type whyJSON struct {
	ID       task.ID      `json:"id"`
	State    task.State   `json:"state"`
	Timeline []storyPoint `json:"timeline"`
	Because  []string     `json:"because,omitempty"`
	Task     *task.Task   `json:"task"`
}

func runWhy(ctx context.Context, env *Env, args *Args) error {
	id, err := task.ParseID(args.Words[0])
	if err != nil {
		return usageError("%v", err)
	}
	asked, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	t, err := env.Tasks.Get(asked, id)
	if err != nil {
		return err
	}
	env.Seen.add(t.ID)
	place := whereIs(asked, env, t)
	story := storyOf(t, place, env.Now())
	if env.JSON {
		return screen.WriteJSON(env.Out, whyJSON{ID: t.ID, State: t.State, Timeline: story, Because: place.because, Task: t})
	}
	return tellStory(env, t, story, place.because)
}

// place is what the manager knows of a task that has not ended.
type place struct {
	worker  *apiv1.Worker // that runs it; nil when it is not known
	because []string      // why it does not run yet
	limit   string        // what is most in its way, as the manager calls it, such as "rate"; empty when that is not known
}

// waitsFor says what a task that a manager has taken waits for.
func (p place) waitsFor() string {
	switch p.limit {
	case "lock":
		return "a lock"
	case "rate":
		return "its turn: its queue may start no more tasks now"
	case "circuit":
		return "a worker, and none can be started"
	case "budget":
		return "a worker, for which there is no room now"
	default:
		return "a free worker"
	}
}

// whereIs asks the manager. What it cannot or will not say is left out: the story is told without it.
func whereIs(ctx context.Context, env *Env, t *task.Task) place {
	var p place
	if t.State.Ended() || env.Control == nil {
		return p
	}
	if s := quickStatus(ctx, env); s != nil {
		for _, w := range s.GetWorkers() {
			for _, id := range w.GetTaskIds() {
				if id == t.ID.String() {
					p.worker = w
				}
			}
		}
		for _, q := range s.GetQueues() {
			if q.GetName() == t.ID.Queue && q.GetState() != "ok" {
				p.because = append(p.because, strings.TrimSuffix(fmt.Sprintf("its queue is %s: %s", q.GetState(), q.GetReason()), ": "))
			}
		}
		if broken := s.GetManager().GetBrokerError(); broken != "" {
			p.because = append(p.because, "the broker does not answer: "+broken)
		}
	}
	if p.worker != nil || t.State == task.Running {
		p.because = nil
		return p
	}
	if t.RunAt.After(env.Now()) {
		p.because = append(p.because, "it is not due yet")
		return p
	}
	locked := lockOf(ctx, env, t.ID.String())
	p.because = append(p.because, locked...)
	if len(locked) > 0 {
		p.limit = "lock"
	}
	quick, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	if e, err := env.Control.Explain(quick, &apiv1.ExplainRequest{Queue: t.ID.Queue}); err == nil {
		for _, limit := range e.GetLimits() {
			kind, _, _ := strings.Cut(limit, ":")
			if kind == "lock" && len(locked) == 0 && t.State == task.Held {
				continue // that is about others
			}
			if p.limit == "" {
				p.limit = kind
			}
			p.because = append(p.because, "its queue is limited by "+limit)
		}
	}
	return p
}

// lockOf says which lock a task waits for.
func lockOf(ctx context.Context, env *Env, id string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	l, err := env.Control.Locks(ctx, &apiv1.LocksRequest{})
	if err != nil {
		return nil // it is one hint of several
	}
	for _, k := range l.GetWaiting() {
		if k.GetTaskId() == id {
			return []string{fmt.Sprintf("it waits for the lock %s since %s; holder: %s", k.GetKey(), age(env, k.GetSinceMs()), holderText(k))}
		}
	}
	return nil
}

// tellStory writes the timeline: the time of day, what happened, and more below it.
func tellStory(env *Env, t *task.Task, story []storyPoint, because []string) error {
	const stamp = "15:04:05.000"
	style := env.style()
	var b strings.Builder
	const beside = len(stamp) + gapColumns
	put := func(head, text string, paint screen.Paint) {
		for _, line := range storyLines(text, style.Width-beside) {
			b.WriteString(strings.TrimRight(screen.Pad(head, beside, false)+style.Paint(paint, line), " ") + "\n")
			head = ""
		}
	}
	fmt.Fprintf(&b, "%s: %s\n\n", screen.Clean(t.ID.String()), style.Paint(paintOf(t.State), t.State.String()))
	day := ""
	for _, point := range story {
		head := ""
		if point.At != nil {
			local := point.At.In(env.Zone)
			if today := local.Format(time.DateOnly); today != day {
				day = today
				put("", today, screen.Faint)
			}
			head = local.Format(stamp)
		}
		put(head, screen.Clean(point.Text), point.paint)
		for _, line := range point.More {
			put("", "  "+screen.Clean(line), screen.Plain)
		}
	}
	for i, reason := range because {
		head := ""
		if i == 0 {
			head = "It waits:"
		}
		put(head, screen.Clean(reason), screen.Warn)
	}
	if len(t.Payload) > 0 {
		for i, line := range payloadLines(t) {
			head := ""
			if i == 0 {
				head = "Payload:"
			}
			put(head, line, screen.Plain)
		}
	}
	_, err := env.Out.Write([]byte(b.String()))
	return err
}

// storyLines are a cleaned text on so many columns, any number when they are not above 0: wrapped with its indentation, but a line of a
// worker is cut.
func storyLines(text string, columns int) []string {
	words := strings.TrimLeft(text, " ")
	indent := text[:len(text)-len(words)]
	switch room := columns - len(indent); {
	case columns <= 0 || screen.Width(text) <= columns:
		return []string{text}
	case room < 1 || strings.HasPrefix(words, detailMark):
		return []string{screen.Cut(text, columns)}
	default:
		lines := screen.Wrap(words, room)
		for i := range lines {
			lines[i] = indent + lines[i]
		}
		return lines
	}
}

const gapColumns = 2
