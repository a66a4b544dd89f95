package sdk

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"

	"google.golang.org/grpc"
)

// streams are the process's standard streams around the handshake.
//
// go-plugin writes one line to os.Stdout and then puts pipes of its own in the place of os.Stdout and os.Stderr, which
// block their writers when nobody reads a certain stream of gRPC; and a host that reads the real standard output line by line
// stops at a line of more than 64 KiB. So the real standard output is kept for the handshake alone: file descriptor 1
// becomes another name of standard error, for the author, for what a library prints and for child processes, and with the
// first call of the manager os.Stdout and os.Stderr become what they were.
type streams struct {
	out, err  *os.File // what os.Stdout and os.Stderr were; both lead to standard error
	handshake *os.File // the real standard output, open as long as the process lives
	once      sync.Once
}

// divert prepares the streams for the handshake.
func divert() *streams {
	s := &streams{out: os.Stdout, err: os.Stderr}
	if s.handshake = splitStdout(); s.handshake != nil {
		os.Stdout = s.handshake
	}
	return s
}

// restore undoes what go-plugin did. The first stream or call of the manager comes after it.
func (s *streams) restore() {
	s.once.Do(func() { os.Stdout, os.Stderr = s.out, s.err })
}

func (s *streams) restoreOnStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	s.restore()
	return handler(srv, stream)
}

func (s *streams) restoreOnCall(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	s.restore()
	return handler(ctx, request)
}

// fail tells the operator why the process cannot go on and returns the exit code.
func (s *streams) fail(err error) int {
	_, _ = fmt.Fprintln(s.err, err) // the last line of a process; there is nobody to tell when it fails
	return exitError
}

// keep holds the real standard output open: its end says to some hosts that the process has ended.
func (s *streams) keep() { runtime.KeepAlive(s.handshake) }
