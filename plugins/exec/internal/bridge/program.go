package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/drover-jobs/drover/plugins/exec/internal/child"
	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/protocol/fault"
)

// Program returns the worker. What the children write to their standard error goes to stderr. The first persistent child is
// started when the worker is configured, so that a program that cannot run is found out before any task is spent on it.
func Program(line CommandLine, stderr io.Writer) *sdk.Program {
	var current atomic.Pointer[bridge]
	worker := sdk.Worker{
		Name: line.Name, Version: line.Version, Description: line.Description,
		Slots: line.Slots, LockKey: line.LockKey, Limits: line.Limits, Schema: line.Schema,
		Configure: func(ctx context.Context, c sdk.Config) error {
			b, err := configure(ctx, line, c.Options, stderr)
			if err == nil {
				current.Store(b)
			}
			return err
		},
		Close: func() error {
			if b := current.Swap(nil); b != nil {
				b.close()
			}
			return nil
		},
	}
	return sdk.New(worker, func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
		b := current.Load()
		if b == nil {
			return nil, fault.New(fault.Unavailable, "the worker has no command: it was not configured")
		}
		if b.settings.once {
			return b.runOnce(ctx, payload)
		}
		return b.runPersistent(ctx, payload)
	})
}

// bridge is the command of one process, ready to be run.
type bridge struct {
	kind     string
	settings settings
	spec     child.Spec
	log      *slog.Logger // for what belongs to no task
	launcher *child.Launcher
	stop     context.CancelFunc
	stopped  chan struct{}
	crew     crew
	replace  func(*spare)       // starts a child in the background
	starts   sync.WaitGroup     // what replace has begun
	stopNew  context.CancelFunc // gives those starts up
	runs     atomic.Uint64      // numbers given
}

func configure(ctx context.Context, line CommandLine, options json.RawMessage, stderr io.Writer) (*bridge, error) {
	s, err := parseOptions(line, options)
	if err != nil {
		return nil, err
	}
	path, err := find(s.command[0], s.dir)
	if err != nil {
		return nil, err
	}
	b := &bridge{
		kind: line.Name, settings: s, log: sdk.Logger(ctx), launcher: child.NewLauncher(), stopped: make(chan struct{}),
		spec: child.Spec{Command: append([]string{path}, s.command[1:]...), Dir: s.dir, Env: s.environment(), Stderr: stderr},
	}
	running, stop := context.WithCancel(context.Background())
	b.stop = stop
	starting, stopNew := context.WithCancel(context.Background())
	b.stopNew = stopNew
	b.replace = func(sp *spare) {
		b.starts.Go(func() {
			s, err := b.newSession(starting)
			b.crew.arrived(sp, s, err)
		})
	}
	go func() {
		defer close(b.stopped)
		b.launcher.Run(running)
	}()
	if s.once {
		return b, nil
	}
	first, err := b.startSession(ctx)
	if err != nil {
		b.close()
		return nil, err
	}
	b.crew.give(first)
	return b, nil
}

// close ends the children and the launcher.
func (b *bridge) close() {
	b.stopNew()
	b.starts.Wait()
	b.crew.close()
	b.stop()
	<-b.stopped
}

// name is how the command is called in messages.
func (s *settings) name() string {
	const longest = 200
	name := strings.Join(s.command, " ")
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "") + " ..."
	}
	return name
}

// find returns the path of a command: a bare name is looked for in PATH, anything else from dir on.
func find(command, dir string) (string, error) {
	if !strings.ContainsRune(command, filepath.Separator) {
		path, err := exec.LookPath(command)
		if err != nil {
			return "", fmt.Errorf("the command %q is not in PATH=%s: install it, or name it by its full path", command, os.Getenv("PATH"))
		}
		return filepath.Abs(path)
	}
	path, err := filepath.Abs(command)
	if err == nil && dir != "" && !filepath.IsAbs(command) {
		path, err = filepath.Abs(filepath.Join(dir, command))
	}
	if err != nil {
		return "", fmt.Errorf("find the command %q: %w", command, err)
	}
	if _, err := exec.LookPath(path); err != nil {
		return "", fmt.Errorf("the command cannot be run: %w: correct its path, or make it executable", err)
	}
	return path, nil
}
