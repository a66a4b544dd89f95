package repl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/chzyer/readline"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/line"
	"github.com/drover-jobs/drover/console/internal/screen"
)

// Session runs what was typed.
type Session interface {
	// Typed runs a line until its end or Ctrl-C; left is true when it was to leave.
	Typed(ctx context.Context, text string) (left bool)
	// Complete offers what the last of the words could become.
	Complete(ctx context.Context, words []string) []string
	// Status asks the manager how it is doing.
	Status(ctx context.Context) (*apiv1.StatusResponse, error)
	// Address is where the manager should be.
	Address() string
	// Colour reports whether colours may be written.
	Colour() bool
}

// Terminal is where lines are typed.
type Terminal interface {
	io.Writer
	// Prompt reads what is typed at the prompt.
	Prompt() io.ReadCloser
	// Raw makes it hand over each key as it is, and returns what puts its mode back.
	Raw() (restore func(), err error)
	Size() (columns, rows int)
	Resized(ctx context.Context) <-chan os.Signal
	Suspend()
	// Closed reports whether it has gone; Close makes it so.
	Closed() bool
	Close() error
}

// Run shows the prompt until it is left. history is the file in which lines are kept; empty keeps none.
func Run(ctx context.Context, t Terminal, s Session, history string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &prompt{terminal: t, session: s}
	if err := prepare(history); err != nil {
		p.later = append(p.later, "lines are not kept: "+err.Error())
		history = ""
	}
	editor, err := p.open(ctx, history)
	if err != nil {
		return fmt.Errorf("open the line editor: %w", err)
	}
	p.editor = editor
	context.AfterFunc(ctx, func() { _ = t.Close() }) // never fails; the editor ends with its input
	p.look(ctx)
	var others sync.WaitGroup
	others.Go(func() { p.attend(ctx) })
	others.Go(func() { p.followSize(ctx) })
	err = p.loop(ctx)
	cancel()
	others.Wait()
	_ = t.Close() // as above; the editor waits for it
	return errors.Join(err, editor.Close())
}

// prompt is the line at which a person types.
type prompt struct {
	terminal Terminal
	session  Session
	editor   *readline.Instance

	mu      sync.Mutex
	waiting bool     // the prompt stands there and a key is awaited: only then may others write
	later   []string // news for when it stands there
	offered string   // what stands above it as the ways to go on; empty for nothing
	state   State
	restore func() // the terminal's mode
	resized func() // tells the editor
}

// open makes the line editor. It is given all that it would otherwise take from the process.
func (p *prompt) open(ctx context.Context, history string) (*readline.Instance, error) {
	return readline.NewEx(&readline.Config{
		Prompt: p.state.Prompt(p.style()), HistoryFile: history, HistoryLimit: historyLines, DisableAutoSaveHistory: true,
		AutoComplete: &completer{ctx: func() context.Context { return ctx }, prompt: p},
		Stdin:        p.terminal.Prompt(), Stdout: p.terminal, Stderr: p.terminal, InterruptPrompt: "^C", EOFPrompt: "exit",
		FuncGetWidth: p.width, FuncIsTerminal: func() bool { return true },
		FuncMakeRaw: p.raw, FuncExitRaw: p.cooked, FuncOnWidthChanged: func(tell func()) { p.resized = tell },
		FuncFilterInputRune: p.key,
	})
}

func (p *prompt) style() screen.Style {
	return screen.Style{Width: p.width(), Colour: p.session.Colour()}
}

// width is that of the terminal; the editor cannot work with less than a few columns.
func (p *prompt) width() int {
	const least = 10
	columns, _ := p.terminal.Size()
	return max(least, columns)
}

// raw is called when the prompt begins, cooked when it ends. The mode between is the terminal's own, in which Ctrl-C is a signal.
// Line ends stay the terminal's business: the editor counts on it.
func (p *prompt) raw() error {
	restore, err := p.terminal.Raw()
	if err != nil {
		return err
	}
	p.restore = restore
	return nil
}

func (p *prompt) cooked() error {
	if p.restore != nil {
		p.restore()
		p.restore = nil
	}
	return nil
}

// loop reads and runs lines.
func (p *prompt) loop(ctx context.Context) error {
	for {
		p.begin()
		text, err := p.editor.Readline()
		p.end()
		if ctx.Err() != nil || p.terminal.Closed() {
			return nil //nolint:nilerr // what was typed so far was not finished, and the editor has nothing else to say
		}
		switch {
		case errors.Is(err, readline.ErrInterrupt):
			continue // Ctrl-C clears the line
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read a line: %w", err)
		}
		if len(text) > 0 && text[0] != ' ' {
			_ = p.editor.SaveHistory(text) // a full disk must not end a session
		}
		if p.session.Typed(ctx, text) {
			return nil
		}
		p.look(ctx)
	}
}

// begin tells the news that came meanwhile and lets others write above the prompt.
func (p *prompt) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range p.later {
		_, _ = fmt.Fprintln(p.terminal, p.news(text)) // a terminal that is gone ends the prompt soon
	}
	p.later = nil
	p.offered = ""
	p.editor.SetPrompt(p.state.Prompt(p.style()))
	p.waiting = true
}

func (p *prompt) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = false
}

// key sees each key before the editor does. From a key on that may end the line nobody else writes.
func (p *prompt) key(r rune) (rune, bool) {
	switch r {
	case readline.CharCtrlZ:
		_ = p.cooked() // never fails
		p.terminal.Suspend()
		return r, p.raw() != nil
	case readline.CharEnter, readline.CharCtrlJ, readline.CharInterrupt, readline.CharDelete, 0:
		p.end()
	}
	return r, true
}

// above writes text above the prompt, or keeps it for the next one.
func (p *prompt) above(texts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.waiting || !p.stands() {
		p.later = append(p.later, texts...)
		return
	}
	for _, text := range texts {
		_, _ = fmt.Fprintln(p.editor.Stdout(), p.news(text)) // as in begin
	}
	p.offered = ""
}

// news is a text as it is written above the prompt, wrapped between words.
func (p *prompt) news(text string) string {
	text = "* " + text
	if width := p.width(); screen.Width(text) > width {
		return strings.Join(screen.Wrap(text, width), "\n")
	}
	return text
}

// stands reports whether the editor has drawn the prompt; it does so at once after begin.
func (p *prompt) stands() bool {
	const soon, step = 500 * time.Millisecond, time.Millisecond
	for waited := time.Duration(0); waited < soon; waited += step {
		if p.editor.Terminal.IsReading() {
			return true
		}
		<-time.After(step)
	}
	return false
}

// followSize tells the editor of the terminal's size.
func (p *prompt) followSize(ctx context.Context) {
	sizes := p.terminal.Resized(ctx)
	for {
		select {
		case <-sizes:
			p.mu.Lock()
			p.resized()
			if p.waiting {
				p.editor.Refresh()
			}
			p.mu.Unlock()
		case <-ctx.Done():
			return
		}
	}
}

// unfinished is line.Unfinished of what stands before the cursor.
func unfinished(text []rune, cursor int) ([]string, bool) {
	return line.Unfinished(string(text[:cursor]))
}
