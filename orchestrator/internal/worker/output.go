package worker

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// outputKept is how much of a process's latest output is kept, in bytes.
const outputKept = 64 << 10

// output keeps the latest output of a process, of any size, without ever making the process wait.
type output struct {
	mu    sync.Mutex
	ring  [outputKept]byte
	next  int  // where the next byte goes
	full  bool // the ring has been filled once
	total int64
}

var _ io.Writer = (*output)(nil)

// Write keeps the last outputKept bytes.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	o.total += int64(n)
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
	const longest = 500
	o.mu.Lock()
	kept := append([]byte(nil), o.ring[:o.next]...)
	if o.full {
		kept = append(append([]byte(nil), o.ring[o.next:]...), kept...)
	}
	o.mu.Unlock()
	kept = bytes.TrimRight(kept, "\n")
	if len(kept) == 0 {
		return nil
	}
	lines := strings.Split(string(kept), "\n")
	lines = lines[max(0, len(lines)-n):]
	for i, line := range lines {
		line = strings.ToValidUTF8(strings.TrimRight(line, "\r"), "\uFFFD")
		if len(line) > longest {
			line = strings.ToValidUTF8(line[:longest], "") + " ..."
		}
		lines[i] = line
	}
	return lines
}

// firstLine passes the first line written to it on to w, at most limit bytes of it, and then closes w; everything,
// the first line too, goes to rest. go-plugin reads its handshake from w.
type firstLine struct {
	w     *io.PipeWriter
	rest  io.Writer
	limit int
	line  []byte
	done  bool
}

func (f *firstLine) Write(p []byte) (int, error) {
	if _, err := f.rest.Write(p); err != nil {
		return 0, err
	}
	if f.done {
		return len(p), nil
	}
	end := bytes.IndexByte(p, '\n')
	switch {
	case end >= 0:
		f.line = append(f.line, p[:end+1]...)
	default:
		f.line = append(f.line, p...)
		if len(f.line) < f.limit {
			return len(p), nil
		}
	}
	f.finish()
	return len(p), nil
}

// finish hands over what there is of the first line; later calls do nothing.
func (f *firstLine) finish() {
	if f.done {
		return
	}
	f.done = true
	line := f.line[:min(len(f.line), f.limit)]
	f.line = nil
	// A goroutine, because go-plugin may never read: the start may have been given up. CloseWithError ends it then.
	go func() {
		_, _ = f.w.Write(line)
		_ = f.w.Close()
	}()
}
