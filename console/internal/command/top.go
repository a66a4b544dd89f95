package command

import (
	"context"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/top"
)

// Terminal is what a full-screen view needs of a terminal.
type Terminal = top.Terminal

func topCommand() *Command {
	return &Command{
		Section: SectionLook,
		Name:    "top",
		Summary: "queues and workers, live on the whole screen",
		Help: `Arrows or j and k select, Tab goes to the workers, s sorts, p pauses or resumes the queue, r restarts, K kills the worker after
asking, h helps, q or Ctrl-C leaves: the exit code is 0. It needs a terminal; programs use status --json.`,
		Examples: []Example{{`drover top`, "watch it work"}},
		Run:      runTop,
	}
}

func runTop(ctx context.Context, env *Env, _ *Args) error {
	if env.Terminal == nil || env.JSON {
		return usageError("top needs a terminal, and has nothing for programs: use status --json or watch --json")
	}
	if _, err := status(ctx, env); err != nil {
		return err // a screen of nothing would hide the reason
	}
	return top.Run(ctx, env.Terminal, topManager{env}, env.Colour, env.Now)
}

// topManager is the manager as top asks it.
type topManager struct{ env *Env }

var _ top.Manager = topManager{}

func (m topManager) Status(ctx context.Context) (*apiv1.StatusResponse, error) {
	s, err := status(ctx, m.env)
	return s, m.explain(ctx, err)
}

func (m topManager) Pause(ctx context.Context, queue string) error {
	_, err := ask(ctx, "pause the queue", m.env.Control.Pause, &apiv1.PauseRequest{Queue: queue})
	return m.explain(ctx, err)
}

func (m topManager) Resume(ctx context.Context, queue string) error {
	_, err := ask(ctx, "resume the queue", m.env.Control.Resume, &apiv1.ResumeRequest{Queue: queue})
	return m.explain(ctx, err)
}

func (m topManager) Restart(ctx context.Context, queue string, worker uint64) error {
	_, err := ask(ctx, "restart workers", m.env.Control.Restart, &apiv1.RestartRequest{Queue: queue, Worker: worker})
	return m.explain(ctx, err)
}

func (m topManager) Kill(ctx context.Context, worker uint64) error {
	_, err := ask(ctx, "kill the worker", m.env.Control.Kill, &apiv1.KillRequest{Worker: worker})
	return m.explain(ctx, err)
}

// explain is an error in the words that a person reads elsewhere.
func (m topManager) explain(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return Explain(ctx, m.env, err)
}
