package child_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/exec/internal/child"
)

// launcher runs a launcher for the test.
func launcher(t *testing.T) *child.Launcher {
	t.Helper()
	l := child.NewLauncher()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return l
}

func shell(script string, stderr io.Writer) child.Spec {
	return child.Spec{Command: []string{"/bin/sh", "-c", script}, Env: os.Environ(), Stderr: stderr}
}

// finish reads a child's output to its end and waits for it.
func finish(t *testing.T, c *child.Child) string {
	t.Helper()
	_ = c.Stdin.Close()
	text, err := io.ReadAll(c.Stdout)
	if err != nil {
		t.Errorf("read the child's output: %v", err)
	}
	<-c.Done()
	_ = c.Stdout.Close()
	return string(text)
}

type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// gone waits until a process has ended.
func gone(t *testing.T, pid int) {
	t.Helper()
	tick, late := time.NewTicker(5*time.Millisecond), time.NewTimer(20*time.Second)
	defer tick.Stop()
	defer late.Stop()
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("process %d does not end", pid)
		}
	}
}

// A child's streams, its end and its last words are its own, and it stays in the process group of whoever started it.
func TestChild(t *testing.T) {
	t.Parallel()
	l, stderr := launcher(t), &buffer{}
	c, err := l.Start(shell(`cut -d' ' -f5 /proc/self/stat; i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo line $i >&2; done; printf end >&2; exit 3`, stderr))
	if err != nil {
		t.Fatal(err)
	}
	group := strings.TrimSpace(finish(t, c))
	if want := strconv.Itoa(syscall.Getpgrp()); group != want {
		t.Errorf("the child is in the group %s, not in %s", group, want)
	}
	if c.ExitCode() != 3 || c.End() != "ended with exit code 3" {
		t.Errorf("it %s", c.End())
	}
	lines := c.LastLines()
	if len(lines) != 20 || !slices.Equal(lines[18:], []string{"line 30", "end"}) {
		t.Errorf("last lines: %q", lines)
	}
	if text := stderr.text.String(); !strings.HasPrefix(text, "line 1\n") || !strings.HasSuffix(text, "line 30\nend\n") {
		t.Errorf("standard error: %q", text)
	}
}

// Output of any size to standard error, with and without line ends, never holds a child up, and little of it is kept.
func TestChildFloods(t *testing.T) {
	t.Parallel()
	c, err := launcher(t).Start(shell(`head -c 3000000 /dev/zero >&2; yes | head -c 3000000 >&2`, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	finish(t, c)
	kept := 0
	for _, line := range c.LastLines() {
		kept += len(line)
	}
	if c.ExitCode() != 0 || kept > 4<<10 {
		t.Errorf("it %s and %d bytes are kept", c.End(), kept)
	}
}

// What a child leaves is killed, also when it has a session of its own and its parents are gone; other children live on.
func TestChildLeavesNothing(t *testing.T) {
	t.Parallel()
	l := launcher(t)
	other, err := l.Start(shell(`read -r line`, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Start(shell(`(setsid sleep 600 & echo $!) ; (sleep 600 & echo $!)`, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	numbers := strings.Fields(finish(t, c)) // its output has an end only because they are killed
	if len(numbers) != 2 {
		t.Fatalf("got %q", numbers)
	}
	for _, number := range numbers {
		pid, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		gone(t, pid)
	}
	select {
	case <-other.Done():
		t.Error("another child was ended")
	default:
	}
	finish(t, other)
}

// A frozen child is killed.
func TestChildFrozen(t *testing.T) {
	t.Parallel()
	c, err := launcher(t).Start(shell(`kill -STOP $$`, io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	c.Terminate()
	c.Kill()
	finish(t, c)
	if c.ExitCode() != -1 || c.End() != "was ended by the signal killed" && c.End() != "was ended by the signal terminated" {
		t.Errorf("it %s", c.End())
	}
}

// What cannot be started says so, and nothing is started after the launcher's end.
func TestStartFails(t *testing.T) {
	t.Parallel()
	l := child.NewLauncher()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.Run(ctx)
	}()
	if _, err := l.Start(child.Spec{Command: []string{"/nowhere/worker", "x"}, Stderr: io.Discard}); err == nil || !strings.Contains(err.Error(), "start /nowhere/worker x") {
		t.Errorf("got %v", err)
	}
	cancel()
	<-done
	if _, err := l.Start(shell(`true`, io.Discard)); err == nil || !strings.Contains(err.Error(), "the worker is stopping") {
		t.Errorf("got %v", err)
	}
}

// parent is a worker with one child, which it names.
func parent() {
	l := child.NewLauncher()
	go l.Run(context.Background())
	c, err := l.Start(child.Spec{Command: []string{"/bin/sh", "-c", "trap '' TERM HUP; while :; do read -r x; done"}, Env: os.Environ(), Stderr: os.Stderr})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.PID())
	select {}
}

// A child ends with its worker, however that goes.
func TestChildDiesWithItsWorker(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	worker := exec.Command(self)
	worker.Env = append(os.Environ(), envRole+"=parent")
	out, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	text, err := bufio.NewReader(out).ReadString('\n')
	_ = worker.Process.Kill()
	_ = worker.Wait()
	pid, wrong := strconv.Atoi(strings.TrimSpace(text))
	if wrong != nil {
		t.Fatalf("the worker said %q, %v", text, err)
	}
	gone(t, pid)
}
