package client

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// patience is how long a submit waits for the call before its own: a call that takes longer, because it is large or its manager
// does not answer, keeps nobody up.
const patience = 20 * time.Millisecond

// gatherer joins submits to one queue that come at the same time into one call: what comes while a call is under way goes
// together in the next. A call costs as much as several tasks in it, so who submits from many goroutines gets a multiple; who
// submits alone waits for nothing. Only submits to the same queue go together, so that what is wrong with one queue, or with the
// node of a Cluster on which it lies, is no error of a submit to another.
//
// Its goroutines make the calls for many; none is left after close.
type gatherer struct {
	// submit makes a call for many, all to one queue.
	submit func(context.Context, []*apiv1.SubmitRequest) []Batched

	mu     sync.Mutex
	closed bool
	queues map[string]*gathering // those with calls under way
	work   sync.WaitGroup
}

// gathering is what is under way to one queue. The mutex of the gatherer guards it.
type gathering struct {
	flights int       // calls under way
	begun   time.Time // the latest of them
	waiting []*gathered
}

// gathered is a submit that waits for a call for many.
type gathered struct {
	request *apiv1.SubmitRequest
	done    chan struct{} // closed when result is there
	result  Batched
	gone    bool    // nobody waits for it any more; the mutex of the gatherer guards it, as flight
	flight  *flight // nil before its call
}

// flight is a call for many.
type flight struct {
	left   int // submits that are still waited for; the mutex of the gatherer guards it
	cancel context.CancelFunc
}

// enter returns nil for a submit that shall have a call of its own, after which leave is called; else what to wait for.
func (g *gatherer) enter(request *apiv1.SubmitRequest) *gathered {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.queues[request.GetQueue()]
	if q == nil {
		q = &gathering{}
		g.queues[request.GetQueue()] = q
	}
	if q.flights == 0 || len(q.waiting) == 0 && time.Since(q.begun) >= patience {
		q.flights++
		q.begun = time.Now()
		return nil
	}
	request.Payload = bytes.Clone(request.GetPayload()) // its caller may be gone, and write over it, before it is sent
	w := &gathered{request: request, done: make(chan struct{})}
	q.waiting = append(q.waiting, w)
	return w
}

// leave ends a call, and begins one for those that have gathered meanwhile.
func (g *gatherer) leave(queue string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.queues[queue]
	q.flights--
	g.fly(q)
	if q.flights == 0 {
		delete(g.queues, queue)
	}
}

// hurry begins a call for a submit that still waits, and for the others that do, whatever else is under way.
func (g *gatherer) hurry(w *gathered) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if q := g.queues[w.request.GetQueue()]; q != nil && w.flight == nil {
		g.fly(q)
	}
}

// abandon says that a submit is not waited for any more. A call for nobody is ended.
func (g *gatherer) abandon(w *gathered) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.gone = true
	if w.flight == nil {
		return
	}
	if w.flight.left--; w.flight.left == 0 {
		w.flight.cancel()
	}
}

// fly begins a call for those that wait, for as many as one call takes. mu is held.
func (g *gatherer) fly(q *gathering) {
	q.waiting = slices.DeleteFunc(q.waiting, func(w *gathered) bool { return w.gone })
	if len(q.waiting) == 0 || g.closed {
		return // those that wait have been told that the client is closed
	}
	requests := make([]*apiv1.SubmitRequest, len(q.waiting))
	for i, w := range q.waiting {
		requests[i] = w.request
	}
	n := callSize(requests)
	aboard := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	ctx, cancel := context.WithCancel(context.Background()) // of nobody's own: who goes leaves the others there
	f := &flight{left: n, cancel: cancel}
	for _, w := range aboard {
		w.flight = f
	}
	q.flights++
	q.begun = time.Now()
	g.work.Go(func() {
		defer cancel()
		for i, result := range g.submit(ctx, requests[:n]) {
			aboard[i].result = result
			close(aboard[i].done)
		}
		runtime.Gosched() // who has just been answered may have more, which then goes in the next call instead of the one after
		g.leave(requests[0].GetQueue())
	})
}

// close returns when no call for many is under way. The contexts of those who wait, and of the calls, have ended before.
func (g *gatherer) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.work.Wait()
}

// await returns what came of a submit that goes with others, or the error of its own context.
func (a *api) await(ctx context.Context, w *gathered) (Submitted, error) {
	what := submitTo(w.request.GetQueue())
	inner, done, err := a.calls.begin(ctx)
	if err != nil {
		a.gather.abandon(w)
		return Submitted{}, fmt.Errorf("%s: %w", what, err)
	}
	defer done()
	enough := time.NewTimer(patience)
	defer enough.Stop()
	for {
		select {
		case <-w.done:
			return w.result.Submitted, w.result.Err
		case <-enough.C:
			a.gather.hurry(w)
		case <-inner.Done():
			a.gather.abandon(w)
			if err := ctx.Err(); err != nil {
				return Submitted{}, fmt.Errorf("%s: %w", what, err)
			}
			return Submitted{}, fmt.Errorf("%s: %w", what, ErrClosed)
		}
	}
}

// submitTogether makes one call for submits to one queue.
func (a *api) submitTogether(ctx context.Context, requests []*apiv1.SubmitRequest) []Batched {
	all := make([]Batched, len(requests))
	if len(requests) == 1 {
		all[0].Submitted, all[0].Err = a.submitOne(ctx, requests[0])
		return all
	}
	places := make([]int, len(requests))
	for i := range places {
		places[i] = i
	}
	if err := a.submitSome(ctx, submitTo(requests[0].GetQueue()), requests, places, all); err != nil {
		for i := range all {
			all[i].Err = err
		}
	}
	return all
}
