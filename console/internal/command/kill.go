package command

import (
	"context"
	"fmt"
	"strings"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

func killCommand() *Command {
	return &Command{
		Section: SectionOperate,
		Name:    "kill",
		Args:    "WORKER",
		Summary: "end a worker now; its tasks go back to their queue and it costs them nothing",
		Help: `It kills the worker's whole process group, frozen ones too. It asks first; --yes is the answer in a script. restart
replaces a worker without breaking its tasks off.`,
		Examples: []Example{{`drover kill 17 --yes`, "end worker 17, without asking"}},
		Flags:    []Flag{yesFlag()},
		Min:      1, Max: 1,
		Complete: completeWorker,
		Run:      runKill,
	}
}

type killedJSON struct {
	Worker uint64   `json:"worker"`
	PID    int32    `json:"pid"`
	Tasks  []string `json:"tasks"`
}

func runKill(ctx context.Context, env *Env, args *Args) error {
	worker, err := parseWorker(args.Words[0])
	if err != nil {
		return err
	}
	if !args.Has("yes") {
		question, err := killQuestion(ctx, env, worker)
		if err != nil {
			return err
		}
		if err := env.confirm(ctx, args, question); err != nil {
			return err
		}
	}
	answer, err := ask(ctx, "kill the worker", env.Control.Kill, &apiv1.KillRequest{Worker: worker})
	if err != nil {
		return aboutWorker(ctx, env, worker, err)
	}
	text := fmt.Sprintf("worker %d (pid %d) is killed; it had no task.", worker, answer.GetPid())
	if ids := answer.GetTaskIds(); len(ids) > 0 {
		text = fmt.Sprintf("worker %d (pid %d) is killed; back at the head of their queue: %s", worker, answer.GetPid(), strings.Join(ids, " "))
	}
	return tellDone(env, killedJSON{Worker: worker, PID: answer.GetPid(), Tasks: append([]string{}, answer.GetTaskIds()...)}, text)
}

// killQuestion says what is in the worker.
func killQuestion(ctx context.Context, env *Env, worker uint64) (string, error) {
	s, err := status(ctx, env)
	if err != nil {
		return "", err
	}
	for _, w := range s.GetWorkers() {
		if w.GetId() == worker {
			return fmt.Sprintf("Kill worker %d of %s (pid %d), which runs %d tasks?", worker, w.GetQueue(), w.GetPid(), w.GetRunning()), nil
		}
	}
	return "", aboutWorker(ctx, env, worker, &ExitError{Code: Usage, Kind: "not_found", Message: fmt.Sprintf("no such worker: %d", worker)})
}
