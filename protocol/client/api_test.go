package client_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/drover/api/v1/apiv1connect"
	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

const within = 20 * time.Second // in which everything in these tests must have happened

// manager answers as it is told.
type manager struct {
	apiv1connect.UnimplementedTaskServiceHandler
	err     error // of every call
	streams []func(*connect.ServerStream[apiv1.SubscribeResponse], []string) error
	calls   atomic.Int32
}

func (m *manager) Submit(context.Context, *apiv1.SubmitRequest) (*apiv1.SubmitResponse, error) {
	return nil, m.err
}

func (m *manager) Get(context.Context, *apiv1.GetRequest) (*apiv1.GetResponse, error) {
	return nil, m.err
}

func (m *manager) Subscribe(_ context.Context, r *apiv1.SubscribeRequest, stream *connect.ServerStream[apiv1.SubscribeResponse]) error {
	n := int(m.calls.Add(1)) - 1
	if n >= len(m.streams) {
		return m.err
	}
	if err := stream.Send(nil); err != nil {
		return err
	}
	return m.streams[n](stream, r.GetIds())
}

// start serves m on a socket until the test ends and returns a client for it.
func start(t *testing.T, m *manager) client.Client {
	t.Helper()
	path := filepath.Join(testenv.ShortDir(t), "s")
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewTaskServiceHandler(m))
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: mux, Protocols: protocols, ReadHeaderTimeout: within}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l) // ends with the test
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return dial(t, path)
}

func dial(t *testing.T, path string) client.Client {
	t.Helper()
	c, err := client.Dial("unix:" + path)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Every code of the manager becomes the error that a caller tests for, with the manager's words.
func TestErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		code        connect.Code
		submit, get error
	}{
		{connect.CodeNotFound, client.ErrUnknownQueue, client.ErrUnknownTask},
		{connect.CodeInvalidArgument, client.ErrInvalidPayload, client.ErrUnknownTask},
		{connect.CodeResourceExhausted, client.ErrInvalidPayload, client.ErrUnknownTask},
		{connect.CodeUnavailable, client.ErrUnavailable, client.ErrUnavailable},
		{connect.CodeAborted, client.ErrUnavailable, client.ErrUnavailable},
		{connect.CodePermissionDenied, client.ErrForbidden, client.ErrForbidden},
		{connect.CodeDeadlineExceeded, context.DeadlineExceeded, context.DeadlineExceeded},
	}
	for _, test := range tests {
		t.Run(test.code.String(), func(t *testing.T) {
			t.Parallel()
			c := start(t, &manager{err: connect.NewError(test.code, errors.New("these words"))})
			if _, err := c.Submit(t.Context(), "q", nil); !errors.Is(err, test.submit) || err.Error() != "these words" {
				t.Errorf("submit gave %v, want %v", err, test.submit)
			}
			if _, err := c.Get(t.Context(), task.ID{Queue: "q", Key: "k"}); !errors.Is(err, test.get) || errors.Is(err, client.ErrNoManager) {
				t.Errorf("get gave %v, want %v", err, test.get)
			}
		})
	}
}

// Where no manager is, every call says so at once.
func TestNoManager(t *testing.T) {
	t.Parallel()
	c := dial(t, filepath.Join(testenv.ShortDir(t), "none"))
	id := task.ID{Queue: "q", Key: "k"}
	calls := map[string]func(context.Context) error{
		"submit": func(ctx context.Context) error { _, err := c.Submit(ctx, "q", map[string]any{}); return err },
		"get":    func(ctx context.Context) error { _, err := c.Get(ctx, id); return err },
		"cancel": func(ctx context.Context) error { _, err := c.Cancel(ctx, id); return err },
		"wait":   func(ctx context.Context) error { _, err := client.Wait(ctx, c, id); return err },
	}
	for name, call := range calls {
		begun := time.Now()
		err := call(t.Context())
		if !errors.Is(err, client.ErrNoManager) || !errors.Is(err, client.ErrUnavailable) || time.Since(begun) > 2*time.Second {
			t.Errorf("%s gave %v after %s, want ErrNoManager at once", name, err, time.Since(begun))
		}
	}
}

func end(stream *connect.ServerStream[apiv1.SubscribeResponse], id string) error {
	return stream.Send(&apiv1.SubscribeResponse{Update: &apiv1.SubscribeResponse_Ended{
		Ended: &taskv1.Task{Id: id, State: taskv1.State_STATE_COMPLETED},
	}})
}

// A stream that breaks is asked for again, for what is left only; what comes twice or was not asked for is dropped.
func TestSubscribeAgain(t *testing.T) {
	t.Parallel()
	m := &manager{err: connect.NewError(connect.CodeInternal, errors.New("too many streams"))}
	m.streams = []func(*connect.ServerStream[apiv1.SubscribeResponse], []string) error{
		func(s *connect.ServerStream[apiv1.SubscribeResponse], ids []string) error {
			if len(ids) != 3 {
				return connect.NewError(connect.CodeInternal, errors.New("the first stream was not asked for all"))
			}
			if err := errors.Join(end(s, "q:a"), end(s, "q:a"), end(s, "q:foreign")); err != nil {
				return err
			}
			return connect.NewError(connect.CodeAborted, errors.New("the manager is stopping"))
		},
		func(*connect.ServerStream[apiv1.SubscribeResponse], []string) error {
			return connect.NewError(connect.CodeUnavailable, errors.New("Redis is away"))
		},
		func(*connect.ServerStream[apiv1.SubscribeResponse], []string) error { panic(http.ErrAbortHandler) },
		func(s *connect.ServerStream[apiv1.SubscribeResponse], ids []string) error {
			if len(ids) != 2 {
				return connect.NewError(connect.CodeInternal, errors.New("a later stream was not asked for what is left"))
			}
			return errors.Join(end(s, "q:b"), s.Send(&apiv1.SubscribeResponse{}), end(s, "q:a"))
		},
		func(s *connect.ServerStream[apiv1.SubscribeResponse], _ []string) error { return end(s, "q:c") },
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var got []string
	ids := []task.ID{{Queue: "q", Key: "a"}, {Queue: "q", Key: "b"}, {Queue: "q", Key: "c"}}
	for u, err := range start(t, m).Subscribe(ctx, ids) {
		if err != nil {
			t.Fatalf("subscribe: %v", err)
		}
		got = append(got, u.ID.Key)
	}
	if len(got) != 3 || got[0] != "a" || got[1] != "b" || got[2] != "c" {
		t.Errorf("the ends are %v, want a, b, c", got)
	}
}

// What asking again cannot change ends a subscription with the manager's words.
func TestSubscribeFails(t *testing.T) {
	t.Parallel()
	for code, want := range map[connect.Code]error{
		connect.CodePermissionDenied: client.ErrForbidden, connect.CodeUnavailable: client.ErrUnavailable,
	} {
		c := start(t, &manager{err: connect.NewError(code, errors.New("these words"))})
		if _, err := client.Wait(t.Context(), c, task.ID{Queue: "q", Key: "k"}); !errors.Is(err, want) || err.Error() != "these words" {
			t.Errorf("%s gave %v, want %v", code, err, want)
		}
	}
}

// A program that is no manager is told apart, and not asked for ever.
func TestNotAManager(t *testing.T) {
	t.Parallel()
	path := filepath.Join(testenv.ShortDir(t), "s")
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("220 mail.example ESMTP\r\n"))
			_ = conn.Close()
		}
	}()
	defer func() {
		_ = l.Close()
		<-done
	}()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	if _, err := client.Wait(ctx, dial(t, path), task.ID{Queue: "q", Key: "k"}); !errors.Is(err, client.ErrUnavailable) {
		t.Errorf("wait gave %v, want ErrUnavailable", err)
	}
}
