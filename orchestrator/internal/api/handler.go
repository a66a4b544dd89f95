package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"connectrpc.com/connect"

	"github.com/drover-jobs/drover/protocol/drover/api/v1/apiv1connect"
	"github.com/drover-jobs/drover/protocol/openapi"
)

const (
	// maxRequest bounds the body of a request, in bytes: a payload at its bound as base64 in JSON, or maxIDs IDs of the
	// usual length.
	maxRequest = 8 << 20
	// maxIDs bounds the tasks of one subscription.
	maxIDs = 100_000
	// minCompress is the answer from which on it is worth compressing, in bytes, for callers that ask for it.
	minCompress = 16 << 10
)

// errStopping is why waits and streams end when the manager does.
var errStopping = errors.New("the manager is stopping; ask again when it runs again")

// rights decides whether a procedure may be called on a socket.
type rights func(procedure string) error

// everything allows all.
func everything(string) error { return nil }

// tasksOnly allows what plugins need and says where the rest is allowed.
func tasksOnly(fullSocket string) rights {
	return func(procedure string) error {
		switch procedure {
		case apiv1connect.TaskServiceSubmitProcedure, apiv1connect.TaskServiceSubmitBatchProcedure, apiv1connect.TaskServiceGetProcedure,
			apiv1connect.TaskServiceWaitProcedure, apiv1connect.TaskServiceSubscribeProcedure:
			return nil
		default:
			return fmt.Errorf("%s is not allowed on the socket of the plugins, which may submit, get, wait and subscribe; use the manager's own socket, %s", procedure, fullSocket)
		}
	}
}

// handler serves both services with the given rights. waits ends when the manager begins to stop.
func (s *Server) handler(waits context.Context, may rights) http.Handler {
	options := []connect.HandlerOption{
		connect.WithReadMaxBytes(maxRequest),
		connect.WithCompressMinBytes(minCompress),
		connect.WithInterceptors(&guard{may: may, timeout: s.limits.unary}),
		connect.WithRecover(func(_ context.Context, spec connect.Spec, _ http.Header, reason any) error {
			s.options.Log.Error("a call of the API panicked", "procedure", spec.Procedure, "reason", reason, "stack", string(debug.Stack()))
			return connect.NewError(connect.CodeInternal, errors.New("the manager made a mistake; its log says more"))
		}),
	}
	merged := func(ctx context.Context) (context.Context, func()) { return merge(ctx, waits) }
	mux := http.NewServeMux()
	served := &tasks{client: s.options.Tasks, waits: merged, beat: s.limits.beat}
	mux.Handle(apiv1connect.NewTaskServiceHandler(served, options...))
	mux.HandleFunc("GET "+pathOpenAPI, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openapi.Document()) // who has gone need not be told
	})
	mux.HandleFunc("GET "+pathEvents, served.events) // every door allows to follow tasks
	controls := &control{control: s.options.Control, waits: merged, followers: make(chan struct{}, maxFollowers)}
	mux.Handle(apiv1connect.NewControlServiceHandler(controls, options...))
	return s.timed(s.callers.limited(spoken(mux)))
}

// merge returns a context that ends with either, with the cause of the one that ended, and how to free it.
func merge(ctx, other context.Context) (context.Context, func()) {
	merged, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(other, func() { cancel(context.Cause(other)) })
	return merged, func() {
		stop()
		cancel(nil)
	}
}

// guard checks the rights of a call, and bounds the time of those that are no wait.
type guard struct {
	may     rights
	timeout time.Duration
}

var _ connect.Interceptor = (*guard)(nil)

// WrapUnary implements connect.Interceptor.
func (g *guard) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		if err := g.may(request.Spec().Procedure); err != nil {
			return nil, connect.NewError(connect.CodePermissionDenied, err)
		}
		if request.Spec().Procedure != apiv1connect.TaskServiceWaitProcedure {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, g.timeout)
			defer cancel()
		}
		return next(ctx, request)
	}
}

// WrapStreamingClient implements connect.Interceptor; there is no client here.
func (g *guard) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements connect.Interceptor.
func (g *guard) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if err := g.may(conn.Spec().Procedure); err != nil {
			return connect.NewError(connect.CodePermissionDenied, err)
		}
		return next(ctx, conn)
	}
}
