package session

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/drover-jobs/drover/console/internal/command"
	"github.com/drover-jobs/drover/protocol/client"
)

// Process is what a session may use of the process that runs it.
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
	// InTerminal is true when In is a terminal: without a command it is no script then.
	InTerminal bool
	// Terminal is where a person sits who can answer; nil when there is none.
	Terminal Terminal
	// Interrupts hears of Ctrl-C; nil never does. Release gives Ctrl-C its usual effect back; may be nil.
	Interrupts <-chan os.Signal
	Release    func()
	// Dial connects to a manager's address, such as "unix:var/drover.sock".
	Dial func(address string) (client.Client, Control, error)
	// Machine is what there is to see of this machine.
	Machine command.Machine
	// Who runs the process.
	Who     string
	Version string
}

// Control is a connection to a manager's control service.
type Control interface {
	command.Control
	Close() error
}

// Terminal is a terminal as the commands and the prompt use it.
type Terminal interface {
	command.Terminal
	// Lend gives what is typed to a command until Return gives it to the prompt.
	Lend()
	Return()
	// Confirm asks a question while the input is lent.
	Confirm(ctx context.Context, question string) (bool, error)
}

// environment is what every command of the session may use; the connections come later.
func (p *Process) environment() *command.Env {
	env := &command.Env{
		In: p.In, Out: p.Out, Err: p.Err, Now: p.Now, Zone: p.Zone, ReadFile: p.ReadFile, Version: p.Version, Width: p.OutWidth,
		Live:   p.ErrTerminal && p.Getenv("TERM") != "dumb",
		Colour: p.OutWidth() > 0 && p.Getenv("NO_COLOR") == "" && p.Getenv("TERM") != "dumb",
		Who:    p.Who, Machine: p.Machine,
	}
	if p.Terminal != nil {
		env.Confirm, env.Terminal = p.Terminal.Confirm, p.Terminal
	}
	return env
}

// interruptible is a context that ends with the next Ctrl-C. stop ends the listening.
func (p *Process) interruptible(ctx context.Context) (own context.Context, stop func()) {
	own, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-p.Interrupts:
			cancel()
		case <-own.Done():
		}
	}()
	return own, func() {
		cancel()
		<-ended
	}
}
