package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/plugins/exec/internal/line"
	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/protocol/fault"
)

// runPersistent gives a task to an idle child, or to a new one.
func (b *bridge) runPersistent(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
	info := sdk.Info(ctx)
	task := line.Task{
		Run: b.runs.Add(1), ID: info.ID.String(), Kind: b.kind, Queue: info.Queue, Attempt: info.Attempt, Payload: payload,
	}
	if !info.Deadline.IsZero() {
		task.DeadlineMS = info.Deadline.UnixMilli()
	}
	text, err := task.Encode()
	if err != nil {
		return nil, fault.New(fault.InvalidPayload, "%v", err).AsPermanent()
	}
	r := &run{
		number: task.Run, log: sdk.Logger(ctx), answer: make(chan answer, 1),
		progress: func(done, total uint64, note string) { sdk.Progress(ctx, done, total, note) },
	}
	for s := b.crew.take(); s != nil; s = b.crew.take() {
		a, fate := b.converse(ctx, s, r, text)
		if fate != lost || r.heard.Load() {
			return a.result, a.err
		}
		// It left between two tasks: no program has seen this one.
	}
	s, err := b.nextSession(ctx)
	if err != nil {
		return nil, err
	}
	a, _ := b.converse(ctx, s, r, text)
	return a.result, a.err
}

// converse has a child run a task, and keeps the child when it is fit for another.
func (b *bridge) converse(ctx context.Context, s *session, r *run, text []byte) (answer, fate) {
	s.setRunning(r)
	s.send(outgoing{text: text, task: r})
	a, fate := s.await(ctx, r)
	switch fate {
	case kept:
		b.crew.answered()
		b.crew.give(s)
	case lost:
		b.crew.died()
		b.replace(b.crew.expect())
	case ended:
		if ctx.Err() == nil || reasonOf(context.Cause(ctx)) != reasonStop { // a worker that is to leave needs no other child
			b.replace(b.crew.expect())
		}
	}
	return a, fate
}

// nextSession is the child that is being started already, or else a new one.
func (b *bridge) nextSession(ctx context.Context) (*session, error) {
	if sp := b.crew.claim(); sp != nil {
		return sp.wait(ctx, &b.crew)
	}
	return b.newSession(ctx)
}

// newSession starts a child when its time has come.
func (b *bridge) newSession(ctx context.Context) (*session, error) {
	if err := b.crew.wait(ctx); err != nil {
		return nil, err
	}
	s, err := b.startSession(ctx)
	if err != nil && ctx.Err() == nil {
		b.crew.died()
	}
	return s, err
}

// fate is what became of a child in a run.
type fate int

const (
	kept  fate = iota // it can take the next task
	lost              // it died by itself
	ended             // it was ended
)

// await waits for the answer to a run, the child's death, or the end of the run's time.
func (s *session) await(ctx context.Context, r *run) (answer, fate) {
	select {
	case a := <-r.answer:
		return s.answered(a)
	case <-s.gone:
		return s.died(r)
	case <-ctx.Done():
		return s.cancel(ctx, r)
	}
}

// answered waits for the end of a child of which that was the last answer.
func (s *session) answered(a answer) (answer, fate) {
	if a.last {
		<-s.gone
		return a, ended
	}
	return a, kept
}

// died is the end of a run whose child has gone. An answer that came before its death counts.
func (s *session) died(r *run) (answer, fate) {
	select {
	case a := <-r.answer:
		return a, ended
	default:
	}
	f := fault.New(fault.Crash, "the command %q %s while it ran the task", s.settings.name(), s.child.End())
	return answer{err: lastWords(s.child, f)}, lost
}

// cancel asks for the end of a run, then ends the child. An answer that comes meanwhile counts.
func (s *session) cancel(ctx context.Context, r *run) (answer, fate) {
	s.send(outgoing{text: line.Cancel(r.number, reasonOf(context.Cause(ctx)))})
	late := time.NewTimer(s.settings.cancelGrace)
	defer late.Stop()
	heeded := "did not answer the request to end"
	select {
	case a := <-r.answer:
		return s.answered(a)
	case <-s.gone:
	case <-late.C:
		heeded = fmt.Sprintf("did not heed the request to end within cancel_grace (%s)", s.settings.cancelGrace)
		s.terminate(s.settings.termGrace)
	}
	select {
	case a := <-r.answer:
		return a, ended
	default:
	}
	f := fault.New(fault.Failed, "the command %q %s, and %s", s.settings.name(), heeded, s.child.End())
	return answer{err: lastWords(s.child, f)}, ended
}

// reasonStop is the reason of a cancel because the worker is to leave.
const reasonStop = "stop"

// reasonOf names the cause of the end of a run as the protocol does.
func reasonOf(cause error) string {
	switch {
	case errors.Is(cause, sdk.ErrTimeout):
		return "timeout"
	case errors.Is(cause, sdk.ErrCancelled):
		return "cancelled"
	default:
		return reasonStop
	}
}
