package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	plugin "github.com/hashicorp/go-plugin"

	"github.com/drover-jobs/drover/orchestrator/internal/worker"
	"github.com/drover-jobs/drover/plugins/sdk"
)

// The programs that the test binary can be.
const (
	roleManager = "manager"
	// Workers.
	roleMute         = "mute"          // shakes hands and never answers a call
	roleRefuses      = "refuses"       // Configure returns an error
	roleHangs        = "hangs"         // Configure never returns
	roleDiesInStart  = "dies"          // exits while it is configured
	roleNeverCloses  = "never-closes"  // Close never returns
	roleClosesSlowly = "closes-slowly" // Close takes half a second
	roleCountsSlots  = "slots"         // returns what it was configured with
	roleWrites       = "writes"        // writes a line for each task, and then does as it was told
)

// mute shakes hands and listens, and accepts no connection.
func mute() {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "unix", filepath.Join(os.Getenv(plugin.EnvUnixSocketDir), "mute"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	_, _ = fmt.Fprintf(os.Stdout, "1|1|unix|%s|grpc\n", listener.Addr())
	<-time.After(time.Hour) // not for ever: with nothing else to do the program would be ended as a deadlock
}

// serve is the main function of the workers.
func serve(role string) {
	if role == roleMute {
		mute()
	}
	never := make(chan struct{})
	var config sdk.Config
	sdk.Serve(sdk.Worker{
		Name: "flawed",
		Configure: func(_ context.Context, c sdk.Config) error {
			config = c
			switch role {
			case roleRefuses:
				return fmt.Errorf("the option color is missing in %s: say red or blue", c.Options)
			case roleHangs:
				<-never
			case roleDiesInStart:
				fmt.Fprintln(os.Stderr, "no space left on the disk")
				os.Exit(7)
			}
			return nil
		},
		Close: func() error {
			switch role {
			case roleNeverCloses:
				<-never
			case roleClosesSlowly:
				<-time.After(500 * time.Millisecond)
			}
			return nil
		},
	}, func(ctx context.Context, in struct {
		Say   string `json:"say,omitempty"`
		Color string `json:"color,omitempty"`
		Then  string `json:"then,omitempty"`
	}) (any, error) {
		if role == roleWrites {
			return write(ctx, in.Say, in.Then)
		}
		if in.Say != "" {
			sdk.Logger(ctx).Debug("too fine")
			sdk.Logger(ctx).Warn(in.Say, "color", in.Color)
		}
		return map[string]any{"queue": config.Queue, "slots": config.Slots, "manager": config.Manager}, nil
	})
}

// write writes a line and returns, fails, waits for the end of its time, or ends the process.
func write(ctx context.Context, line, then string) (any, error) {
	fmt.Fprintln(os.Stderr, line)
	switch then {
	case "fail":
		return nil, errors.New("failed as asked")
	case "wait":
		<-ctx.Done()
		return nil, context.Cause(ctx)
	case "exit":
		os.Exit(1)
	}
	return line, nil
}

// manage starts workers of a program, prints their process numbers, and waits for SIGTERM or, as the test wants it, SIGKILL.
// Its arguments are the directory for sockets and the program.
func manage(arguments []string) int {
	launcher, err := worker.NewLauncher(arguments[0], slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- launcher.Run(ctx) }()
	const workers = 3
	for range workers {
		p, err := launcher.Start(ctx, worker.Spec{Plugin: "misbehave", Command: arguments[1:], Slots: 8, StartTimeout: time.Minute}, newRecorder())
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		p.Send(order(`{"do":"sleep","ms":600000}`), noLimits())
		fmt.Fprintln(os.Stdout, p.PID())
	}
	if err := <-ended; !errors.Is(err, nil) {
		return 1
	}
	return 0
}
