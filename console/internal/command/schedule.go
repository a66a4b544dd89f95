package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/protocol/task"
)

func scheduleCommand() *Command {
	return &Command{
		Section: SectionOperate,
		Name:    "schedule",
		Args:    "pause NAME | resume NAME | run NAME | set NAME SETTING=VALUE...",
		Summary: "pause, resume, run now or change what is submitted by itself",
		Help: `"pause" keeps all managers from submitting runs, also after their restart; runs that were submitted go on. "resume"
goes on with the next due time: what passed meanwhile is neither run nor missed. "run" submits a run now, also of a
schedule that is paused or off.

"set" changes cron, every, time_zone, jitter, overlap, catch_up, payload (JSON) or enabled, all at once or none, in
this manager: the others go by their own configuration, so say it to each. every takes the place of cron, and cron
that of every. It is the same as set schedule:NAME.SETTING=VALUE: it holds until the manager's restart, save keeps it,
undo takes it back, settings schedule:NAME says what is allowed. A schedule that is due at other times counts from now
on.`,
		Examples: []Example{
			{`drover schedule pause nightly`, "for all managers"},
			{`drover schedule run nightly`, "once, now"},
			{`drover schedule set nightly every=10m jitter=30s`, "more often, at once"},
			{`drover schedule set nightly cron="30 3 * * 1-5" time_zone=Europe/Berlin --dry-run`, "what would happen"},
		},
		Flags: []Flag{{Name: "dry-run", Help: "set: check it and say what would happen, only"}},
		Min:   2, Max: -1,
		Complete: completeScheduleWords,
		Run:      runSchedule,
	}
}

// scheduleVerbs are what can be done to a schedule.
func scheduleVerbs() []string { return []string{"pause", "resume", "run", "set"} }

// schedulePrefix stands before a schedule's name where a queue's could stand.
const schedulePrefix = "schedule:"

func runSchedule(ctx context.Context, env *Env, args *Args) error {
	verb, name, rest := args.Words[0], args.Words[1], args.Words[2:]
	switch {
	case !slices.Contains(scheduleVerbs(), verb):
		return usageError("schedule: no such thing to do: %.60q%s (there are %s)", verb, didYouMean(verb, scheduleVerbs()), strings.Join(scheduleVerbs(), ", "))
	case verb == "set":
		return setSchedule(ctx, env, name, rest, args.Has("dry-run"))
	case len(rest) > 0:
		return usageError("schedule %s does not take %.60q", verb, rest[0])
	case args.Has("dry-run"):
		return usageError("--dry-run goes with schedule set")
	case verb == "run":
		return runScheduleNow(ctx, env, name)
	default:
		return holdSchedule(ctx, env, name, verb == "pause")
	}
}

type scheduleDoneJSON struct {
	Schedule string `json:"schedule"`
	Done     string `json:"done"`
	Changed  bool   `json:"changed"`
	Task     string `json:"task,omitempty"`
}

func holdSchedule(ctx context.Context, env *Env, name string, pause bool) error {
	if pause {
		answer, err := ask(ctx, "pause the schedule", env.Control.PauseSchedule, &apiv1.PauseScheduleRequest{Name: name, Who: env.Who})
		if err != nil {
			return err
		}
		text := fmt.Sprintf("%s is paused for all managers; runs that were submitted go on. drover schedule resume %s takes it up again.", name, name)
		if !answer.GetChanged() {
			text = name + " is paused already."
		}
		return tellDone(env, scheduleDoneJSON{Schedule: name, Done: "paused", Changed: answer.GetChanged()}, text)
	}
	answer, err := ask(ctx, "resume the schedule", env.Control.ResumeSchedule, &apiv1.ResumeScheduleRequest{Name: name, Who: env.Who})
	if err != nil {
		return err
	}
	text := name + " goes on with its next due time."
	if !answer.GetChanged() {
		text = name + " is not paused."
	}
	return tellDone(env, scheduleDoneJSON{Schedule: name, Done: "resumed", Changed: answer.GetChanged()}, text)
}

func runScheduleNow(ctx context.Context, env *Env, name string) error {
	answer, err := ask(ctx, "run the schedule", env.Control.RunSchedule, &apiv1.RunScheduleRequest{Name: name, Who: env.Who})
	if err != nil {
		return err
	}
	if id, err := task.ParseID(answer.GetTaskId()); err == nil {
		env.Seen.add(id)
	}
	return tellDone(env, scheduleDoneJSON{Schedule: name, Done: "run", Changed: true, Task: answer.GetTaskId()}, answer.GetTaskId())
}

// setSchedule changes settings of a schedule; the one of cron and every that is not named is switched off.
func setSchedule(ctx context.Context, env *Env, name string, words []string, dryRun bool) error {
	if len(words) == 0 {
		return usageError("what is to be changed? Write SETTING=VALUE, such as every=10m; settings %s%s lists them", schedulePrefix, name)
	}
	addressed := make([]string, len(words))
	for i, word := range words {
		addressed[i] = schedulePrefix + name + "." + word
	}
	changes, err := changesOf(addressed)
	if err != nil {
		return err
	}
	answer, err := ask(ctx, "look at the schedule", env.Control.Schedules, &apiv1.SchedulesRequest{Name: name})
	if err != nil {
		return err
	}
	now := answer.GetSchedules()[0]
	named := func(setting string) bool {
		return slices.ContainsFunc(changes, func(c *apiv1.SettingChange) bool { return c.GetName() == setting && c.GetValue() != "off" })
	}
	off := func(setting string) {
		changes = append(changes, &apiv1.SettingChange{Queue: schedulePrefix + name, Name: setting, Value: "off"})
	}
	switch cron, every := named("cron"), named("every"); {
	case every && !cron && now.GetCron() != "" && !mentioned(changes, "cron"):
		off("cron")
	case cron && !every && now.GetEveryMs() > 0 && !mentioned(changes, "every"):
		off("every")
	}
	return change(ctx, env, changes, dryRun)
}

func mentioned(changes []*apiv1.SettingChange, setting string) bool {
	return slices.ContainsFunc(changes, func(c *apiv1.SettingChange) bool { return c.GetName() == setting })
}

func completeScheduleWords(ctx context.Context, env *Env, words []string) []string {
	switch {
	case len(words) == 1:
		return scheduleVerbs()
	case len(words) == 2: //nolint:mnd // the verb and the name
		return schedulesNow(ctx, env)
	case words[0] != "set":
		return nil
	}
	var offers []string
	name, _, valued := strings.Cut(words[len(words)-1], "=")
	for _, s := range settingsNow(ctx, env, schedulePrefix+words[1]) {
		switch {
		case !valued:
			offers = append(offers, s.GetName()+"=")
		case s.GetName() == name:
			for _, value := range valuesOf(s) {
				offers = append(offers, name+"="+value)
			}
		}
	}
	return offers
}
