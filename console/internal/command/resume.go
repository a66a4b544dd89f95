package command

import (
	"context"
	"fmt"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

func resumeCommand() *Command {
	return &Command{
		Section:  SectionOperate,
		Name:     "resume",
		Args:     "QUEUE",
		Summary:  "take a queue's tasks again",
		Help:     `It takes both kinds of pause back, and tries at once to start workers that could not be started (circuit-open).`,
		Examples: []Example{{`drover resume feed-pull`, "go on"}},
		Min:      1, Max: 1,
		Complete: completeQueue,
		Run:      runResume,
	}
}

func runResume(ctx context.Context, env *Env, args *Args) error {
	queue := args.Words[0]
	if _, err := ask(ctx, "resume the queue", env.Control.Resume, &apiv1.ResumeRequest{Queue: queue}); err != nil {
		return aboutQueue(ctx, env, queue, err)
	}
	return tellDone(env, doneJSON{Queue: queue, Done: "resumed"}, fmt.Sprintf("%s takes tasks again.", queue))
}
