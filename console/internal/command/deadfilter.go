package command

import (
	"context"
	"slices"
	"strings"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/protocol/task"
)

// What all commands share that choose among dead letters.

// filterFlags are the flags that choose; when says when they may be given, such as "with --dead: "; it may be empty.
func filterFlags(when string) []Flag {
	return []Flag{
		{Name: "reason", Value: "REASON", Help: when + "only those that died for this: a kind of failure such as timeout, why the process ended such as memory-max, or a state such as quarantined",
			Complete: func(context.Context, *Env) []string { return task.Reasons() }},
		{Name: "older", Value: "TIME", Help: when + "only those that died longer ago than this, such as 1h"},
		{Name: "newer", Value: "TIME", Help: when + "only those that died since then, such as 10m"},
		{Name: "match", Value: "TEXT", Help: when + "only those whose error message contains TEXT, in upper or lower case"},
	}
}

// filterOf reads the filter of a command line; nil when none is given. Its errors are of usage.
func filterOf(env *Env, args *Args) (*apiv1.DeadFilter, error) {
	filter := &apiv1.DeadFilter{Reason: args.Text("reason"), Match: args.Text("match")}
	if known := task.Reasons(); filter.Reason != "" && !slices.Contains(known, filter.Reason) {
		return nil, usageError("--reason: nothing dies for %.60q%s (there are %s)", filter.Reason, didYouMean(filter.Reason, known), strings.Join(known, ", "))
	}
	older, err := args.Duration("older")
	if err != nil {
		return nil, err
	}
	newer, err := args.Duration("newer")
	if err != nil {
		return nil, err
	}
	if older > 0 && newer > 0 && newer <= older {
		return nil, usageError("--newer %s: nothing is newer than that and older than %s; give --newer the longer time", newer, older)
	}
	ago := func(d time.Duration) int64 {
		if d == 0 {
			return 0
		}
		return env.Now().Add(-d).UnixMilli()
	}
	filter.DiedBeforeMs, filter.DiedSinceMs = ago(older), ago(newer)
	if len(filterWords(args)) == 0 {
		return nil, nil //nolint:nilnil // no filter, no error
	}
	return filter, nil
}

// filterWords say in words what a command line chooses.
func filterWords(args *Args) []string {
	var words []string
	for _, f := range []struct{ flag, before, behind string }{
		{"reason", "died for ", ""}, {"older", "died more than ", " ago"}, {"newer", "died less than ", " ago"}, {"match", `say "`, `"`},
	} {
		if text := args.Text(f.flag); text != "" {
			words = append(words, f.before+text+f.behind)
		}
	}
	return words
}
