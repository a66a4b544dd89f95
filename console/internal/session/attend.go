package session

import (
	"context"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/command"
	"github.com/drover-jobs/drover/protocol/client"
)

// What a prompt asks of a session beside running lines. These may be called while a line runs.

// Typed runs a line that a person typed at a prompt, until its end or the next Ctrl-C. left is true when it was to leave.
func (s *Session) Typed(ctx context.Context, text string) (left bool) {
	select {
	case <-s.process.Interrupts: // it was meant for what ended meanwhile
	default:
	}
	own, stop := s.process.interruptible(ctx)
	defer stop()
	if t := s.process.Terminal; t != nil {
		t.Lend()
		defer t.Return()
		s.env.In = t.Borrowed(own)
	}
	_, left = s.Line(own, text, false)
	return left
}

// Complete offers what the last of a command's words could become.
func (s *Session) Complete(ctx context.Context, words []string) []string {
	env := *s.env
	socket, words := command.TakeCommon(words)
	_ = s.connect(&env, socket) // without a manager there are the commands and their flags
	return s.tree.Complete(ctx, &env, words)
}

// Status asks the manager how it is doing.
func (s *Session) Status(ctx context.Context) (*apiv1.StatusResponse, error) {
	var env command.Env
	if failure := s.connect(&env, ""); failure != nil {
		return nil, failure
	}
	status, err := env.Control.Status(ctx, &apiv1.StatusRequest{})
	return status, client.Explain(ctx, "ask the manager how it is doing", err)
}

// Address is where the manager should be, for messages.
func (s *Session) Address() string {
	return choose(socketOf(s.common), s.process.Getenv, s.process.Exists).tried
}

// Colour reports whether colours may be written.
func (s *Session) Colour() bool { return s.env.Colour }
