package broker

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	healthEvery    = 2 * time.Second       // a connection that is silent for two beats is given up
	reconnectFirst = 50 * time.Millisecond // pause before the first new connection
	reconnectLast  = 2 * time.Second       // and before later ones
)

var (
	errSilent = errors.New("no answer from Redis on the connection for events")
	errMoved  = errors.New("the node of Redis no longer has these channels: another one has them")
	errNobody = errors.New("nobody wants these channels any more")
)

// line is one connection and its channels.
type line struct {
	receiver *Receiver
	kick     chan struct{} // has an element when the channels have changed
	// sharded is true for the channels of one hash tag in a Cluster; plain when its node turned out to have no such channels.
	sharded, plain bool

	// The receiver's mu guards these.
	running  bool
	channels map[string]standing
	leaving  []string // asked for in this session, and no longer wanted
}

// standing is how far the subscription of a channel has come in this session.
type standing int8

const (
	wanted standing = iota
	asked           // of Redis
	up              // Redis has said so
)

// run keeps the connection until ctx ends or nobody wants its channels.
func (l *line) run(ctx context.Context) {
	r := l.receiver
	pause, away := reconnectFirst, false
	back := func() {
		if away {
			away = false
			r.note(-1, nil)
		}
	}
	defer back()
	for {
		err := l.session(ctx, func() {
			pause = reconnectFirst
			back()
		})
		if ctx.Err() != nil || errors.Is(err, errNobody) && r.over(l) {
			return
		}
		if errors.Is(err, errNobody) {
			continue
		}
		if l.sharded && strings.Contains(err.Error(), "unknown command") {
			l.plain = true
			continue
		}
		if !away {
			away = true
			r.note(1, err)
		}
		if r.on.Down != nil {
			r.on.Down(l.forget(), err)
		} else {
			l.forget()
		}
		if c, is := r.rdb.(*redis.ClusterClient); is {
			c.ReloadState(ctx) // the node that is gone cannot say who has its slots now
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		case <-l.kick: // somebody new is there, and wants to know at once whether Redis is
			timer.Stop()
		}
		pause = min(2*pause, reconnectLast)
	}
}

// session is one connection: it receives in this goroutine and writes in another. It returns why it ended; stands is called whenever a
// subscription does.
func (l *line) session(ctx context.Context, stands func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ps := l.receiver.rdb.Subscribe(ctx)
	defer func() { _ = ps.Close() }()
	l.forget()
	home := l.home(ctx)
	// The first channel says which node to connect to, so it goes before the first receive.
	if err := l.change(ctx, ps); err != nil {
		return err
	}
	var heard atomic.Bool
	var keeper sync.WaitGroup
	keeper.Go(func() {
		cancel(l.keep(ctx, ps, &heard, home))
		_ = ps.Close() // wakes the receiver, which reads without a deadline
	})
	defer keeper.Wait()
	for {
		message, err := ps.Receive(ctx)
		if err == nil {
			heard.Store(true)
			err = l.take(message, stands)
		}
		if err != nil {
			cancel(err)
			return context.Cause(ctx)
		}
	}
}

// take hands on what was received. The error says that the connection is of no more use.
func (l *line) take(message any, stands func()) error {
	on := l.receiver.on
	switch m := message.(type) {
	case *redis.Subscription:
		if !strings.HasSuffix(m.Kind, "unsubscribe") {
			l.confirm(m.Channel)
			stands()
			if on.Up != nil {
				on.Up(m.Channel)
			}
		} else if l.stands(m.Channel) {
			return errMoved // nobody here wanted that: the slot has gone to another node
		}
	case *redis.Message:
		if on.Message != nil {
			on.Message(m.Channel, m.Payload)
		}
	}
	return nil
}

// keep subscribes what is wanted, leaves what is not, and finds out when the connection is dead, until ctx ends.
func (l *line) keep(ctx context.Context, ps *redis.PubSub, heard *atomic.Bool, home string) error {
	beat := time.NewTicker(healthEvery)
	defer beat.Stop()
	for pinged := false; ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-l.kick:
			if err := l.change(ctx, ps); err != nil {
				return err
			}
		case <-beat.C:
			if pinged && !heard.Load() {
				return errSilent
			}
			pinged = true
			heard.Store(false)
			if err := ps.Ping(ctx); err != nil {
				return err
			}
			if l.home(ctx) != home {
				return errMoved
			}
		}
	}
}

// home is the address of the primary that has the slot of a line's channels, as far as is known; empty when there are no slots. Just after
// a failover the node that gave way is still taken for it. It has the same channels as a replica, and hears what its primary
// hears; but not for certain when that dies.
func (l *line) home(ctx context.Context) string {
	c, is := l.receiver.rdb.(*redis.ClusterClient)
	if !is || !l.sharded {
		return ""
	}
	l.receiver.mu.Lock()
	channel := ""
	for channel = range l.channels {
		break
	}
	l.receiver.mu.Unlock()
	node, err := c.MasterForKey(ctx, channel)
	if err != nil {
		return ""
	}
	return node.Options().Addr
}

// change asks for what is wanted and not yet asked for, and leaves what is no longer wanted.
func (l *line) change(ctx context.Context, ps *redis.PubSub) error {
	add, drop, left := l.changes()
	if left == 0 {
		return errNobody
	}
	subscribe, unsubscribe := ps.Subscribe, ps.Unsubscribe
	if l.sharded && !l.plain {
		subscribe, unsubscribe = ps.SSubscribe, ps.SUnsubscribe
	}
	channels, patterns := split(drop)
	for _, step := range []struct {
		do  func(context.Context, ...string) error
		all []string
	}{{unsubscribe, channels}, {ps.PUnsubscribe, patterns}} {
		if len(step.all) > 0 {
			if err := step.do(ctx, step.all...); err != nil {
				return err
			}
		}
	}
	channels, patterns = split(add)
	if len(channels) > 0 {
		if err := subscribe(ctx, channels...); err != nil {
			return err
		}
	}
	if len(patterns) > 0 {
		return ps.PSubscribe(ctx, patterns...)
	}
	return nil
}

// changes returns the channels to subscribe now, those to leave, and how many are wanted at all.
func (l *line) changes() (add, drop []string, all int) {
	l.receiver.mu.Lock()
	defer l.receiver.mu.Unlock()
	for channel, s := range l.channels {
		if s == wanted {
			l.channels[channel] = asked
			add = append(add, channel)
		}
	}
	drop, l.leaving = l.leaving, nil
	return add, drop, len(l.channels)
}

// forget notes that nothing is asked for any more, and returns what is wanted.
func (l *line) forget() []string {
	l.receiver.mu.Lock()
	defer l.receiver.mu.Unlock()
	l.leaving = nil
	all := make([]string, 0, len(l.channels))
	for channel := range l.channels {
		l.channels[channel] = wanted
		all = append(all, channel)
	}
	return all
}

// confirm notes that the subscription of a channel stands, unless nobody wants it any more.
func (l *line) confirm(channel string) {
	l.receiver.mu.Lock()
	defer l.receiver.mu.Unlock()
	if _, known := l.channels[channel]; known {
		l.channels[channel] = up
	}
}

// stands reports whether the subscription of a channel is wanted and stood until now.
func (l *line) stands(channel string) bool {
	l.receiver.mu.Lock()
	defer l.receiver.mu.Unlock()
	return l.channels[channel] == up
}
