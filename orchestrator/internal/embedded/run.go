package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// saveShare keeps the server's lock free for nine tenths of the time however
// long a walk over the content takes.
const saveShare = 10

// Run loads the content, serves until ctx ends, writes everything and returns.
// An error before Ready says why it cannot start: another broker in the same
// directory, a snapshot of a newer version, an unreadable directory. An error
// after it says that the last changes could not be written. Run works once.
func (b *Broker) Run(ctx context.Context) (err error) {
	if b.started.Swap(true) {
		return errors.New("embedded broker: Run was called twice; build a new Broker")
	}
	if err := b.files.prepare(); err != nil {
		return err
	}
	release, err := b.files.claim()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := b.load(); err != nil {
		return err
	}
	l, err := b.open()
	if err != nil {
		return err
	}

	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	var loops sync.WaitGroup
	loops.Go(func() { b.expire(inner) })
	loops.Go(func() { b.save(inner) })
	l.goroutines.Go(l.accept)
	close(b.ready)

	<-ctx.Done()
	loops.Wait()
	b.redis.CtxCancel() // ends blocking commands
	l.close(b.wake)
	return b.finish()
}

// load brings back the newest good snapshot, or begins empty.
func (b *Broker) load() error {
	now := time.Now()
	b.redis = miniredis.NewMiniRedis()
	found, err := b.files.read(func(body []byte, at time.Time) error {
		r, err := restore(body, now)
		if err != nil {
			return err
		}
		b.redis = r.redis
		b.gate.fieldsExpire.Store(r.fieldsExpire)
		b.log.Info("embedded broker: content restored", "keys", r.keys, "written", at, "age", now.Sub(at).Round(time.Millisecond))
		return nil
	})
	if err != nil {
		return err
	}
	if !found {
		b.log.Info("embedded broker: no snapshot, starting empty", "dir", b.dir)
	}
	b.clock.start(now)
	return nil
}

// open makes the server ready behind its password and listens; nothing is
// accepted yet.
func (b *Broker) open() (*listener, error) {
	b.redis.RequireAuth(b.password)
	// Dial is the one way to start miniredis without a listener of its own.
	pipe, err := b.redis.Dial()
	if err != nil {
		return nil, fmt.Errorf("embedded broker: starting the server: %w", err)
	}
	_ = pipe.Close()
	srv := b.redis.Server()
	srv.SetPreHook(b.gate.hook(srv))
	b.hold = &holder{srv: srv, password: b.password, ticket: newSecret()}
	if err := b.hold.register(); err != nil {
		return nil, fmt.Errorf("embedded broker: starting the server: %w", err)
	}
	body, _, _, err := b.take()
	if err != nil {
		return nil, err
	}
	b.saved = fingerprint(body)
	l, err := listen(srv, b.password)
	if err != nil {
		return nil, err
	}
	b.address = l.address()
	if err := b.files.announce(Access{Address: b.address, Password: b.password, PID: os.Getpid()}); err != nil {
		l.close(b.wake)
		return nil, err
	}
	b.log.Info("embedded broker: serving", "address", b.address, "access", b.files.path(accessName))
	return l, nil
}

// save writes the content when it changed, until ctx ends.
func (b *Broker) save(ctx context.Context) {
	timer := time.NewTimer(b.every)
	defer timer.Stop()
	var seen uint64
	moved := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		// A command is counted before it runs. One that was counted just before
		// the last walk may have run after it, so a change calls for two walks.
		changes := b.gate.changes.Load()
		again := moved
		moved, seen = changes != seen, changes
		held := time.Duration(0)
		if moved || again || b.Err() != nil {
			var err error
			held, err = b.persist()
			b.setErr(err)
		}
		timer.Reset(max(b.every, saveShare*held))
	}
}

// persist takes a snapshot and writes it unless the same is on disk already. It
// returns how long the server was held.
func (b *Broker) persist() (held time.Duration, err error) {
	body, at, held, err := b.take()
	if err != nil {
		return held, err
	}
	mark := fingerprint(body)
	if mark == b.saved {
		return held, nil
	}
	if err := b.files.write(body, at); err != nil {
		return held, err
	}
	b.saved = mark
	return held, nil
}

// take encodes the content as it is at one moment.
func (b *Broker) take() (body []byte, at time.Time, held time.Duration, err error) {
	b.clock.mu.Lock()
	defer b.clock.mu.Unlock()
	room := b.size.Load()
	w := walk{
		wall:         b.clock.wall,
		volatile:     b.isVolatile,
		fieldsExpire: &b.gate.fieldsExpire,
		body:         make([]byte, 0, room+room/8),
	}
	begun := time.Now()
	var walked error
	err = b.hold.do(func(in *inside) {
		w.in = in
		walked = w.all()
		held = time.Since(begun)
	})
	if err = errors.Join(err, walked); err != nil {
		return nil, begun, held, err
	}
	b.size.Store(int64(len(w.body)))
	return w.body, begun, held, nil
}

// wake makes clients in blocking commands look whether the server has ended.
func (b *Broker) wake() { _ = b.hold.do(func(*inside) {}) }

// finish writes the last snapshot and takes the address away.
func (b *Broker) finish() error {
	_, err := b.persist()
	if err != nil {
		b.setErr(err)
		err = fmt.Errorf("embedded broker: the changes since the last snapshot are lost: %w", err)
	}
	err = errors.Join(err, b.files.withdraw())
	b.log.Info("embedded broker: stopped", "saved", err == nil)
	return err
}
