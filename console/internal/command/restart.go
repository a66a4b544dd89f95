package command

import (
	"context"
	"fmt"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

func restartCommand() *Command {
	return &Command{
		Section: SectionOperate,
		Name:    "restart",
		Args:    "QUEUE | WORKER",
		Summary: "replace the workers of a queue, or one worker, after their tasks",
		Help: `A new worker starts before an old one leaves, and nothing is lost. It takes a program up that was replaced on disk, and
settings that hold for new workers only.`,
		Examples: []Example{
			{`drover restart feed-pull`, "all workers of the queue, one after the other"},
			{`drover restart 17`, "one worker"},
		},
		Min: 1, Max: 1,
		Complete: completeQueueOrWorker,
		Run:      runRestart,
	}
}

// completeQueueOrWorker offers both.
func completeQueueOrWorker(ctx context.Context, env *Env, words []string) []string {
	if len(words) != 1 {
		return nil
	}
	s := quickStatus(ctx, env)
	return append(queueNames(s.GetQueues()), workerNumbers(s.GetWorkers())...)
}

type restartedJSON struct {
	Queue   string `json:"queue,omitempty"`
	Worker  uint64 `json:"worker,omitempty"`
	Workers int32  `json:"workers"`
}

func runRestart(ctx context.Context, env *Env, args *Args) error {
	word := args.Words[0]
	worker, notNumber := parseWorker(word)
	request := &apiv1.RestartRequest{Worker: worker}
	if notNumber != nil {
		request = &apiv1.RestartRequest{Queue: word}
	}
	answer, err := ask(ctx, "restart workers", env.Control.Restart, request)
	switch {
	case err != nil && notNumber != nil:
		return aboutQueue(ctx, env, word, err)
	case err != nil:
		return aboutWorker(ctx, env, worker, err)
	}
	text := fmt.Sprintf("%d workers of %s are replaced after their tasks; workers shows them.", answer.GetWorkers(), word)
	switch {
	case notNumber == nil:
		text = fmt.Sprintf("worker %d is replaced after its tasks.", worker)
	case answer.GetWorkers() == 0:
		text = fmt.Sprintf("no worker of %s is running; the next will be new anyway.", word)
	}
	return tellDone(env, restartedJSON{Queue: request.GetQueue(), Worker: worker, Workers: answer.GetWorkers()}, text)
}
