package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

func schedulesCommand() *Command {
	return &Command{
		Section: SectionLook,
		Name:    "schedules",
		Args:    "[NAME]",
		Summary: "what is submitted by itself: when next, and how the last run ended",
		Help: `The schedules are those of this manager's configuration; what is known of them is known over all managers. STATE is
"on", "paused" (for all managers), "off" (in this manager), "waiting" (a run waits for the end of the earlier one),
"broken" (the line below says why) or "unknown" (the broker is away). SKIPPED are due times at which the earlier run
had not ended, MISSED those that passed while no manager was there. With a name it shows one, and the next five times.
Each run is a task: why tells its story.`,
		Examples: []Example{
			{`drover schedules`, "all of them"},
			{`drover schedules nightly`, "one, with the times to come"},
		},
		Max:      1,
		Complete: completeSchedule,
		Run:      runSchedules,
	}
}

type schedulesJSON struct {
	BrokerError string         `json:"broker_error,omitempty"`
	Schedules   []scheduleJSON `json:"schedules"`
}

// scheduleJSON: the counts are null while the broker is away.
type scheduleJSON struct {
	Name     string             `json:"name"`
	Queue    string             `json:"queue"`
	State    string             `json:"state"`
	Problem  string             `json:"problem,omitempty"`
	Cron     string             `json:"cron,omitempty"`
	EveryMS  int64              `json:"every_ms,omitempty"`
	TimeZone string             `json:"time_zone"`
	JitterMS int64              `json:"jitter_ms"`
	Overlap  string             `json:"overlap"`
	CatchUp  string             `json:"catch_up"`
	Payload  json.RawMessage    `json:"payload"`
	Next     []scheduledRunJSON `json:"next"`
	Waiting  *time.Time         `json:"waiting_due_at,omitempty"`
	Last     *lastRunJSON       `json:"last"`
	Fired    *int64             `json:"fired"`
	Skipped  *int64             `json:"skipped"`
	Missed   *int64             `json:"missed"`
	Paused   *time.Time         `json:"paused_at,omitempty"`
	PausedBy string             `json:"paused_by,omitempty"`
}

type scheduledRunJSON struct {
	Due    *time.Time `json:"due_at"`
	Begins *time.Time `json:"begins_at"`
}

// lastRunJSON: the state is null when the task's record has expired; there is no due time when it was asked for by hand.
type lastRunJSON struct {
	Task      string       `json:"task"`
	Due       *time.Time   `json:"due_at,omitempty"`
	Submitted *time.Time   `json:"submitted_at"`
	Manager   string       `json:"manager"`
	State     *task.State  `json:"state"`
	Error     *fault.Fault `json:"error,omitempty"`
}

func runSchedules(ctx context.Context, env *Env, args *Args) error {
	name := ""
	if len(args.Words) > 0 {
		name = args.Words[0]
	}
	answer, err := ask(ctx, "list the schedules", env.Control.Schedules, &apiv1.SchedulesRequest{Name: name})
	if err != nil {
		return err
	}
	for _, s := range answer.GetSchedules() {
		if id, err := task.ParseID(s.GetLastTaskId()); err == nil {
			env.Seen.add(id)
		}
	}
	switch {
	case env.JSON:
		view := schedulesJSON{BrokerError: answer.GetBrokerError(), Schedules: make([]scheduleJSON, len(answer.GetSchedules()))}
		for i, s := range answer.GetSchedules() {
			view.Schedules[i] = scheduleView(s)
		}
		return screen.WriteJSON(env.Out, view)
	case name != "" && len(answer.GetSchedules()) == 1:
		err = scheduleFields(env, answer.GetSchedules()[0]).Write(env.Out, env.style())
	case len(answer.GetSchedules()) == 0:
		_, err = fmt.Fprintln(env.Out, "This manager's configuration has no schedules.")
	default:
		err = scheduleTable(env, answer.GetSchedules()).Write(env.Out, env.style())
	}
	if why := answer.GetBrokerError(); why != "" {
		err = errors.Join(err, env.tell("What is known over all managers is not: "+why))
	}
	return err
}

func scheduleView(s *apiv1.Schedule) scheduleJSON {
	view := scheduleJSON{
		Name: s.GetName(), Queue: s.GetQueue(), State: s.GetState(), Problem: s.GetProblem(), Cron: s.GetCron(), EveryMS: s.GetEveryMs(),
		TimeZone: s.GetTimeZone(), JitterMS: s.GetJitterMs(), Overlap: s.GetOverlap(), CatchUp: s.GetCatchUp(), Payload: json.RawMessage("{}"),
		Next: make([]scheduledRunJSON, len(s.GetNext())), Waiting: moment(s.GetQueuedDueMs()), Paused: moment(s.GetPausedMs()), PausedBy: s.GetPausedBy(),
	}
	if payload := []byte(s.GetPayload()); json.Valid(payload) {
		view.Payload = payload
	}
	for i, run := range s.GetNext() {
		view.Next[i] = scheduledRunJSON{Due: moment(run.GetDueMs()), Begins: moment(run.GetAtMs())}
	}
	if s.GetState() != unknownSchedule {
		fired, skipped, missed := s.GetFired(), s.GetSkipped(), s.GetMissed()
		view.Fired, view.Skipped, view.Missed = &fired, &skipped, &missed
	}
	if s.GetLastTaskId() != "" {
		view.Last = &lastRunJSON{Task: s.GetLastTaskId(), Due: moment(s.GetLastDueMs()), Submitted: moment(s.GetLastAtMs()), Manager: s.GetLastManager()}
		if state := task.State(s.GetLastState()); state != task.Unknown {
			view.Last.State = &state
		}
		view.Last.Error = fault.FromProto(s.GetLastFault())
	}
	return view
}

// unknownSchedule is the state of a schedule of which only the configuration is known.
const unknownSchedule = "unknown"

func scheduleTable(env *Env, schedules []*apiv1.Schedule) *screen.Table {
	t := &screen.Table{Columns: []screen.Column{
		{Title: "SCHEDULE"}, {Title: "QUEUE", Flexible: true, Spare: 1}, {Title: "WHEN", Flexible: true}, {Title: "STATE"}, {Title: "NEXT"},
		{Title: "LAST RUN", Flexible: true}, {Title: "RUNS", Right: true, Spare: 2}, {Title: "SKIPPED", Right: true, Spare: 3}, {Title: "MISSED", Right: true, Spare: 3},
	}}
	for _, s := range schedules {
		next := ""
		if len(s.GetNext()) > 0 {
			next = due(time.UnixMilli(s.GetNext()[0].GetAtMs()), env.Now())
		}
		count := func(n int64) screen.Cell {
			if s.GetState() == unknownSchedule {
				return screen.Text("?")
			}
			return screen.Text(fmt.Sprint(n))
		}
		t.Add(screen.Text(s.GetName()), screen.Text(s.GetQueue()), screen.Text(dueText(s)), scheduleState(s), screen.Text(next),
			screen.Cell{Text: lastText(env, s), Paint: lastPaint(s)}, count(s.GetFired()), count(s.GetSkipped()), count(s.GetMissed()))
		if s.GetProblem() != "" {
			t.Note(s.GetProblem(), screen.Bad)
		}
	}
	return t
}

func scheduleState(s *apiv1.Schedule) screen.Cell {
	cell := screen.Cell{Text: s.GetState(), Paint: screen.Good}
	switch s.GetState() {
	case "on":
	case "broken":
		cell.Paint = screen.Bad
	default:
		cell.Paint = screen.Warn
	}
	return cell
}

// dueText says when a schedule is due, such as "every 10m" or "30 3 * * * Europe/Berlin".
func dueText(s *apiv1.Schedule) string {
	if s.GetCron() == "" {
		return "every " + writtenDuration(s.GetEveryMs())
	}
	return s.GetCron() + " " + s.GetTimeZone()
}

// writtenDuration is a length of time as a person writes it, such as "10m".
func writtenDuration(ms int64) string {
	text := (time.Duration(ms) * time.Millisecond).String()
	for _, end := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, end) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// lastText says how the latest run is, or how it ended, such as "completed, 2 min ago".
func lastText(env *Env, s *apiv1.Schedule) string {
	if s.GetLastTaskId() == "" {
		return ""
	}
	state := "its record has expired"
	if known := task.State(s.GetLastState()); known != task.Unknown {
		state = known.String()
	}
	return state + ", " + age(env, s.GetLastAtMs()) + " ago"
}

func lastPaint(s *apiv1.Schedule) screen.Paint { return paintOf(task.State(s.GetLastState())) }

func scheduleFields(env *Env, s *apiv1.Schedule) *screen.Fields {
	var f screen.Fields
	f.Add("Schedule", s.GetName())
	f.Add("Queue", s.GetQueue())
	f.Add("When", dueText(s))
	state := scheduleState(s)
	if s.GetPausedMs() > 0 {
		state.Text += fmt.Sprintf(" for all managers, %s ago by %s", age(env, s.GetPausedMs()), s.GetPausedBy())
	}
	if s.GetQueuedDueMs() > 0 {
		state.Text += ": the run that was due at " + screen.Time(time.UnixMilli(s.GetQueuedDueMs()), env.Zone) + " waits for the end of the last one"
	}
	f.AddPainted("State", state.Text, state.Paint)
	f.AddPainted("Problem", s.GetProblem(), screen.Bad)
	if s.GetJitterMs() > 0 {
		f.Add("Jitter", "up to "+writtenDuration(s.GetJitterMs()))
	}
	f.Add("Overlap", s.GetOverlap())
	f.Add("Catch up", s.GetCatchUp())
	f.AddLines("Payload", screen.IndentJSON([]byte(s.GetPayload())))
	f.AddLines("Next", nextLines(env, s))
	if s.GetLastTaskId() != "" {
		f.AddPainted("Last run", s.GetLastTaskId()+": "+lastText(env, s)+", by "+s.GetLastManager(), lastPaint(s))
		if failure := fault.FromProto(s.GetLastFault()); failure != nil {
			f.AddPainted("Error", failure.Error(), screen.Bad)
		}
	}
	if s.GetState() != unknownSchedule {
		f.Add("Runs", fmt.Sprintf("%d, %d skipped, %d missed", s.GetFired(), s.GetSkipped(), s.GetMissed()))
	}
	return &f
}

// nextLines are the runs to come, by the clock of the schedule where that is known.
func nextLines(env *Env, s *apiv1.Schedule) []string {
	zone, err := time.LoadLocation(s.GetTimeZone())
	if err != nil || s.GetCron() == "" {
		zone = env.Zone
	}
	lines := make([]string, len(s.GetNext()))
	for i, run := range s.GetNext() {
		lines[i] = screen.Time(time.UnixMilli(run.GetDueMs()), zone)
		if late := run.GetAtMs() - run.GetDueMs(); late > 0 {
			lines[i] += ", begins " + screen.Duration(time.Duration(late)*time.Millisecond) + " later"
		}
	}
	return lines
}

// completeSchedule offers the manager's schedules for the first word behind a command.
func completeSchedule(ctx context.Context, env *Env, words []string) []string {
	if len(words) != 1 {
		return nil
	}
	return schedulesNow(ctx, env)
}

// schedulesNow are the names of the schedules of a manager that answers quickly.
func schedulesNow(ctx context.Context, env *Env) []string {
	var names []string
	if env.Control == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	answer, err := env.Control.Schedules(ctx, &apiv1.SchedulesRequest{})
	if err != nil {
		return nil // as in quickStatus
	}
	for _, s := range answer.GetSchedules() {
		names = append(names, s.GetName())
	}
	return names
}
