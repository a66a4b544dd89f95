package command

import (
	"context"
	"io"
	"os"
)

// Terminal is what a full-screen view needs of a terminal.
type Terminal interface {
	io.Writer
	// Size is the number of columns and rows now.
	Size() (columns, rows int)
	// Raw makes it hand over each key as it is, and returns what puts its mode back.
	Raw() (restore func(), err error)
	// Borrowed reads what is typed.
	Borrowed(ctx context.Context) io.Reader
	// Suspend stops the process until it is continued.
	Suspend()
	// Resized tells, until ctx ends, when the size has changed.
	Resized(ctx context.Context) <-chan os.Signal
}
