// Droverd is Drover's manager. It holds flags, signals and the exit code; everything else is in package orchestrator.
//
//	droverd [--config FILE] [--check]
//
// Exit codes: 0 stopped and nothing left behind; 1 it failed, or tasks were left behind; 2 the command line or the
// configuration is wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/drover-jobs/drover/configs"
	"github.com/drover-jobs/drover/orchestrator"
	"github.com/drover-jobs/drover/orchestrator/internal/reaper"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

// version is set by the linker.
var version = "unknown"

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == reaper.Argument {
		return reaper.Reap(args[1:], os.Stdin, stderr)
	}
	flags := flag.NewFlagSet("droverd", flag.ContinueOnError)
	flags.SetOutput(stderr)
	path := flags.String("config", "", "configuration `file`; without it, the embedded development configuration is used")
	check := flags.Bool("check", false, "check the configuration and exit")
	showVersion := flags.Bool("version", false, "print the version and exit")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return exitOK
		}
		return exitUsage
	}
	if *showVersion {
		_, _ = fmt.Fprintln(stdout, "droverd", version)
		return exitOK
	}
	if flags.NArg() > 0 {
		_, _ = fmt.Fprintf(stderr, "droverd: unexpected argument %q; see droverd --help\n", flags.Arg(0))
		return exitUsage
	}
	keepFilesFromChildren()
	config, err := load(*path)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "droverd:", err)
		return exitUsage
	}
	if *check {
		_, _ = fmt.Fprintln(stdout, "the configuration is sound")
		return exitOK
	}
	return manage(config, *path, stderr)
}

// keepFilesFromChildren keeps the files that droverd was started with, but for the standard streams, from workers: a shell or a
// supervisor may have left some open. An old kernel that cannot do it is no reason not to run.
func keepFilesFromChildren() { _ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) }

func load(path string) (*orchestrator.Config, error) {
	if path == "" {
		return orchestrator.Parse("embedded dev.yaml", configs.Dev())
	}
	return orchestrator.Load(path)
}

// manage runs the manager until a signal.
//
//	SIGTERM, SIGINT   stop: running tasks get drain_timeout; a second one stops at once
//	SIGHUP            read the configuration again
//	SIGUSR1           write the status to the log
//	SIGUSR2           replace all workers, one by one
func manage(config *orchestrator.Config, path string, stderr io.Writer) int {
	running := &untilClosed{w: stderr}
	log := slog.New(handler(config.Manager.Log, running))
	o := orchestrator.New(config, version, log)
	o.Guard("/proc/self/exe") // also when the file has been replaced since
	o.ReloadFrom(func() (*orchestrator.Config, error) { return load(path) })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	var obeying sync.WaitGroup
	ended := make(chan struct{})
	obeying.Go(func() {
		up, isUp := o.Up(), false
		for {
			select {
			case s := <-signals:
				switch {
				case s != syscall.SIGTERM && s != syscall.SIGINT:
					if isUp {
						obey(ctx, o, s, path, log)
					}
				case ctx.Err() != nil:
					log.Warn("stopping at once", "signal", s.String())
					o.Abort()
				default:
					log.Info("stopping; a second signal stops at once", "signal", s.String())
					cancel()
				}
			case <-up:
				up, isUp = nil, true
				o.Welcome(stderr)
			case <-ended:
				return
			}
		}
	})
	report, err := o.Run(ctx)
	close(ended)
	obeying.Wait()
	if err != nil {
		log.Error("the manager failed", "error", err)
	}
	running.close() // the report is the last line, whatever was left behind on its way
	slog.New(handler(config.Manager.Log, stderr)).Info("stopped", "finished", report.Finished, "returned", report.Returned, "left", report.Left)
	if err != nil || report.Left > 0 {
		return exitFailed
	}
	return exitOK
}

// obey does what a signal other than those of a stop asks for.
func obey(ctx context.Context, o *orchestrator.Orchestrator, s os.Signal, path string, log *slog.Logger) {
	switch s {
	case syscall.SIGHUP:
		config, err := load(path)
		if err == nil {
			err = o.Reload(config)
		}
		if err != nil {
			log.Error("the configuration was not reloaded", "error", err)
		}
	case syscall.SIGUSR1:
		o.LogStatus(ctx)
	case syscall.SIGUSR2:
		o.ReplaceWorkers()
	}
}

// untilClosed passes on what is written until it is closed.
type untilClosed struct {
	mu     sync.Mutex
	w      io.Writer
	closed bool
}

// Write implements io.Writer.
func (u *untilClosed) Write(p []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return len(p), nil
	}
	return u.w.Write(p)
}

func (u *untilClosed) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
}

func handler(config orchestrator.LogConfig, w io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: config.Level}
	if config.JSON {
		return slog.NewJSONHandler(w, options)
	}
	return slog.NewTextHandler(w, options)
}
