// Command drover is the console of a Drover manager: `drover help` says what it can do.
//
// It owns the process's streams, its terminal, its signals and its exit code, and hands them to the package session, which does the
// work. Ctrl-C ends the command at hand; without a prompt a second one ends the process at once.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"os/user"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/drover-jobs/drover/console/internal/command"
	"github.com/drover-jobs/drover/console/internal/session"
	"github.com/drover-jobs/drover/console/internal/terminal"
	"github.com/drover-jobs/drover/protocol/client"
)

// version is set when the program is built: go build -ldflags '-X main.version=...'.
var version string

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal has its usual effect
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	p := session.Process{
		Args: os.Args[1:], In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		Getenv: os.Getenv, Exists: exists, ReadFile: os.ReadFile, Now: time.Now, Zone: time.Local,
		OutWidth: width, ErrTerminal: term.IsTerminal(int(os.Stderr.Fd())), InTerminal: term.IsTerminal(int(os.Stdin.Fd())),
		Interrupts: interrupts, Release: func() { signal.Stop(interrupts) },
		Dial: dial, Machine: command.Machine{Stat: os.Stat, FreeDisk: freeDisk}, Who: who(), Version: versionText(),
	}
	if t := terminal.Open(os.Stdin, os.Stdout); t != nil {
		p.Terminal = t
		return session.Run(ctx, p, prompt(t))
	}
	return session.Run(ctx, p, nil)
}

// who is the name of the person who runs the process.
func who() string {
	u, err := user.Current()
	if err != nil {
		return fmt.Sprintf("user %d", os.Getuid())
	}
	return u.Username
}

func dial(address string) (client.Client, session.Control, error) {
	options, err := session.RemoteOptions(address, os.Getenv, os.ReadFile)
	if err != nil {
		return nil, nil, err
	}
	tasks, err := client.Dial(address, options...)
	if err != nil {
		return nil, nil, err
	}
	control, err := client.Control(address, options...)
	if err != nil {
		return nil, nil, err
	}
	return tasks, control, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// width is the number of columns of standard output now; 0 when it is no terminal.
func width() int {
	columns, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// versionText is the version given at the build, else that of the module.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
