package sdk

import (
	"context"
	"errors"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"

	"github.com/drover-jobs/drover/protocol"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

const (
	// goodbye bounds how long a connection may take to end in order.
	goodbye = 2 * time.Second
	// endBound is how long cancelled handlers get when the process is to exit.
	endBound = 2 * time.Second
	// window and buffer are sized for a batch: gRPC's defaults stop a batch of 1 MiB sixteen times.
	window = 4 << 20
	buffer = 64 << 10
)

// ServeOn serves the worker on a listener, without a process around it, and returns the code with which the process would
// have exited. It ends like a worker process does, and when ctx ends: then its runs are cancelled. It is what the tests of a
// worker use, by way of sdktest; each call is a new life.
func (p *Program) ServeOn(ctx context.Context, listener net.Listener) (exitCode int, err error) {
	if p.err != nil {
		return exitError, errors.Join(p.err, listener.Close())
	}
	s := newService(p, defaultYields)
	server := s.server(nil)
	workerv1.RegisterWorkerServiceServer(server, s)
	served := make(chan struct{})
	said := make(chan struct{})
	go func() {
		defer close(said)
		select {
		case <-ctx.Done():
			s.stop()
		case <-s.over:
		case <-served:
			return
		}
		sayGoodbye(server)
	}()
	err = server.Serve(listener)
	close(served)
	<-said
	code, endErr := s.end(endBound)
	return code, errors.Join(err, endErr)
}

// server returns the gRPC server of a worker, with the options that go-plugin asks for.
func (s *service) server(options []grpc.ServerOption) *grpc.Server {
	return grpc.NewServer(append([]grpc.ServerOption{
		grpc.MaxRecvMsgSize(protocol.MaxMessage), grpc.MaxSendMsgSize(protocol.MaxMessage),
		grpc.InitialWindowSize(window), grpc.InitialConnWindowSize(window),
		grpc.WriteBufferSize(buffer), grpc.ReadBufferSize(buffer),
		// A manager may ask often whether a process is still alive.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.StreamInterceptor(s.bystanders),
	}, options...)...)
}

// bystanders ends go-plugin's own streams when the worker is over. They would last as long as the connection, and
// sayGoodbye waits for every stream; what their handlers leave behind ends with the stream itself.
func (s *service) bystanders(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if info.FullMethod == workerv1.WorkerService_Work_FullMethodName {
		return handler(srv, stream)
	}
	ended := make(chan error, 1)
	s.readers.Go(func() { ended <- handler(srv, stream) })
	select {
	case err := <-ended:
		return err
	case <-s.over:
		return nil
	}
}

// sayGoodbye closes the connections once all that was written to them has left, or after a bound.
func sayGoodbye(server *grpc.Server) {
	late := time.AfterFunc(goodbye, server.Stop)
	defer late.Stop()
	server.GracefulStop()
}
