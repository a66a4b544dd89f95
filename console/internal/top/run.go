package top

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

// Terminal is the terminal that the view takes over.
type Terminal interface {
	io.Writer
	// Size is the number of columns and rows now.
	Size() (columns, rows int)
	// Raw makes it hand over each key as it is, and returns what puts its mode back.
	Raw() (restore func(), err error)
	// Borrowed reads what is typed, until ctx ends.
	Borrowed(ctx context.Context) io.Reader
	// Suspend stops the process until it is continued.
	Suspend()
	// Resized tells, until ctx ends, when the size has changed.
	Resized(ctx context.Context) <-chan os.Signal
}

// Manager is what the view asks of a manager. Its errors are for people.
type Manager interface {
	Status(ctx context.Context) (*apiv1.StatusResponse, error)
	Pause(ctx context.Context, queue string) error
	Resume(ctx context.Context, queue string) error
	// Restart replaces the workers of a queue, or one worker when queue is empty.
	Restart(ctx context.Context, queue string, worker uint64) error
	Kill(ctx context.Context, worker uint64) error
}

const (
	lookEvery = time.Second
	lookTime  = 2 * time.Second  // the longest that an answer may take
	doTime    = 10 * time.Second // and one to an action
)

// Run shows the view until it is left. now is the clock.
func Run(ctx context.Context, t Terminal, m Manager, colour bool, now func() time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	v := &view{
		terminal: t, manager: m, style: screen.Style{Colour: colour}, now: now, painter: painter{to: t}, model: model{now: now()},
		keys: make(chan []key), answers: make(chan answer), ends: make(chan end), broken: make(chan any, 1),
	}
	defer v.others.Wait()
	defer cancel()
	restore, err := v.enter()
	if err != nil {
		return err
	}
	v.restore = restore
	defer func() { v.restore() }()
	v.begin(ctx, v.readKeys)
	v.begin(ctx, v.look)
	return v.loop(ctx)
}

type answer struct {
	status *apiv1.StatusResponse
	err    error
}

type end struct {
	action action
	err    error
}

// view is one showing. All but the goroutines that feed its channels is used by the loop alone.
type view struct {
	terminal Terminal
	manager  Manager
	style    screen.Style
	now      func() time.Time
	model    model
	painter  painter
	restore  func()

	keys    chan []key
	answers chan answer
	ends    chan end
	broken  chan any // the panic of another goroutine
	others  sync.WaitGroup
}

// enter takes the terminal over and returns what gives it back.
func (v *view) enter() (restore func(), err error) {
	mode, err := v.terminal.Raw()
	if err != nil {
		return nil, err
	}
	restore = func() {
		_, _ = io.WriteString(v.terminal, leave) // a terminal that is gone needs nothing
		mode()
	}
	if _, err := io.WriteString(v.terminal, enter); err != nil {
		restore()
		return nil, fmt.Errorf("write to the terminal: %w", err)
	}
	v.painter.forget()
	return restore, nil
}

// begin starts a goroutine whose panic is the loop's, so that the terminal is put back.
func (v *view) begin(ctx context.Context, run func(ctx context.Context)) {
	v.others.Go(func() {
		defer func() {
			if r := recover(); r != nil {
				v.broken <- r
			}
		}()
		run(ctx)
	})
}

func (v *view) loop(ctx context.Context) error {
	sizes := v.terminal.Resized(ctx)
	for {
		columns, rows := v.terminal.Size()
		if err := v.painter.paint(v.model.view(max(1, columns), max(2, rows), v.style)); err != nil {
			return fmt.Errorf("write to the terminal: %w", err)
		}
		select {
		case keys := <-v.keys:
			quit, err := v.press(ctx, keys)
			if quit || err != nil {
				return err
			}
		case a := <-v.answers:
			v.model.heard(a.status, a.err, v.now())
		case e := <-v.ends:
			v.model.did(e.action, e.err)
		case <-sizes:
			v.painter.forget()
		case r := <-v.broken:
			panic(r)
		case <-ctx.Done():
			return nil
		}
	}
}

// press does what keys do; quit is true when one was to leave.
func (v *view) press(ctx context.Context, keys []key) (quit bool, err error) {
	for _, k := range keys {
		switch k {
		case keyQuit:
			return true, nil
		case keySuspend:
			v.restore()
			v.restore = func() {} // the terminal is given back until enter has worked
			v.terminal.Suspend()
			restore, err := v.enter()
			if err != nil {
				return true, err
			}
			v.restore = restore
		case keyRedraw:
			v.painter.forget()
		default:
			if a := v.model.press(k); a != nil {
				v.begin(ctx, func(ctx context.Context) { v.do(ctx, *a) })
			}
		}
	}
	return false, nil
}

// readKeys hands over what is typed. A terminal that is gone leaves.
func (v *view) readKeys(ctx context.Context) {
	in, chunk := v.terminal.Borrowed(ctx), make([]byte, 256)
	for {
		n, err := in.Read(chunk)
		keys := keysOf(chunk[:n])
		if err != nil {
			keys = append(keys, keyQuit)
		}
		select {
		case v.keys <- keys:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// look asks the manager again and again.
func (v *view) look(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		asked, cancel := context.WithTimeout(ctx, lookTime)
		status, err := v.manager.Status(asked)
		cancel()
		select {
		case v.answers <- answer{status, err}:
		case <-ctx.Done():
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// do asks the manager for an action.
func (v *view) do(ctx context.Context, a action) {
	asked, cancel := context.WithTimeout(ctx, doTime)
	defer cancel()
	var err error
	switch a.kind {
	case "pause":
		err = v.manager.Pause(asked, a.queue)
	case "resume":
		err = v.manager.Resume(asked, a.queue)
	case "restart":
		err = v.manager.Restart(asked, a.queue, a.worker)
	case "kill":
		err = v.manager.Kill(asked, a.worker)
	}
	select {
	case v.ends <- end{a, err}:
	case <-ctx.Done():
	}
}
