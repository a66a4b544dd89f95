package broker

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Handler is told what a Receiver receives. Its functions are called by several goroutines, and must not block; those that are nil are
// not called.
type Handler struct {
	// Up says that the subscription of a channel stands: what is published from now on arrives. It comes again after each Down.
	Up func(channel string)
	// Down says that nothing of these channels arrives any more, and why: look yourself, now and when they are up again. It comes for
	// each connection that fails.
	Down func(channels []string, err error)
	// Message is a message of a channel.
	Message func(channel, payload string)
	// Lost is called when the first connection is lost, Back when none is lost any more.
	Lost func(err error)
	Back func()
}

// Receiver receives what is published on some channels, and connects again for as long as it takes. It keeps one connection for all of
// them; in a Cluster one for each hash tag, to the node that has its slot, wherever that moves.
type Receiver struct {
	rdb     redis.UniversalClient
	on      Handler
	cluster bool
	kick    chan struct{} // has an element when there may be a line that nobody runs

	mu    sync.Mutex
	lines map[string]*line // by the hash tag; all channels on one when it is no Cluster
	lost  int              // lines that are
}

// NewReceiver returns a receiver of no channels.
func NewReceiver(rdb redis.UniversalClient, on Handler) *Receiver {
	return &Receiver{rdb: rdb, on: on, cluster: IsCluster(rdb), kick: make(chan struct{}, 1), lines: map[string]*line{}}
}

// Subscribe adds channels. Outside of a Cluster one with a * is a pattern.
func (r *Receiver) Subscribe(channels ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, channel := range channels {
		tag := r.tag(channel)
		l := r.lines[tag]
		if l == nil {
			l = &line{receiver: r, sharded: tag != "", kick: make(chan struct{}, 1), channels: map[string]standing{}}
			r.lines[tag] = l
		}
		if _, known := l.channels[channel]; !known {
			l.channels[channel] = wanted
			wake(l.kick)
		}
	}
	wake(r.kick)
}

// Unsubscribe takes channels away. Messages that are under way may still come.
func (r *Receiver) Unsubscribe(channels ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, channel := range channels {
		l := r.lines[r.tag(channel)]
		if l == nil {
			continue
		}
		if s, known := l.channels[channel]; known {
			delete(l.channels, channel)
			if s != wanted {
				l.leaving = append(l.leaving, channel)
			}
			wake(l.kick)
		}
	}
}

// Standing reports whether the subscriptions of all channels stand.
func (r *Receiver) Standing() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lines {
		for _, s := range l.channels {
			if s != up {
				return false
			}
		}
	}
	return true
}

// Run receives until ctx ends, and returns when its connections are closed.
func (r *Receiver) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		for _, l := range r.idle() {
			running.Go(func() { l.run(ctx) })
		}
		select {
		case <-ctx.Done():
			return
		case <-r.kick:
		}
	}
}

// idle returns the lines that nobody runs, as run by the caller from now on.
func (r *Receiver) idle() []*line {
	r.mu.Lock()
	defer r.mu.Unlock()
	var idle []*line
	for _, l := range r.lines {
		if !l.running {
			l.running = true
			idle = append(idle, l)
		}
	}
	return idle
}

// over takes a line without channels out; false when it has some by now.
func (r *Receiver) over(l *line) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(l.channels) > 0 {
		return false
	}
	for tag, other := range r.lines {
		if other == l {
			delete(r.lines, tag)
		}
	}
	return true
}

// note takes down that a line is lost, or back.
func (r *Receiver) note(change int, err error) {
	r.mu.Lock()
	before := r.lost
	r.lost += change
	now := r.lost
	r.mu.Unlock()
	switch {
	case before == 0 && now > 0 && r.on.Lost != nil:
		r.on.Lost(err)
	case before > 0 && now == 0 && r.on.Back != nil:
		r.on.Back()
	}
}

// tag is the hash tag of a channel in a Cluster, as Redis finds it in a key; empty for none.
func (r *Receiver) tag(channel string) string {
	if !r.cluster {
		return ""
	}
	_, rest, found := strings.Cut(channel, "{")
	if !found {
		return ""
	}
	tag, _, found := strings.Cut(rest, "}")
	if !found {
		return ""
	}
	return tag
}

func wake(kick chan struct{}) {
	select {
	case kick <- struct{}{}:
	default:
	}
}

// isPattern reports whether a channel is one.
func isPattern(channel string) bool { return strings.Contains(channel, "*") }

// split parts patterns from channels.
func split(all []string) (channels, patterns []string) {
	patterns = slices.DeleteFunc(slices.Clone(all), func(c string) bool { return !isPattern(c) })
	return slices.DeleteFunc(slices.Clone(all), isPattern), patterns
}
