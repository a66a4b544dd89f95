package reaper

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// Argument is the first argument of a program that is to be the reaper of a directory, which is the second one.
const Argument = "reap-workers"

// farewell is what a manager writes to the lifeline when it knows that its workers are gone, and what they left: looking through all
// of /proc once more would only hold up its end.
const farewell = "all gone"

// toldFor is how long a reaper tries to say what it did: whoever reads the manager's output may read no more.
const toldFor = time.Second

// Reap is the whole life of the reaper's process: it waits until lifeline ends, which means that the manager is gone, then, unless the
// manager said that nothing is left, kills what is left of the manager's workers, removes the directory and says what it did, if there was anything to do. It returns the exit
// code. Signals that end a manager do not end its reaper.
func Reap(arguments []string, lifeline io.Reader, output io.Writer) int {
	if len(arguments) != 1 || !filepath.IsAbs(arguments[0]) {
		_, _ = fmt.Fprintln(output, "droverd: the manager starts its reaper itself: run droverd without arguments")
		return 2
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGUSR1, syscall.SIGUSR2)
	dir := arguments[0]
	rename()
	said, _ := io.ReadAll(lifeline) // an error is an end as well
	killed, clean := 0, true
	if string(said) != farewell {
		killed, clean = Sweep(dir)
	}
	err := os.RemoveAll(dir)
	if killed == 0 && clean && err == nil {
		return 0
	}
	told := make(chan struct{})
	go func() {
		defer close(told)
		_, _ = fmt.Fprintf(output, "droverd: the manager is gone; processes of its workers that outlived it and were killed: %d\n", killed)
		if !clean {
			_, _ = fmt.Fprintf(output, "droverd: some processes of its workers do not die; look for %s in /proc/*/environ\n", dir)
		}
		if err != nil {
			_, _ = fmt.Fprintln(output, "droverd: the directory of its workers' sockets is still there:", err)
		}
	}()
	select {
	case <-told:
	case <-time.After(toldFor):
	}
	if !clean || err != nil {
		return 1
	}
	return 0
}

// rename gives the process a name of its own in lists of processes; an error costs only that.
func rename() { _ = os.WriteFile("/proc/self/comm", []byte("drover-reaper"), 0o600) }
