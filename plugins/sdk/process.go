package sdk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/drover-jobs/drover/protocol"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// main is the life of the process; it returns the exit code.
func (p *Program) main(arguments []string) int {
	if code, done := p.explain(arguments, os.Getenv(protocol.CookieKey) == protocol.CookieValue, os.Stdout, os.Stderr); done {
		return code
	}
	streams := divert()
	defer streams.keep()
	if err := watchLifeline(os.Getenv(protocol.EnvLifeline)); err != nil {
		return streams.fail(err)
	}
	s := newService(p, defaultYields)
	heedSignals(s)
	served := s.serve(streams)
	code, err := s.end(endBound)
	if !served {
		err = errors.Join(err, errors.New("the worker could not listen: see the lines above, and make sure that its socket directory exists"))
	}
	if err != nil {
		code = max(code, streams.fail(err))
	}
	return code
}

// serve runs go-plugin's server until the manager, or the worker, ends it. It returns false when it could not begin.
func (s *service) serve(streams *streams) bool {
	served := false
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: protocol.CookieKey, MagicCookieValue: protocol.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{protocol.Version: {protocol.PluginName: &glue{service: s}}},
		Logger:           hclog.New(&hclog.LoggerOptions{Name: s.program.worker.Name, Level: hclog.Error, Output: streams.err}),
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			served = true
			server := s.server(append(options, grpc.ChainStreamInterceptor(streams.restoreOnStream), grpc.ChainUnaryInterceptor(streams.restoreOnCall)))
			go func() {
				<-s.over
				sayGoodbye(server)
			}()
			return server
		},
	})
	return served
}

// glue registers the service with go-plugin. The manager has the other half.
type glue struct {
	plugin.NetRPCUnsupportedPlugin
	service *service
}

var _ plugin.GRPCPlugin = (*glue)(nil)

func (g *glue) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	workerv1.RegisterWorkerServiceServer(server, g.service)
	return nil
}

func (g *glue) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("a worker program does not call workers")
}

// heedSignals drains on SIGTERM and ignores SIGINT: Ctrl-C on a terminal reaches every process of the group, and the
// manager decides what becomes of its workers. The goroutine ends with the process.
func heedSignals(s *service) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for received := range signals {
			if received == syscall.SIGTERM {
				s.drain()
			}
		}
	}()
}

// watchLifeline exits the process when the manager is gone, however it went: the pipe whose number is given ends then.
func watchLifeline(number string) error {
	if number == "" {
		return nil
	}
	pipe, err := openLifeline(number)
	if err != nil {
		return fmt.Errorf("watch the lifeline %s=%q: %w", protocol.EnvLifeline, number, err)
	}
	go func() {
		buffer := make([]byte, 64)
		for {
			if _, err := pipe.Read(buffer); err != nil {
				os.Exit(exitError) //nolint:forbidigo // nobody is left to finish anything for
			}
		}
	}()
	return nil
}
