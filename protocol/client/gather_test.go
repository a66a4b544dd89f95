package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/drover/api/v1/apiv1connect"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// clerk is a manager that takes submits: the ID of a task is its payload's number, a payload without one is wrong, and there is one
// queue, "q". A payload of 0 is not answered before its caller goes or release is closed.
type clerk struct {
	apiv1connect.UnimplementedTaskServiceHandler
	release chan struct{}
	stuck   chan struct{} // gets one for each call that is not answered
	calls   atomic.Int64
	tasks   atomic.Int64
	open    atomic.Int64  // calls that are not answered
	ended   chan struct{} // gets one for each call that ends
}

// begin counts a call, and returns what counts its end.
func (c *clerk) begin() (end func()) {
	c.calls.Add(1)
	c.open.Add(1)
	return func() {
		c.open.Add(-1)
		select {
		case c.ended <- struct{}{}:
		default: // nobody looks that closely
		}
	}
}

func (c *clerk) Submit(ctx context.Context, r *apiv1.SubmitRequest) (*apiv1.SubmitResponse, error) {
	defer c.begin()()
	s, reason := c.take(ctx, r)
	switch reason {
	case client.ReasonUnknownQueue:
		return nil, connect.NewError(connect.CodeNotFound, errors.New(reason))
	case client.ReasonInvalidPayload:
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New(reason))
	}
	return s, nil
}

func (c *clerk) SubmitBatch(ctx context.Context, r *apiv1.SubmitBatchRequest) (*apiv1.SubmitBatchResponse, error) {
	defer c.begin()()
	answer := &apiv1.SubmitBatchResponse{}
	for _, one := range r.GetTasks() {
		result := &apiv1.SubmitResult{}
		if s, reason := c.take(ctx, one); reason == "" {
			result.Result = &apiv1.SubmitResult_Submitted{Submitted: s}
		} else {
			result.Result = &apiv1.SubmitResult_Error{Error: &apiv1.SubmitError{Reason: reason, Message: reason}}
		}
		answer.Results = append(answer.Results, result)
	}
	return answer, nil
}

func (c *clerk) take(ctx context.Context, r *apiv1.SubmitRequest) (s *apiv1.SubmitResponse, reason string) {
	c.tasks.Add(1)
	var n int
	switch _, err := fmt.Sscan(string(r.GetPayload()), &n); {
	case r.GetQueue() != "q":
		return nil, client.ReasonUnknownQueue
	case err != nil:
		return nil, client.ReasonInvalidPayload
	case n == 0:
		c.stuck <- struct{}{}
		select {
		case <-ctx.Done():
		case <-c.release:
		}
	}
	return &apiv1.SubmitResponse{Id: fmt.Sprintf("q:%d", n)}, ""
}

// open serves a clerk until the test ends or the returned function is called, and returns a client for it.
func open(t *testing.T) (c *clerk, dialed client.Client, die func()) {
	t.Helper()
	c = &clerk{release: make(chan struct{}), stuck: make(chan struct{}, 1000), ended: make(chan struct{}, 1000)}
	path := filepath.Join(testenv.ShortDir(t), "s")
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewTaskServiceHandler(c))
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: mux, Protocols: protocols, ReadHeaderTimeout: within}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // ends with the test
	}()
	die = sync.OnceFunc(func() {
		_ = server.Close()
		<-done
	})
	t.Cleanup(die)
	return c, dial(t, path), die
}

// gathered submits from many goroutines at once, good and bad, with contexts that end and without, until each has submitted its share
// or look says that its answer is the last one.
func gathered(t *testing.T, c client.Client, share int, look func(queue string, n int, s client.Submitted, err error) bool) {
	t.Helper()
	const callers = 64
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var submitting sync.WaitGroup
	for caller := range callers {
		submitting.Go(func() {
			for i := range share {
				n := 1 + caller*share + i
				queue, payload, its := "q", any(n), ctx
				switch n % 8 {
				case 1:
					payload = "bad"
				case 2:
					queue = "none"
				case 3:
					short, over := context.WithCancel(ctx)
					go over()
					its = short
				}
				s, err := c.Submit(its, queue, payload)
				if its != ctx && errors.Is(err, context.Canceled) {
					continue
				}
				if !look(queue, n, s, err) {
					return
				}
			}
		})
	}
	submitting.Wait()
	if ctx.Err() != nil {
		t.Error("the submits took too long")
	}
}

// Submits that come at the same time share calls, and each gets its own answer: the ID of its own task, or what is wrong with it.
func TestGather(t *testing.T) {
	t.Parallel()
	m, c, _ := open(t)
	gathered(t, c, 20, func(queue string, n int, s client.Submitted, err error) bool {
		switch {
		case n%8 == 1 && (!errors.Is(err, client.ErrInvalidPayload) || err.Error() != client.ReasonInvalidPayload),
			n%8 == 2 && (!errors.Is(err, client.ErrUnknownQueue) || err.Error() != client.ReasonUnknownQueue),
			n%8 != 1 && n%8 != 2 && (err != nil || s.ID.Key != fmt.Sprint(n)):
			t.Errorf("submit of %d to %s gave %+v, %v", n, queue, s, err)
		}
		return true
	})
	if calls, tasks := m.calls.Load(), m.tasks.Load(); calls > tasks/2 {
		t.Errorf("%d tasks took %d calls", tasks, calls)
	}
}

// A manager that dies in the middle is told to everybody who submits, in time.
func TestGatherOutlivesItsManager(t *testing.T) {
	t.Parallel()
	_, c, die := open(t)
	var answers atomic.Int64
	gathered(t, c, 1000, func(_ string, n int, s client.Submitted, err error) bool {
		if answers.Add(1) == 500 {
			go die()
		}
		if err == nil && s.ID.Key != fmt.Sprint(n) {
			t.Errorf("submit of %d gave %+v", n, s)
		}
		return !errors.Is(err, client.ErrUnavailable)
	})
	_, err := c.Submit(t.Context(), "q", 1)
	if !errors.Is(err, client.ErrNoManager) {
		t.Errorf("after its death submit gave %v", err)
	}
}

// A client that is closed in the middle tells everybody who submits, and nothing of it is left when Close returns.
func TestGatherIsClosed(t *testing.T) {
	t.Parallel()
	_, c, _ := open(t)
	var answers atomic.Int64
	gathered(t, c, 1000, func(_ string, n int, s client.Submitted, err error) bool {
		if answers.Add(1) == 500 {
			if err := c.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		}
		if err == nil && s.ID.Key != fmt.Sprint(n) || err != nil && n%8 > 2 && !errors.Is(err, client.ErrClosed) {
			t.Errorf("submit of %d gave %+v, %v", n, s, err)
		}
		return !errors.Is(err, client.ErrClosed)
	})
}

// A call that is not answered keeps no other submit up, not to its queue and not to another, and who goes is let go at once: a call for
// nobody ends.
func TestGatherIsNotHeldUp(t *testing.T) {
	t.Parallel()
	m, c, _ := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var submitting sync.WaitGroup
	first := make(chan error, 1)
	submitting.Go(func() { _, err := c.Submit(ctx, "q", 0); first <- err })
	await(t, m.stuck)

	gathered(t, c, 2, func(_ string, n int, s client.Submitted, err error) bool {
		if n%8 > 2 && (err != nil || s.ID.Key != fmt.Sprint(n)) {
			t.Errorf("while a call is not answered, submit of %d gave %+v, %v", n, s, err)
		}
		return true
	})

	many, leave := context.WithCancel(ctx)
	const goers = 8
	var going sync.WaitGroup
	for range goers {
		going.Go(func() {
			_, err := c.Submit(many, "q", 0)
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `submit to queue "q"`) {
				t.Errorf("a submit that is not waited for gave %v", err)
			}
		})
	}
	await(t, m.stuck)
	leave()
	going.Wait()
	for m.open.Load() > 1 {
		await(t, m.ended)
	}
	if _, err := c.Submit(ctx, "q", 7); err != nil {
		t.Errorf("after others have gone, submit gave %v", err)
	}
	close(m.release)
	if err := <-first; err != nil {
		t.Errorf("the first submit gave %v", err)
	}
	submitting.Wait()
}

func await(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(within):
		t.Fatal("it did not happen in time")
	}
}
