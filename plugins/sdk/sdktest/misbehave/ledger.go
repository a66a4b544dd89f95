package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-jobs/drover/plugins/sdk"
)

// envLedger names the file of the ledger in the environment; without it, nothing is written.
const envLedger = "MISBEHAVE_LEDGER"

// beatEvery is how often a task with a lock key says that it still runs.
const beatEvery = 20 * time.Millisecond

// ledger is a file to which all processes append what they do, so that effects are known whatever the manager says:
//
//	WHAT ID ATTEMPT PID PPID TIME LOCK
//
// WHAT is begin, beat (of a task with a lock, every 20 ms), end (the handler returned a value) or fail (it returned an error).
// TIME is in nanoseconds of the kernel's monotonic clock, which all processes share. LOCK is the quoted lock key, "" for none.
type ledger struct{ path string }

// entry is one run in the ledger.
type entry struct {
	write func(what string) error
	stop  chan struct{}
	beats sync.WaitGroup
	once  sync.Once
}

// begin writes the begin of a run.
func (l ledger) begin(ctx context.Context, lock string) (*entry, error) {
	e := &entry{write: func(string) error { return nil }, stop: make(chan struct{})}
	if l.path == "" {
		return e, nil
	}
	info := sdk.Info(ctx)
	rest := fmt.Sprintf("%s %d %d %d", info.ID, info.Attempt, os.Getpid(), os.Getppid())
	e.write = func(what string) error { return l.append(what, rest, lock) }
	if err := e.write("begin"); err != nil {
		return nil, err
	}
	if lock != "" {
		e.beats.Go(e.beat)
	}
	return e, nil
}

// beat writes that the run goes on until it has ended.
func (e *entry) beat() {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = e.write("beat") // the end is not lost for a lost beat
		case <-e.stop:
			return
		}
	}
}

// hush ends the beats, also of a run that panics.
func (e *entry) hush() {
	e.once.Do(func() { close(e.stop) })
	e.beats.Wait()
}

// end writes how the run ended.
func (e *entry) end(failure error) error {
	e.hush()
	if failure != nil {
		return e.write("fail")
	}
	return e.write("end")
}

// append adds one line; one write of O_APPEND is not torn by other processes.
func (l ledger) append(what, rest, lock string) error {
	file, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("open the ledger: %w", err)
	}
	var now unix.Timespec
	err = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	if err == nil {
		_, err = file.WriteString(what + " " + rest + " " + strconv.FormatInt(now.Nano(), 10) + " " + strconv.Quote(lock) + "\n")
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write the ledger: %w", err)
	}
	return nil
}
