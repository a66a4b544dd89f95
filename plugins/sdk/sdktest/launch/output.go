package launch

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// How much of what a process writes is kept, in bytes: the first and the latest.
const (
	headKept = 4 << 10
	tailKept = 4 << 10
)

// output keeps the first and the latest of what a process writes, and counts all of it. It never makes the process wait.
type output struct {
	mu    sync.Mutex
	head  []byte
	tail  []byte
	total int64
}

var _ io.Writer = (*output)(nil)

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	o.total += int64(n)
	fits := min(n, headKept-len(o.head))
	o.head = append(o.head, p[:fits]...)
	o.tail = append(o.tail, p[fits:]...)
	if over := len(o.tail) - tailKept; over > 0 {
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
	return n, nil
}

func (o *output) written() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// text is what is kept, as valid UTF-8, with "..." where something is missing.
func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	between := ""
	if o.total > int64(len(o.head)+len(o.tail)) {
		between = "\n...\n"
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(o.head)+between+string(o.tail), "\uFFFD"))
}

// firstLine hands the first line written to it, or as much of it as limit allows, to the reader of w, and everything
// but a handshake to rest.
type firstLine struct {
	w     *io.PipeWriter
	rest  io.Writer
	limit int
	line  []byte
	done  bool
}

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
	_, _ = f.rest.Write(p) // never fails
	return n, nil
}

// finish hands over what there is of the first line; later calls do nothing.
func (f *firstLine) finish() {
	if f.done {
		return
	}
	f.done = true
	if !isHandshake(f.line) {
		_, _ = f.rest.Write(f.line) // never fails
	}
	line := f.line[:min(len(f.line), f.limit)]
	go func() { // go-plugin may never read; closing the reader ends this
		_, _ = f.w.Write(line)
		_ = f.w.Close()
	}()
}

// isHandshake reports whether a line is go-plugin's: core version, our version, network, address, protocol.
func isHandshake(line []byte) bool {
	return bytes.HasPrefix(line, []byte("1|")) && bytes.Count(line, []byte("|")) >= 4
}
