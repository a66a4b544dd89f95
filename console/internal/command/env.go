package command

import (
	"context"
	"io"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/client"
)

// Control is what the commands ask of a manager beside its tasks.
type Control interface {
	Status(ctx context.Context, request *apiv1.StatusRequest) (*apiv1.StatusResponse, error)
}

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
