package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/drover-jobs/drover/plugins/sdk"
)

// obey does what the payload says.
func obey(ctx context.Context, in order) (any, error) {
	pause := time.Duration(in.MS) * time.Millisecond
	switch in.Do {
	case "return":
		return value(in)
	case "fail":
		return nil, complaint(in)
	case "permanent":
		return nil, sdk.Permanent(complaint(in))
	case "retry-after":
		return nil, sdk.RetryAfter(pause, complaint(in))
	case "sleep":
		return sleep(ctx, in, pause)
	case "ignore-cancel":
		time.Sleep(pause)
		return value(in)
	case "spin":
		spin(pause)
		return value(in)
	case "progress":
		return progress(ctx, in, pause)
	case "print":
		return printed(in)
	case "leak":
		return leak(ctx, in, pause)
	case "fork", "setsid":
		return fork(in)
	default:
		return misdeed(in)
	}
}

// misdeed does what does not return as a rule.
func misdeed(in order) (any, error) {
	switch in.Do {
	case "panic":
		panic(in.Note)
	case "exit":
		os.Exit(in.Code) //nolint:forbidigo // as asked
	case "stop":
		if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
			return nil, fmt.Errorf("stop the process: %w", err)
		}
		// Another thread may take the signal, and this one goes on until that is so.
		time.Sleep(100 * time.Millisecond)
		return value(in) // somebody woke it with SIGCONT
	case "close-socket":
		if err := shutSockets(); err != nil {
			return nil, err
		}
		time.Sleep(time.Duration(in.MS) * time.Millisecond)
		return value(in)
	case "garbage":
		return json.RawMessage("{this is \x00 not JSON"), nil
	case "large":
		return string(bytes.Repeat([]byte{'x'}, int(in.Bytes))), nil
	}
	return nil, sdk.Permanent(fmt.Errorf("%q is nothing that this worker can do", in.Do))
}

func value(in order) (any, error) { return in.Value, nil }

func complaint(in order) error {
	if in.Note == "" {
		return errors.New("failed as asked")
	}
	return errors.New(in.Note)
}

func sleep(ctx context.Context, in order, pause time.Duration) (any, error) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return value(in)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// spin keeps one core busy for as long as the clock says.
func spin(pause time.Duration) {
	until := time.Now().Add(pause)
	for {
		if time.Now().After(until) {
			return
		}
	}
}

func progress(ctx context.Context, in order, pause time.Duration) (any, error) {
	const steps = 10
	for i := range uint64(steps) {
		if _, err := sleep(ctx, in, pause/steps); err != nil {
			return nil, err
		}
		sdk.Progress(ctx, i+1, steps, in.Note)
	}
	return value(in)
}

func printed(in order) (any, error) {
	if _, err := os.Stdout.Write(bytes.Repeat([]byte{'x'}, int(in.Bytes))); err != nil {
		return nil, fmt.Errorf("print: %w", err)
	}
	return value(in)
}

// leak touches every page, since memory that was only asked for is not there yet, and keeps it reachable until the end of
// the process by way of a goroutine.
func leak(ctx context.Context, in order, pause time.Duration) (any, error) {
	memory := make([]byte, in.Bytes)
	for i := 0; i < len(memory); i += os.Getpagesize() {
		memory[i] = 1
	}
	never := make(chan struct{})
	go func() {
		<-never
		runtime.KeepAlive(memory)
	}()
	return sleep(ctx, in, pause)
}

// fork leaves a child behind that has the process's standard streams.
func fork(in order) (any, error) {
	child := exec.Command("sleep", strconv.FormatFloat(float64(in.MS)/1000, 'f', 3, 64)) //nolint:gosec // a number
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: in.Do == "setsid"}
	if err := child.Start(); err != nil {
		return nil, fmt.Errorf("start a child: %w", err)
	}
	return json.RawMessage(strconv.Itoa(child.Process.Pid)), nil
}

// shutSockets cuts every connection of the process and makes its listeners deaf.
func shutSockets() error {
	numbers, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("list the open files: %w", err)
	}
	for _, entry := range numbers {
		if fd, err := strconv.Atoi(entry.Name()); err == nil {
			_ = syscall.Shutdown(fd, syscall.SHUT_RDWR) // what is no socket says so, and stays as it is
		}
	}
	return nil
}
