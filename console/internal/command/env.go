package command

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/client"
)

// Env is everything that a command may touch.
type Env struct {
	In io.Reader
	// Out takes what was asked for, Err what a person is told beside it.
	Out, Err io.Writer
	// Tasks and Control speak to the manager; nil for a command that is Offline.
	Tasks   client.Client
	Control Control
	// Address is where the manager is, for messages.
	Address string
	// Now is the clock.
	Now func() time.Time
	// Zone is where the reader lives.
	Zone *time.Location
	// ReadFile reads a file that the command line names.
	ReadFile func(name string) ([]byte, error)
	// Width is the number of columns of Out now; 0 when it is no terminal.
	Width func() int
	// Live is true when Err is a terminal, on which a line of progress may be drawn.
	Live bool
	// Colour is true when colours may be written to Out.
	Colour bool
	// JSON is true when the answer is for a program. Tree.Run sets it.
	JSON bool
	// Version is that of this program.
	Version string
	// Who runs the commands, for the manager's log.
	Who string
	// Confirm asks a person a question that is answered with yes or no; nil where nobody can answer.
	Confirm func(ctx context.Context, question string) (bool, error)
	// Terminal is where a person sits; nil when there is none.
	Terminal Terminal
	// Seen remembers tasks for completion; may be nil.
	Seen *Seen
	// Machine is what there is to see of this machine.
	Machine Machine
}

// Machine is what there is to see of the machine that the console runs on. What is nil cannot be looked at here.
type Machine struct {
	// Stat describes a file.
	Stat func(path string) (fs.FileInfo, error)
	// FreeDisk is the room for files beside path, and all the room that there is, in bytes.
	FreeDisk func(path string) (free, all uint64, err error)
}

// confirm asks a person before something that cannot be taken back. Where nobody can answer, the flag --yes is the answer.
func (e *Env) confirm(ctx context.Context, args *Args, question string) error {
	switch {
	case args.Has("yes"):
		return nil
	case e.Confirm == nil || e.JSON:
		return usageError("%s Nobody can answer here: say --yes", question)
	}
	sure, err := e.Confirm(ctx, question)
	if err != nil {
		return err
	}
	if !sure {
		return &ExitError{Code: Failed, Kind: "not_confirmed", Message: "nothing was done"}
	}
	return nil
}

// yesFlag answers the question that confirm asks.
func yesFlag() Flag { return Flag{Name: "yes", Help: "do it without asking"} }

// tell writes a text beside the answer, cleaned; on a terminal it is wrapped between words.
func (e *Env) tell(text string) error {
	lines := []string{screen.Clean(text)}
	if width := e.Width(); e.Live && width > 0 && screen.Width(lines[0]) > width {
		lines = screen.Wrap(lines[0], width)
	}
	_, err := fmt.Fprintln(e.Err, strings.Join(lines, "\n"))
	return err
}

// style is what Out can show now.
func (e *Env) style() screen.Style { return screen.Style{Width: e.Width(), Colour: e.Colour} }

// progress is the line on which a command shows how far it is; it draws nothing where no line may be redrawn.
func (e *Env) progress() *screen.Progress {
	if !e.Live || e.JSON {
		return &screen.Progress{}
	}
	return &screen.Progress{To: e.Err, Width: e.Width}
}
