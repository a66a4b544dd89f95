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
	began         time.Time
	waited        time.Duration // by somebody for a processor, before it began
	slack         time.Duration // granted when the machine is busy
}

func watchLateness(t *testing.T) *lateness {
	t.Helper()
	l := &lateness{stop: make(chan struct{}), stopped: make(chan struct{}), began: time.Now(), waited: pressure(t)}
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

// grant makes within allow some more when somebody waited for a processor for more than half of the time: then the kernel takes its
// time to collect a process that was killed.
func (l *lateness) grant(slack time.Duration) *lateness {
	l.slack = slack
	return l
}

// within checks that something took no longer than was promised, but for how late the machine was: twice, because a manager and its
// worker both have to run.
func (l *lateness) within(t *testing.T, what string, took, promise time.Duration) {
	t.Helper()
	late := l.end()
	busy := float64(pressure(t)-l.waited) / float64(time.Since(l.began))
	bound := promise + 2*late
	if busy > 0.5 {
		bound += l.slack
	}
	t.Logf("%s: %s of %s (the machine was up to %s late, and busy for %.0f %% of the time)", what, took.Round(time.Millisecond), promise, late.Round(time.Millisecond), 100*busy)
	if took > bound {
		t.Errorf("%s took %s, and the promise is %s; the machine was %s late at most, and busy for %.0f %% of the time", what, took, promise, late, 100*busy)
	}
}

// pressure is for how long somebody on this machine has waited for a processor since its start, by the kernel's pressure stall
// information; 0 where there is none.
func pressure(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return 0
	}
	some, _, _ := strings.Cut(string(text), "\n")
	_, total, _ := strings.Cut(some, "total=")
	microseconds, err := strconv.ParseInt(total, 10, 64)
	if err != nil {
		t.Fatalf("the kernel says %q: %v", some, err)
	}
	return time.Duration(microseconds) * time.Microsecond
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
