package worker

import (
	"bytes"
	"context"
	"io"
	"sync"
)

// followKept is how many bytes wait for a follower at most; then the oldest are dropped, and counted.
const followKept = 64 << 10

// Follower reads what a process writes, from some lines back until its end. It never makes the process wait.
type Follower struct {
	out  *output
	more chan struct{} // has an element when there may be something to read

	mu       sync.Mutex
	waiting  []byte
	missed   int64
	finished bool
}

// Output is what a Follower has to tell.
type Output struct {
	Missed int64    // bytes that were dropped before these lines, because they were not read in time
	Lines  []string // each cut to 500 bytes
}

// Logs is what a process wrote, the last part of it. It may be kept when the process has ended, and keeps nothing else of it.
type Logs struct{ out *output }

// Logs returns what the process wrote and will write.
func (p *Process) Logs() *Logs { return &Logs{out: p.s.out} }

// Tail returns at most n of the last lines, each cut to 500 bytes.
func (l *Logs) Tail(n int) []string { return l.out.Tail(n) }

// Follow returns a follower that begins with at most n of the last lines. It must be closed.
func (l *Logs) Follow(n int) *Follower { return l.out.follow(n) }

func (o *output) follow(n int) *Follower {
	f := &Follower{out: o, more: make(chan struct{}, 1)}
	o.mu.Lock()
	defer o.mu.Unlock()
	f.add(lastLinesOf(o.kept(), n))
	if o.finished {
		f.end()
		return f
	}
	if o.followers == nil {
		o.followers = map[*Follower]struct{}{}
	}
	o.followers[f] = struct{}{}
	return f
}

// lastLinesOf returns the text from the beginning of its last n lines on. A last line without end is one of them.
func lastLinesOf(text []byte, n int) []byte {
	if n <= 0 {
		return nil
	}
	at := len(text)
	if at > 0 && text[at-1] == '\n' {
		at--
	}
	for ; n > 0; n-- {
		at = bytes.LastIndexByte(text[:at], '\n')
		if at < 0 {
			return text
		}
	}
	return text[at+1:]
}

// finish tells the followers that nothing comes any more.
func (o *output) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.finished = true
	for f := range o.followers {
		f.end()
	}
	o.followers = nil
}

func (f *Follower) add(p []byte) {
	f.mu.Lock()
	f.waiting = append(f.waiting, p...)
	if over := len(f.waiting) - followKept; over > 0 {
		f.missed += int64(over)
		f.waiting = append(f.waiting[:0], f.waiting[over:]...)
	}
	f.mu.Unlock()
	f.wake()
}

func (f *Follower) end() {
	f.mu.Lock()
	f.finished = true
	f.mu.Unlock()
	f.wake()
}

func (f *Follower) wake() {
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// Next waits for whole lines and returns them. A line that is longer than is shown comes in pieces. After the end of the process and its last
// line the error is io.EOF. One goroutine may call it at a time.
func (f *Follower) Next(ctx context.Context) (Output, error) {
	for {
		if out, ok := f.read(); ok {
			return out, nil
		}
		f.mu.Lock()
		over := f.finished && len(f.waiting) == 0
		f.mu.Unlock()
		if over {
			return Output{}, io.EOF
		}
		select {
		case <-f.more:
		case <-ctx.Done():
			return Output{}, context.Cause(ctx)
		}
	}
}

// read takes what can be shown.
func (f *Follower) read() (Output, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	end := bytes.LastIndexByte(f.waiting, '\n') + 1
	if f.finished || len(f.waiting)-end >= longestLine {
		end = len(f.waiting)
	}
	if end == 0 {
		return Output{}, false
	}
	text := bytes.Clone(f.waiting[:end])
	f.waiting = append(f.waiting[:0], f.waiting[end:]...)
	out := Output{Missed: f.missed, Lines: trimmed(split(text))}
	f.missed = 0
	return out, true
}

// Close ends the following.
func (f *Follower) Close() {
	f.out.mu.Lock()
	delete(f.out.followers, f)
	f.out.mu.Unlock()
	f.end()
}
