package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

func explainCommand() *Command {
	return &Command{
		Section: SectionLook,
		Name:    "explain",
		Args:    "QUEUE",
		Summary: "why a queue has as many workers as it has, and what limits it now",
		Help: `It shows what keeps the queue from doing more (the first is the most important), from what the number of workers was
decided last, and the earlier decisions that changed something.`,
		Examples: []Example{{`drover explain feed-pull`, "why it is not faster"}},
		Min:      1, Max: 1,
		Complete: completeQueue,
		Run:      runExplain,
	}
}

type explainJSON struct {
	Queue  string         `json:"queue"`
	Limits []string       `json:"limits"`
	Now    *decisionJSON  `json:"now"`
	Before []decisionJSON `json:"before"`
}

type decisionJSON struct {
	At          *time.Time `json:"at,omitempty"`
	Start       int32      `json:"start"`
	Stop        int32      `json:"stop"`
	Reason      string     `json:"reason"`
	Ready       int32      `json:"ready"`
	Starting    int32      `json:"starting"`
	Leaving     int32      `json:"leaving"`
	Waiting     int32      `json:"waiting"`
	Running     int32      `json:"running"`
	Capacity    int32      `json:"capacity"`
	MeanRunUS   int64      `json:"mean_run_us"`
	StartCostUS int64      `json:"start_cost_us"`
}

func runExplain(ctx context.Context, env *Env, args *Args) error {
	queue := args.Words[0]
	e, err := ask(ctx, "explain the queue", env.Control.Explain, &apiv1.ExplainRequest{Queue: queue})
	if err != nil {
		return aboutQueue(ctx, env, queue, err)
	}
	if env.JSON {
		view := explainJSON{Queue: queue, Limits: append([]string{}, e.GetLimits()...), Before: make([]decisionJSON, 0, len(e.GetBefore()))}
		if e.GetNow() != nil {
			now := decisionView(e.GetNow())
			view.Now = &now
		}
		for _, d := range e.GetBefore() {
			view.Before = append(view.Before, decisionView(d))
		}
		return screen.WriteJSON(env.Out, view)
	}
	if err := explainFields(env, queue, e).Write(env.Out, env.style()); err != nil || len(e.GetBefore()) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(env.Out); err != nil {
		return err
	}
	return decisionTable(env, e.GetBefore()).Write(env.Out, env.style())
}

func explainFields(env *Env, queue string, e *apiv1.ExplainResponse) *screen.Fields {
	var f screen.Fields
	f.Add("Queue", queue)
	if len(e.GetLimits()) == 0 {
		f.AddPainted("Limited by", "nothing: it takes what comes", screen.Good)
	}
	limits := make([]string, len(e.GetLimits()))
	for i, limit := range e.GetLimits() {
		limits[i] = screen.Clean(limit)
	}
	f.AddLines("Limited by", limits)
	d := e.GetNow()
	if d == nil {
		f.Add("Decision", "none yet: nothing has come in since the manager's start")
		return &f
	}
	f.Add("Workers", fmt.Sprintf("%d ready, %d starting, %d leaving", d.GetReady(), d.GetStarting(), d.GetLeaving()))
	f.Add("Tasks", fmt.Sprintf("%d running of %d at once, %d waiting for a worker", d.GetRunning(), d.GetCapacity(), d.GetWaiting()))
	f.Add("A task takes", micros(d.GetMeanRunUs()))
	f.Add("A start costs", micros(d.GetStartCostUs()))
	f.Add("Decision", decisionText(d))
	f.Add("Decided", agoText(env, d.GetAtMs()))
	return &f
}

// decisionText is what was decided, and why.
func decisionText(d *apiv1.Decision) string {
	var what string
	switch {
	case d.GetStart() > 0 && d.GetStop() > 0:
		what = fmt.Sprintf("start %d, stop %d", d.GetStart(), d.GetStop())
	case d.GetStart() > 0:
		what = fmt.Sprintf("start %d", d.GetStart())
	case d.GetStop() > 0:
		what = fmt.Sprintf("stop %d", d.GetStop())
	default:
		what = "leave it as it is"
	}
	return strings.TrimSuffix(what+": "+d.GetReason(), ": ")
}

func decisionTable(env *Env, decisions []*apiv1.Decision) *screen.Table {
	t := &screen.Table{Columns: []screen.Column{
		{Title: "AGO", Right: true}, {Title: "DECISION", Flexible: true}, {Title: "READY", Right: true, Spare: 1},
		{Title: "WAITING", Right: true, Spare: 2}, {Title: "RUNNING", Right: true, Spare: 3},
	}}
	for _, d := range decisions {
		t.Add(screen.Text(age(env, d.GetAtMs())), screen.Text(decisionText(d)), screen.Text(fmt.Sprint(d.GetReady())),
			screen.Text(fmt.Sprint(d.GetWaiting())), screen.Text(fmt.Sprintf("%d/%d", d.GetRunning(), d.GetCapacity())))
	}
	return t
}

func decisionView(d *apiv1.Decision) decisionJSON {
	return decisionJSON{
		At: moment(d.GetAtMs()), Start: d.GetStart(), Stop: d.GetStop(), Reason: d.GetReason(), Ready: d.GetReady(), Starting: d.GetStarting(),
		Leaving: d.GetLeaving(), Waiting: d.GetWaiting(), Running: d.GetRunning(), Capacity: d.GetCapacity(),
		MeanRunUS: d.GetMeanRunUs(), StartCostUS: d.GetStartCostUs(),
	}
}

// micros is a time given in microseconds; empty for none.
func micros(us int64) string {
	switch d := time.Duration(us) * time.Microsecond; {
	case us <= 0:
		return ""
	case d < time.Millisecond:
		return fmt.Sprintf("%d us", us)
	default:
		return screen.Duration(d)
	}
}

// agoText is when a moment was, such as "1.2 s ago"; empty when it is not known.
func agoText(env *Env, unixMillis int64) string {
	if text := age(env, unixMillis); text != "" {
		return text + " ago"
	}
	return ""
}
