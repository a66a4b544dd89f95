package sdktest

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest/conform"
	"github.com/drover-jobs/drover/protocol"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// life is one life of a worker that is served in memory.
type life struct {
	service workerv1.WorkerServiceClient
	conn    *grpc.ClientConn
	stop    context.CancelFunc
	exited  chan struct{} // closed when the worker has ended
	code    int
	err     error
}

var _ conform.Life = (*life)(nil)

// serve serves the program on a listener in memory and connects to it.
func serve(program *sdk.Program) (*life, error) {
	listener := bufconn.Listen(256 << 10)
	ctx, stop := context.WithCancel(context.Background())
	l := &life{stop: stop, exited: make(chan struct{})}
	go func() {
		defer close(l.exited)
		l.code, l.err = program.ServeOn(ctx, listener)
	}()
	conn, err := grpc.NewClient("passthrough:worker",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(protocol.MaxMessage), grpc.MaxCallSendMsgSize(protocol.MaxMessage)))
	if err != nil {
		stop()
		<-l.exited
		return nil, fmt.Errorf("connect to the worker: %w", err)
	}
	l.conn, l.service = conn, workerv1.NewWorkerServiceClient(conn)
	return l, nil
}

// Service is the worker's own.
func (l *life) Service() workerv1.WorkerServiceClient { return l.service }

// Exited is closed when the worker has ended.
func (l *life) Exited() <-chan struct{} { return l.exited }

// Exit waits for the worker's end and returns the exit code that its process would have had.
func (l *life) Exit() (code int, err error) {
	<-l.exited
	return l.code, l.err
}

// Close ends the worker, if it has not ended, and the connection to it.
func (l *life) Close() {
	l.stop()
	_ = l.conn.Close() // an error says that it is closed
	<-l.exited
}
