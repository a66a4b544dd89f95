package oneshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/drover-jobs/drover/console/internal/command"
	"github.com/drover-jobs/drover/protocol/client"
)

// Process is what a command line may use of the process that runs it.
type Process struct {
	// Args are the words behind the program's name.
	Args     []string
	In       io.Reader
	Out, Err io.Writer
	Getenv   func(name string) string
	Exists   func(path string) bool
	ReadFile func(name string) ([]byte, error)
	Now      func() time.Time
	Zone     *time.Location
	// OutWidth is the number of columns of Out; 0 when it is no terminal.
	OutWidth func() int
	// ErrTerminal is true when Err is a terminal.
	ErrTerminal bool
	// Dial connects to a manager's address, such as "unix:var/drover.sock".
	Dial    func(address string) (client.Client, Control, error)
	Version string
}

// Control is a connection to a manager's control service.
type Control interface {
	command.Control
	Close() error
}

// Run runs the command line and returns the exit code.
func Run(ctx context.Context, p Process) int {
	env := &command.Env{
		In: p.In, Out: p.Out, Err: p.Err, Now: p.Now, Zone: p.Zone, ReadFile: p.ReadFile, Version: p.Version,
		Width: p.OutWidth, JSON: command.WantsJSON(p.Args),
		Live:   p.ErrTerminal && p.Getenv("TERM") != "dumb",
		Colour: p.OutWidth() > 0 && p.Getenv("NO_COLOR") == "" && p.Getenv("TERM") != "dumb",
	}
	failure := run(ctx, p, env)
	if err := command.Report(env, failure); err != nil {
		_, _ = fmt.Fprintln(p.Err, "drover: write the answer:", err) // Err may be gone too; the exit code still tells
		return int(command.Failed)
	}
	if failure == nil {
		return int(command.Done)
	}
	return int(failure.Code)
}

func run(ctx context.Context, p Process, env *command.Env) *command.ExitError {
	tree := command.New()
	call, err := tree.Parse(p.Args)
	if err != nil {
		return command.Explain(ctx, env, err)
	}
	if call.Command.Offline {
		return command.Explain(ctx, env, tree.Run(ctx, env, call))
	}
	place := choose(call.Args.Text(command.FlagSocket), p.Getenv, p.Exists)
	env.Address = place.tried
	if place.absent {
		return command.NoManagerAt(place.tried, errors.New("there is no socket"))
	}
	tasks, control, err := p.Dial(place.address)
	if err != nil {
		return command.NoManagerAt(place.tried, err)
	}
	env.Tasks, env.Control = tasks, control
	failure := command.Explain(ctx, env, tree.Run(ctx, env, call))
	if err := errors.Join(tasks.Close(), control.Close()); err != nil && failure == nil {
		return command.Explain(ctx, env, fmt.Errorf("close the connection to the manager: %w", err))
	}
	return failure
}
