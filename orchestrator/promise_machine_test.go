package orchestrator_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/reaper"
)

// long reports whether the tests of promises run in their long form, which takes ten minutes: DROVER_LONG=1 go test ./orchestrator.
func long() bool { return os.Getenv("DROVER_LONG") != "" }

// lateness measures how late this machine lets a process run that wants to, from now to the end of the test. A promise about a manager
// holds for one that gets the processor: what the machine adds by itself is not the manager's.
type lateness struct {
	stop, stopped chan struct{}
	worst         time.Duration
}

func watchLateness(t *testing.T) *lateness {
	t.Helper()
	l := &lateness{stop: make(chan struct{}), stopped: make(chan struct{})}
	const every = 2 * time.Millisecond
	go func() {
		defer close(l.stopped)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for last := time.Now(); ; {
			select {
			case <-l.stop:
				return
			case <-ticker.C:
			}
			now := time.Now()
			l.worst, last = max(l.worst, now.Sub(last)-every), now
		}
	}()
	t.Cleanup(func() { l.end() })
	return l
}

// end ends the measurement and returns the worst that was seen.
func (l *lateness) end() time.Duration {
	select {
	case <-l.stop:
	default:
		close(l.stop)
	}
	<-l.stopped
	return l.worst
}

// within checks that something took no longer than was promised, but for how late the machine was: twice, because a manager and its
// worker both have to run.
func (l *lateness) within(t *testing.T, what string, took, promise time.Duration) {
	t.Helper()
	late := l.end()
	t.Logf("%s: %s of %s (the machine was up to %s late)", what, took.Round(time.Millisecond), promise, late.Round(time.Millisecond))
	if took > promise+2*late {
		t.Errorf("%s took %s, and the promise is %s; the machine was %s late at most", what, took, promise, late)
	}
}

// alive reports whether anything of a process still runs.
func alive(pid int) bool {
	p, err := reaper.Look(pid)
	return err == nil && !p.Gone()
}

// processorTime is how long a process was at work since its start.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		t.Fatal(err)
	}
	// pid (name) state ...: utime and stime are fields 14 and 15 of proc(5), in hundredths of a second.
	const first, user, system, tick = 3, 14, 15, 10 * time.Millisecond
	fields := strings.Fields(string(data[strings.LastIndexByte(string(data), ')')+1:]))
	total := time.Duration(0)
	for _, field := range []int{user, system} {
		n, err := strconv.Atoi(fields[field-first])
		if err != nil {
			t.Fatal(err)
		}
		total += time.Duration(n) * tick
	}
	return total
}
