package terminal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/term"
)

// Terminal is one terminal. Its methods may be called from any goroutine.
type Terminal struct {
	*Input
	in, out *os.File
	raw     atomic.Bool
}

// Open returns the terminal that in and out are, or nil when one of them is none.
func Open(in, out *os.File) *Terminal {
	if !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return nil
	}
	return &Terminal{Input: NewInput(in), in: in, out: out}
}

// Write writes to the terminal. In raw mode a line end alone would not go back to the first column, so it is sent in full.
func (t *Terminal) Write(p []byte) (int, error) {
	if !t.raw.Load() {
		return t.out.Write(p)
	}
	if _, err := t.out.Write(bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n"))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Size is the number of columns and rows now; the usual 80 and 24 when the terminal does not say.
func (t *Terminal) Size() (columns, rows int) {
	columns, rows, err := term.GetSize(int(t.out.Fd()))
	if err != nil || columns <= 0 || rows <= 0 {
		return 80, 24
	}
	return columns, rows
}

// Raw makes the terminal hand over each key as it is, Ctrl-C included, and returns what puts its mode back.
func (t *Terminal) Raw() (restore func(), err error) {
	state, err := term.MakeRaw(int(t.in.Fd()))
	if err != nil {
		return nil, fmt.Errorf("set the terminal's mode: %w", err)
	}
	t.raw.Store(true)
	return func() {
		_ = term.Restore(int(t.in.Fd()), state) // a terminal that is gone needs no mode
		t.raw.Store(false)
	}, nil
}

// Resized tells, until ctx ends, when the size has changed.
func (t *Terminal) Resized(ctx context.Context) <-chan os.Signal {
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	context.AfterFunc(ctx, func() { signal.Stop(resized) })
	return resized
}

// Suspend stops the process and all that stand with it before the shell, as Ctrl-Z does, and returns when it was continued. The
// caller has put the terminal's mode back before.
func (t *Terminal) Suspend() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil {
		return
	}
	// Where nobody controls jobs the signal does nothing; then this goes on at once.
	const patience = 200 * time.Millisecond
	select {
	case <-continued:
	case <-time.After(patience):
	}
}

// Confirm asks a question of yes and no; all but a yes is a no. The input must be lent.
func (t *Terminal) Confirm(ctx context.Context, question string) (bool, error) {
	return Confirm(ctx, t.Input, t, question)
}

// Confirm asks on out and reads the answer, which must be typed after the question.
func Confirm(ctx context.Context, in *Input, out io.Writer, question string) (bool, error) {
	in.Forget()
	if _, err := fmt.Fprintf(out, "%s [y/N] ", question); err != nil {
		return false, err
	}
	answer, err := bufio.NewReaderSize(in.Borrowed(ctx), 1).ReadString('\n')
	if err != nil {
		_, _ = fmt.Fprintln(out) // the line of the question ends; the error below is what counts
	}
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err != nil && !errors.Is(err, io.EOF):
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	default:
		return false, nil
	}
}
