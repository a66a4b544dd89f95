package child

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// Bounds of what is kept of a child's standard error, and of a line that is passed on in one piece, in bytes.
const (
	tailKept  = 4 << 10
	longest   = 8 << 10
	keptLines = 20
)

// tail passes a child's standard error on and remembers its end. It passes on whole lines, since several children write to
// the same place, but holds back no more than longest.
type tail struct {
	to io.Writer

	mu      sync.Mutex
	kept    []byte
	waiting []byte
}

// Write never fails: a child must not be held up by whoever reads its errors.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - tailKept; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	t.waiting = append(t.waiting, p...)
	end := bytes.LastIndexByte(t.waiting, '\n') + 1
	if end == 0 && len(t.waiting) >= longest {
		end = len(t.waiting)
	}
	if end > 0 {
		_, _ = t.to.Write(t.waiting[:end])
		t.waiting = append(t.waiting[:0], t.waiting[end:]...)
	}
	return len(p), nil
}

// flush passes on an unfinished last line.
func (t *tail) flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.waiting) > 0 {
		_, _ = t.to.Write(append(t.waiting, '\n'))
		t.waiting = nil
	}
}

func (t *tail) lines() []string {
	t.mu.Lock()
	text := strings.ToValidUTF8(string(t.kept), "\uFFFD")
	t.mu.Unlock()
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-keptLines):]
}
