package terminal_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/console/internal/terminal"
)

// typed returns an input and what types into it; both end with the test.
func typed(t *testing.T) (*terminal.Input, *io.PipeWriter) {
	t.Helper()
	reader, writer := io.Pipe()
	in := terminal.NewInput(reader)
	t.Cleanup(func() {
		_ = in.Close()     // never fails
		_ = writer.Close() // as above
	})
	return in, writer
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Error(err)
	}
}

// What follows a line goes to the command that the line runs, and what the command leaves goes to the prompt again.
func TestInputIsShared(t *testing.T) {
	t.Parallel()
	in, keys := typed(t)
	go write(t, keys, "run\nyes\nnext\n")
	read := func(r io.Reader, n int) string {
		p := make([]byte, n)
		if _, err := io.ReadFull(r, p); err != nil {
			t.Fatal(err)
		}
		return string(p)
	}
	if got := read(in.Prompt(), 4); got != "run\n" {
		t.Fatalf("the prompt got %q", got)
	}
	in.Lend()
	if got := read(in.Borrowed(t.Context()), 4); got != "yes\n" {
		t.Errorf("the command got %q", got)
	}
	in.Return()
	if got := read(in.Prompt(), 5); got != "next\n" {
		t.Errorf("the prompt got %q", got)
	}
}

// A prompt that waits takes nothing while a command has the input.
func TestPromptWaits(t *testing.T) {
	t.Parallel()
	in, keys := typed(t)
	in.Lend()
	got := make(chan string, 1)
	go func() {
		p := make([]byte, 10)
		n, _ := in.Prompt().Read(p)
		got <- string(p[:n])
	}()
	write(t, keys, "ab")
	p := make([]byte, 1)
	if _, err := in.Borrowed(t.Context()).Read(p); err != nil || p[0] != 'a' {
		t.Fatalf("the command got %q, %v", p, err)
	}
	select {
	case text := <-got:
		t.Fatalf("the prompt took %q", text)
	default:
	}
	in.Return()
	if text := <-got; text != "b" {
		t.Errorf("the prompt got %q", text)
	}
}

// A command's read ends with its context, and the end of the terminal ends everybody's.
func TestInputEnds(t *testing.T) {
	t.Parallel()
	in, keys := typed(t)
	in.Lend()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := in.Borrowed(ctx).Read(make([]byte, 1)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	in.Return()
	_ = keys.Close() // never fails
	if _, err := in.Prompt().Read(make([]byte, 1)); !errors.Is(err, io.EOF) || !in.Closed() {
		t.Errorf("got %v", err)
	}
}

// lines is a source on which each Ctrl-D is an end after which more may follow, as on a terminal.
type lines struct{ texts []string }

func (l *lines) Read(p []byte) (int, error) {
	if len(l.texts) == 0 {
		return 0, io.ErrClosedPipe
	}
	text := l.texts[0]
	l.texts = l.texts[1:]
	if text == "" {
		return 0, io.EOF
	}
	return copy(p, text), nil
}

// Ctrl-D ends what a command reads, not the terminal.
func TestEndOfOneCommand(t *testing.T) {
	t.Parallel()
	in := terminal.NewInput(&lines{texts: []string{"payload", "", "more"}})
	in.Lend()
	got, err := io.ReadAll(in.Borrowed(t.Context()))
	if err != nil || !strings.HasPrefix(string(got), "payload") {
		t.Errorf("got %q, %v", got, err)
	}
}

// Only a yes that was typed after the question is a yes.
func TestConfirm(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, "n\n": false, "\n": false, "yesterday\n": false} {
		in, keys := typed(t)
		in.Lend()
		var out bytes.Buffer
		go write(t, keys, answer)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		got, err := terminal.Confirm(ctx, in, &out, "Sure?")
		cancel()
		if err != nil || got != want || out.String() != "Sure? [y/N] " {
			t.Errorf("%q: %v, %v, %q", answer, got, err, out.String())
		}
	}
	in, keys := typed(t)
	in.Lend()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if sure, err := terminal.Confirm(ctx, in, io.Discard, "Sure?"); sure || !errors.Is(err, context.Canceled) {
		t.Errorf("after Ctrl-C: %v, %v", sure, err)
	}
	_ = keys // open until the end
}

// Home and End as some terminals send them are keys that the prompt knows; to a command they go as they are.
func TestHomeAndEnd(t *testing.T) {
	t.Parallel()
	in, keys := typed(t)
	go write(t, keys, "a\x1b[1~b\x1b[4~c\x1b[7~\x1b[8~\x1b[A.\x1b[1~")
	want := "a\x01b\x05c\x01\x05\x1b[A."
	got := make([]byte, len(want))
	if _, err := io.ReadFull(in.Prompt(), got); err != nil || string(got) != want {
		t.Errorf("the prompt got %q, %v; want %q", got, err, want)
	}
	in.Lend()
	rest := make([]byte, 4)
	if _, err := io.ReadFull(in.Borrowed(t.Context()), rest); err != nil || string(rest) != "\x1b[1~" {
		t.Errorf("the command got %q, %v", rest, err)
	}
}
