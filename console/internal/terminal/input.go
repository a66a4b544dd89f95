package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
)

// mostWaiting is how much that was typed ahead is read before somebody wants it, in bytes.
const mostWaiting = 1 << 20

// Input is what is typed, for two readers that never read at the same time: the prompt, and whatever a command runs. One
// goroutine reads the terminal, from the first use on, for as long as the process lives or until the terminal ends.
type Input struct {
	source io.Reader
	start  sync.Once

	mu      sync.Mutex
	changed *sync.Cond
	waiting []byte
	ends    int  // times that the source said that it ends, and went on
	ended   bool // an end that the borrower has not heard of
	lent    bool // a command has it
	closed  bool
}

// NewInput returns the input that source is. It reads nothing yet.
func NewInput(source io.Reader) *Input {
	i := &Input{source: source}
	i.changed = sync.NewCond(&i.mu)
	return i
}

// pump reads the source until it is closed.
func (i *Input) pump() {
	chunk := make([]byte, 4096)
	for {
		n, err := i.source.Read(chunk)
		if !i.take(chunk[:n], err) {
			return
		}
	}
}

// take keeps what was read and reports whether there may be more. In a terminal's line mode Ctrl-D is an end, and more may follow; an
// end that nobody borrows, or many in a row, are a terminal that is gone.
func (i *Input) take(read []byte, err error) bool {
	const manyEnds = 3
	i.mu.Lock()
	defer i.mu.Unlock()
	defer i.changed.Broadcast()
	i.waiting = append(i.waiting, read...)
	if len(read) > 0 {
		i.ends = 0
	}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF) && i.lent && i.ends < manyEnds:
		i.ends++
		i.ended = true
	default:
		i.closed = true
	}
	i.changed.Broadcast()
	for len(i.waiting) >= mostWaiting && !i.closed {
		i.changed.Wait()
	}
	return !i.closed
}

// Lend gives what is typed to a command, until Return.
func (i *Input) Lend() { i.lend(true) }

// Return gives what is typed to the prompt again.
func (i *Input) Return() { i.lend(false) }

func (i *Input) lend(lent bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lent, i.ended = lent, false
	i.changed.Broadcast()
}

// Forget throws away what was typed ahead, before a question whose answer must be meant.
func (i *Input) Forget() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.waiting = nil
	i.changed.Broadcast()
}

// Close ends both readers. A read of the source that is in progress is left behind.
func (i *Input) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.closed = true
	i.changed.Broadcast()
	return nil
}

// Closed reports whether the terminal has gone or Close was called.
func (i *Input) Closed() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.closed
}

// Prompt is the prompt's reader. It hands out one byte at a time, so that what follows a line is there for the command that the
// line runs.
func (i *Input) Prompt() io.ReadCloser { return promptReader{i} }

type promptReader struct{ *Input }

// Read waits until the input is not lent and something was typed.
func (r promptReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return r.read(context.Background(), p[:1], false)
}

// known puts in the place of a key at the head of what was typed one that the prompt's library knows: some terminals, tmux and
// screen among them, send Home and End as the VT220 did (https://vt100.net/docs/vt220-rm/table3-4.html).
func known(typed []byte) []byte {
	const lineStart, lineEnd = "\x01", "\x05" // Ctrl-A and Ctrl-E
	for sequence, key := range map[string]string{"\x1b[1~": lineStart, "\x1b[7~": lineStart, "\x1b[4~": lineEnd, "\x1b[8~": lineEnd} {
		if rest, ok := bytes.CutPrefix(typed, []byte(sequence)); ok {
			return append([]byte(key), rest...)
		}
	}
	return typed
}

// Borrowed is the reader of a command; Lend comes first. It fails when ctx has ended.
func (i *Input) Borrowed(ctx context.Context) io.Reader {
	return readFunc(func(p []byte) (int, error) { return i.read(ctx, p, true) })
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

// read waits for input on the side that is asked for.
func (i *Input) read(ctx context.Context, p []byte, lent bool) (int, error) {
	i.start.Do(func() { go i.pump() })
	stop := context.AfterFunc(ctx, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.changed.Broadcast()
	})
	defer stop()
	i.mu.Lock()
	defer i.mu.Unlock()
	for {
		switch {
		case ctx.Err() != nil:
			return 0, context.Cause(ctx)
		case i.lent == lent && len(i.waiting) > 0:
			if !lent {
				i.waiting = known(i.waiting)
			}
			n := copy(p, i.waiting)
			i.waiting = i.waiting[n:]
			i.changed.Broadcast()
			return n, nil
		case i.closed:
			return 0, io.EOF
		case lent && i.ended:
			i.ended = false
			return 0, io.EOF
		}
		i.changed.Wait()
	}
}
