package worker

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// How much of a process's output is kept, in bytes: the first and the latest.
const (
	headKept   = 4 << 10
	outputKept = 64 << 10
)

// How many lines a digest has of the first and of the last output, and how long a line may be, in bytes.
const (
	firstLines     = 6
	lastLines      = 4
	diagnosedLines = firstLines + lastLines
	longestLine    = 500
)

// output keeps the first and the latest output of a process, of any size, without ever making the process wait.
type output struct {
	mu   sync.Mutex
	head []byte
	ring [outputKept]byte
	next int   // where the next byte goes
	full bool  // the ring has been filled once
	size int64 // of all that was written, in bytes

	followers map[*Follower]struct{}
	finished  bool // nothing is written any more
}

var _ io.Writer = (*output)(nil)

// Write keeps the first headKept and the last outputKept bytes.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	o.size += int64(n)
	for f := range o.followers {
		f.add(p)
	}
	o.head = append(o.head, p[:min(n, headKept-len(o.head))]...)
	if len(p) > outputKept {
		p = p[len(p)-outputKept:]
	}
	for len(p) > 0 {
		c := copy(o.ring[o.next:], p)
		p = p[c:]
		o.next += c
		if o.next == outputKept {
			o.next, o.full = 0, true
		}
	}
	return n, nil
}

// Tail returns at most n of the last lines, each cut to 500 bytes.
func (o *output) Tail(n int) []string {
	lines := split(o.latest())
	return trimmed(lines[max(0, len(lines)-n):])
}

// written is how many bytes were written.
func (o *output) written() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.size
}

// since returns at most n of the last lines behind the first bytes written, from of them.
func (o *output) since(from int64, n int) []string {
	o.mu.Lock()
	kept := o.kept()
	if old := from - (o.size - int64(len(kept))); old > 0 {
		kept = kept[min(old, int64(len(kept))):]
	}
	o.mu.Unlock()
	lines := split(kept)
	return trimmed(lines[max(0, len(lines)-n):])
}

// digest returns what helps to see why a start failed: all lines when they are few, else the first and the last. Some programs
// say at first what is wrong, others at last.
func (o *output) digest() []string {
	o.mu.Lock()
	head, whole := bytes.Clone(o.head), len(o.head) < headKept
	o.mu.Unlock()
	first, last := split(head), split(o.latest())
	switch {
	case whole && len(first) <= diagnosedLines:
		return trimmed(first)
	case len(last) == 1 && len(first) == 1: // one line without end
		return trimmed(first)
	}
	lines := trimmed(first[:min(len(first), firstLines)])
	return append(append(lines, "..."), trimmed(last[max(0, len(last)-lastLines):])...)
}

// latest copies the kept output.
func (o *output) latest() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.kept()
}

// kept is latest for a caller who holds mu.
func (o *output) kept() []byte {
	if !o.full {
		return bytes.Clone(o.ring[:o.next])
	}
	return slices.Concat(o.ring[o.next:], o.ring[:o.next])
}

// split cuts text into lines; nil for none.
func split(text []byte) []string {
	text = bytes.TrimRight(text, "\r\n")
	if len(text) == 0 {
		return nil
	}
	return strings.Split(string(text), "\n")
}

// trimmed makes lines fit for a log: valid and not too long.
func trimmed(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		line = strings.Map(shown, strings.ToValidUTF8(strings.TrimRight(line, "\r"), "\uFFFD"))
		if len(line) > longestLine {
			line = strings.ToValidUTF8(line[:longestLine], "") + " ..."
		}
		out = append(out, line)
	}
	return out
}

// shown keeps what a terminal would obey from it.
func shown(r rune) rune {
	if unicode.IsControl(r) && r != '\t' {
		return '\uFFFD'
	}
	return r
}

// firstLine passes the first line written to it on to w, at most limit bytes of it, and then closes w: go-plugin reads its
// handshake from there. Everything but a handshake goes to rest.
type firstLine struct {
	w     *io.PipeWriter
	rest  io.Writer
	limit int
	line  []byte
	done  bool
}

// Write never fails, nor does it wait for the reader of w.
func (f *firstLine) Write(p []byte) (int, error) {
	n := len(p)
	if !f.done {
		end := bytes.IndexByte(p, '\n') + 1
		whole := end > 0
		if !whole {
			end = n
		}
		f.line = append(f.line, p[:end]...)
		p = p[end:]
		if whole || len(f.line) >= f.limit {
			f.finish()
		}
	}
	_, _ = f.rest.Write(p)
	return n, nil
}

// finish hands over what there is of the first line; later calls do nothing.
func (f *firstLine) finish() {
	if f.done {
		return
	}
	f.done = true
	line := f.line
	f.line = nil
	if !isHandshake(line) {
		_, _ = f.rest.Write(line)
	}
	line = line[:min(len(line), f.limit)]
	// A goroutine, because go-plugin may never read: the start may have been given up. CloseWithError ends it then.
	go func() {
		_, _ = f.w.Write(line)
		_ = f.w.Close()
	}()
}

// isHandshake reports whether a line is go-plugin's: core version, our version, network, address, protocol.
func isHandshake(line []byte) bool {
	return bytes.HasPrefix(line, []byte("1|")) && bytes.Count(line, []byte("|")) >= 4
}
