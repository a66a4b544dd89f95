package reaper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// How long a reaper gets to end when it is told to, and the pauses between the starts of one that cannot be started.
const (
	endFor     = sweepFor + 5*time.Second
	firstPause = 100 * time.Millisecond
	maxPause   = 10 * time.Second
)

// Keeper keeps a reaper alive as long as the manager runs.
type Keeper struct {
	dir     string
	program []string
	log     *slog.Logger
	tried   chan struct{} // closed when a reaper is there, or could not be started
	once    sync.Once
	pid     atomic.Int64

	dismissed atomic.Bool
}

// NewKeeper returns a keeper of the reaper for a directory with an absolute path. The program, with Argument and the directory behind it,
// must call Reap.
func NewKeeper(dir string, program []string, log *slog.Logger) *Keeper {
	return &Keeper{dir: dir, program: program, log: log, tried: make(chan struct{})}
}

// Tried is closed when a reaper is there, or was tried to be started in vain: Run goes on trying.
func (k *Keeper) Tried() <-chan struct{} { return k.tried }

// PID is the number of the reaper's process; 0 while there is none.
func (k *Keeper) PID() int { return int(k.pid.Load()) }

// Dismiss says that nothing of the workers is left: at the end of Run the reaper goes without looking for it in all of /proc.
func (k *Keeper) Dismiss() { k.dismissed.Store(true) }

// Run keeps a reaper alive until ctx ends, and then ends it, by which time no worker should be left. It returns when the reaper is gone.
func (k *Keeper) Run(ctx context.Context) error {
	pause := firstPause
	for {
		began := time.Now()
		err := k.keepOne(ctx)
		if ctx.Err() != nil {
			return err
		}
		if time.Since(began) > maxPause {
			pause = firstPause
		}
		k.log.Warn("the process that kills workers should the manager die has ended; starting another", "error", err, "in", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, maxPause)
	}
}

// keepOne runs one reaper until it or ctx ends.
func (k *Keeper) keepOne(ctx context.Context) error {
	defer k.once.Do(func() { close(k.tried) })
	if len(k.program) == 0 {
		return errors.New("no program was given for it")
	}
	reader, writer, err := os.Pipe() // closed on exec, so no worker holds the writer
	if err != nil {
		return fmt.Errorf("open its lifeline: %w", err)
	}
	defer func() { _ = writer.Close() }()
	arguments := append(append([]string(nil), k.program[1:]...), Argument, k.dir)
	cmd := exec.Command(k.program[0], arguments...) //nolint:gosec // ourselves; it must outlive every context
	cmd.Dir, cmd.Env = "/", []string{}
	cmd.Stdin, cmd.Stderr = reader, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what is sent to the manager's group or terminal is not for it
	err = cmd.Start()
	_ = reader.Close()
	if err != nil {
		return fmt.Errorf("start it: %w", err)
	}
	k.pid.Store(int64(cmd.Process.Pid))
	k.once.Do(func() { close(k.tried) })
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer k.pid.Store(0)
	select {
	case err := <-ended:
		return fmt.Errorf("it ended: %w", orDone(err))
	case <-ctx.Done():
	}
	if k.dismissed.Load() {
		_, _ = writer.WriteString(farewell) // an error says that the reaper has ended
	}
	_ = writer.Close()
	late := time.NewTimer(endFor)
	defer late.Stop()
	select {
	case err := <-ended:
		return err
	case <-late.C:
		_ = cmd.Process.Kill()
		return errors.Join(fmt.Errorf("the reaper did not end within %s and was killed", endFor), <-ended)
	}
}

// errEndedEarly says that a reaper ended well, but with its manager alive.
var errEndedEarly = errors.New("exit code 0, with its manager alive")

func orDone(err error) error {
	if err == nil {
		return errEndedEarly
	}
	return err
}
