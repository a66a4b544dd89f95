package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos/actor"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/judge"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/plan"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

const (
	submitters = 4
	together   = 25 // tasks that one subscription waits for
	// doubt is how long a submit through a manager takes when the manager may have asked Redis twice.
	doubt       = 2 * time.Second
	submitPause = 100 * time.Millisecond
)

// submit submits every order at its time and waits for their ends, or until ctx ends.
func (r *run) submit(ctx context.Context) {
	orders := make(chan plan.Order)
	accepted := make(chan task.ID, submitters)
	var submits, waits sync.WaitGroup
	for range submitters {
		submits.Go(func() {
			for order := range orders {
				if s, err := r.submitOne(ctx, order); err != nil {
					r.problem(fmt.Errorf("order %d (%s): %w", order.Number, order.Deed, err))
				} else {
					r.note(func(f *judge.Facts) { f.Submissions = append(f.Submissions, s) })
					accepted <- s.ID
				}
			}
		})
	}
	waits.Go(func() {
		var batch []task.ID
		for id := range accepted {
			if batch = append(batch, id); len(batch) == together {
				ids := batch
				batch = nil
				waits.Go(func() { r.await(ctx, ids) })
			}
		}
		r.await(ctx, batch)
	})
	for _, order := range r.plan.Orders {
		if actor.Rest(ctx, time.Until(r.began.Add(order.At))) != nil {
			break
		}
		orders <- order
	}
	close(orders)
	submits.Wait()
	close(accepted)
	waits.Wait()
}

// submitOne submits an order until it is known to have been accepted.
func (r *run) submitOne(ctx context.Context, order plan.Order) (judge.Submission, error) {
	s := judge.Submission{Order: order}
	for attempt := 0; ; attempt++ {
		began := time.Now()
		submitted, err := r.send(ctx, order, attempt)
		switch {
		case err == nil:
			if order.API && time.Since(began) > doubt {
				s.Doubtful++
			}
			s.ID = submitted.ID
			return s, nil
		case ctx.Err() != nil:
			return s, fmt.Errorf("not accepted in time: %w", err)
		case errors.Is(err, client.ErrInvalidPayload):
			return s, err
		}
		s.Doubtful++
		if err := actor.Rest(ctx, submitPause); err != nil {
			return s, err
		}
	}
}

// send submits straight to Redis or to a manager, another one for each attempt.
func (r *run) send(ctx context.Context, order plan.Order, attempt int) (client.Submitted, error) {
	if !order.API {
		return r.tasks.Submit(ctx, order.Queue, order.Payload)
	}
	m := r.managers[(order.Number+attempt)%len(r.managers)]
	c, err := client.Dial("unix:" + m.Socket())
	if err != nil {
		return client.Submitted{}, err
	}
	defer func() { _ = c.Close() }()
	const patience = 5 * time.Second // a frozen manager says nothing
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return c.Submit(ctx, order.Queue, order.Payload)
}

// await counts the ends that a subscription yields.
func (r *run) await(ctx context.Context, ids []task.ID) {
	for len(ids) > 0 {
		left := map[task.ID]bool{}
		for _, id := range ids {
			left[id] = true
		}
		for update, err := range r.tasks.Subscribe(ctx, ids) {
			if err != nil {
				break
			}
			delete(left, update.ID)
			if update.Ended != nil {
				r.note(func(f *judge.Facts) { f.Answers[update.ID]++ })
			}
		}
		ids = ids[:0]
		for id := range left { // Redis was away when it began
			ids = append(ids, id)
		}
		if actor.Rest(ctx, submitPause) != nil {
			return
		}
	}
}
