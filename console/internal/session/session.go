package session

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/drover-jobs/drover/console/internal/command"
	"github.com/drover-jobs/drover/protocol/client"
)

// Session runs commands one after the other. It makes a connection to each manager that is asked for when it is first needed, and
// keeps it. It is used by one goroutine, but for Complete and Status, which may be called from another.
type Session struct {
	process Process
	tree    *command.Tree
	env     *command.Env
	common  []string // flags given to the session, such as --json

	mu    sync.Mutex
	lines map[string]*connection // by address
}

// connection is the way to one manager.
type connection struct {
	tasks   client.Client
	control Control
}

// New returns a session that runs nothing yet. common are flags that every command of it gets.
func New(p Process, common []string) *Session {
	s := &Session{process: p, tree: command.New(), env: p.environment(), common: common, lines: map[string]*connection{}}
	s.env.JSON = command.WantsJSON(common)
	s.env.Seen = &command.Seen{}
	return s
}

// Close ends the connections.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, c := range s.lines {
		errs = append(errs, c.tasks.Close(), c.control.Close())
	}
	clear(s.lines)
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close the connection to the manager: %w", err)
	}
	return nil
}

// Do runs one command and reports its failure. The code is that of the command; left is true when the command was to leave.
func (s *Session) Do(ctx context.Context, words []string) (code command.Code, left bool) {
	env := *s.env
	env.JSON = s.env.JSON || command.WantsJSON(words)
	failure := s.run(ctx, &env, words)
	if err := command.Report(&env, failure); err != nil {
		_, _ = fmt.Fprintln(s.process.Err, "drover: write the answer:", err) // Err may be gone too; the exit code still tells
		return command.Failed, false
	}
	if failure == nil {
		return command.Done, false
	}
	return failure.Code, failure.Kind == command.KindLeave
}

func (s *Session) run(ctx context.Context, env *command.Env, words []string) *command.ExitError {
	call, err := s.tree.Parse(words)
	if err != nil {
		return command.Explain(ctx, env, err)
	}
	if call.Command.Offline {
		return command.Explain(ctx, env, s.tree.Run(ctx, env, call))
	}
	if failure := s.connect(env, call.Args.Text(command.FlagSocket)); failure != nil {
		return failure
	}
	return command.Explain(ctx, env, s.tree.Run(ctx, env, call))
}

// connect puts a connection to the manager into env.
func (s *Session) connect(env *command.Env, socket string) *command.ExitError {
	if socket == "" {
		socket = socketOf(s.common)
	}
	place := choose(socket, s.process.Getenv, s.process.Exists)
	env.Address = place.tried
	if place.absent {
		return command.NoManagerAt(place.tried, errors.New("there is no socket"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	line, made := s.lines[place.address]
	if !made {
		tasks, control, err := s.process.Dial(place.address)
		if err != nil {
			return command.NoManagerAt(place.tried, err)
		}
		line = &connection{tasks: tasks, control: control}
		s.lines[place.address] = line
	}
	env.Tasks, env.Control = line.tasks, line.control
	return nil
}

// socketOf is the value of --socket among flags; empty when it is not there.
func socketOf(flags []string) string {
	for i, flag := range flags {
		if flag == "--"+command.FlagSocket && i+1 < len(flags) {
			return flags[i+1]
		}
	}
	return ""
}
