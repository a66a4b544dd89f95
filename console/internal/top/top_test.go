package top_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/console/internal/top"
)

func start() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) }

// busy is a manager with some queues and many workers.
func busy(completed uint64) *apiv1.StatusResponse {
	s := &apiv1.StatusResponse{Manager: &apiv1.Manager{Name: "dev\x1b[2J", Pid: 7, State: "running", StartedMs: start().Add(-time.Hour).UnixMilli()}}
	for i, name := range []string{"images", "feed-pull", "日本語のキュー"} {
		s.Queues = append(s.Queues, &apiv1.Queue{
			Name: name, State: []string{"paused", "ok", "circuit-open"}[i], Waiting: int64(10 * i), Running: int64(i), Completed: completed * uint64(i+1),
			Failed: uint64(5 - i), Dead: int64(i), Workers: 2, MaxWorkers: 4,
			RunP50Us: uint64(i) * 340, RunP99Us: uint64(i) * 61_000,
		})
	}
	for i := range 30 {
		s.Workers = append(s.Workers, &apiv1.Worker{
			Id: uint64(i + 1), Queue: "feed-pull", Pid: int32(4000 + i), State: "busy", StartedMs: start().UnixMilli(), Tasks: uint64(100 - i), Running: 1, Slots: 4,
			RssBytes: int64(i+1) << 20, MemoryMaxBytes: 31 << 20, Frozen: i == 3,
		})
	}
	return s
}

// On every terminal, whatever its size, the view has as many lines as there are rows, none is too wide, nothing hostile gets
// through, and the selection and a question can be seen.
func TestViewFits(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{"", "\tjjjjjjjjjjjjjjjjjjjj", "\tK", "h", "s", "\tkkkss", "K"} {
		m := &top.Model{}
		m.Heard(busy(0), nil, start())
		m.Press(keys)
		for columns := 1; columns < 120; columns += 7 {
			for rows := 2; rows < 50; rows += 3 {
				lines := m.View(columns, rows, screen.Style{})
				if len(lines) != rows {
					t.Fatalf("%d lines in %d rows", len(lines), rows)
				}
				for _, l := range lines {
					if screen.Width(l) > columns || strings.ContainsRune(l, '\x1b') {
						t.Errorf("%q on %d columns: %q", keys, columns, l)
					}
				}
				selected := slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, ">") })
				if columns > 40 && rows > 3 && keys != "h" && !selected {
					t.Errorf("%q, %dx%d: no selection in\n%s", keys, columns, rows, strings.Join(lines, "\n"))
				}
			}
		}
	}
}

// The screen of 80 columns and 24 rows has what it should have.
func TestView(t *testing.T) {
	t.Parallel()
	m := &top.Model{}
	m.Heard(busy(0), nil, start())
	m.Heard(busy(20), nil, start().Add(2*time.Second))
	got := strings.Join(m.View(80, 24, screen.Style{}), "\n")
	for _, want := range []string{
		`dev\x1b[2J running  up 1h00m  30 workers, 465.0 MiB`, "QUEUE", ">  feed-pull", "20.0", "P99", "122 ms", "circuit-open", "frozen", "q quit",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if wide := strings.Join(m.View(120, 24, screen.Style{}), "\n"); !strings.Contains(wide, "0.34 ms   61 ms") || !strings.Contains(wide, "-       -") {
		t.Errorf("no run times in\n%s", wide)
	}
	m.Press("\tss" + strings.Repeat("k", 30)) // by memory: the largest first
	if got := strings.Join(m.View(80, 24, screen.Style{}), "\n"); !strings.Contains(got, "[#########-] 30.0 MiB") {
		t.Errorf("no bar in\n%s", got)
	}
	m.Heard(nil, errors.New("refused"), start().Add(4*time.Second))
	if got := m.View(80, 24, screen.Style{}); !strings.HasPrefix(got[0], "the manager does not answer: refused") || !strings.Contains(strings.Join(got, "\n"), "feed-pull") {
		t.Errorf("without a manager:\n%s", strings.Join(got, "\n"))
	}
	if got := m.View(80, 24, screen.Style{Colour: true})[0]; !strings.Contains(got, "\x1b[31m") {
		t.Errorf("no colour in %q", got)
	}
}

// However narrow the terminal is, what went wrong is there, as three numbers or as their sum, and so is the key that says more.
func TestNothingBadIsLeftOut(t *testing.T) {
	t.Parallel()
	m := &top.Model{}
	s := busy(0)
	s.Queues[1].Failed, s.Queues[1].Killed, s.Queues[1].Dead, s.Queues[1].Held = 4000, 500, 61, 777
	m.Heard(s, nil, start())
	for columns := 36; columns < 140; columns++ {
		lines := m.View(columns, 24, screen.Style{})
		each := strings.Contains(lines[1], "FAILED") && strings.Contains(lines[1], "KILLED") && strings.Contains(lines[1], "DEAD")
		if sum := strings.Contains(lines[1], "BAD") && strings.Contains(lines[2], "4561"); each == sum {
			t.Errorf("on %d columns:\n%s", columns, strings.Join(lines[:3], "\n"))
		}
		if columns >= 60 && (!strings.Contains(lines[1], "HELD") || !strings.Contains(lines[2], "777")) {
			t.Errorf("no HELD on %d columns:\n%s", columns, strings.Join(lines[:3], "\n"))
		}
		if !strings.HasPrefix(lines[23], "h help") {
			t.Errorf("the footer on %d columns is %q", columns, lines[23])
		}
	}
	m.Press("r")
	s.Queues[0].Dead, s.Queues[0].Failed, s.Queues[0].Killed = -1, 1, 1
	m.Heard(s, nil, start())
	if got := strings.Join(m.View(60, 24, screen.Style{}), "\n"); !strings.Contains(got, " 2? ") {
		t.Errorf("a number that is not known counts as one:\n%s", got)
	}
}

// Rates are of the last seconds of one process; another process counts anew, and a count that is not known has no rate.
func TestRates(t *testing.T) {
	t.Parallel()
	m := &top.Model{}
	has := func(text string) bool {
		return strings.Contains(strings.Join(m.View(100, 24, screen.Style{}), "\n"), text)
	}
	for i := range 20 { // 10 a second, then 100
		done := uint64(10 * i)
		if i > 10 {
			done = uint64(100 + 100*(i-10))
		}
		m.Heard(busy(done), nil, start().Add(time.Duration(i)*time.Second))
	}
	if !has("100.0") || !has("200.0") {
		t.Error("the rate is not that of the last seconds")
	}
	other := busy(5)
	other.Manager.Pid = 8
	m.Heard(other, nil, start().Add(20*time.Second))
	if has("100.0") || !has("  -  ") {
		t.Error("the counts of two processes are mixed")
	}
}

// A key asks the manager for what it says, for what is selected; a kill only after a yes.
func TestKeys(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		"p": "pause feed-pull0", "jp": "resume images0", "jjp": "resume 日本語のキュー0", "jjjjkkkkp": "pause feed-pull0", "\x1b[Bp": "resume images0", "\x1bOB\x1bOAp": "pause feed-pull0",
		"r": "restart feed-pull0", "\tr": "restart 1", "\tjjr": "restart 3", "\tp": "pause feed-pull0", "\tjKy": "kill 2", "\tjKn": "", "\tjK\x1b": "", "\tjKKy": "", "Ky": "", "\tKyy": "kill 1",
		"sp": "resume 日本語のキュー0", "\tssr": "restart 1", "hp": "", "hhp": "pause feed-pull0", "\x1b[1;5Cp": "pause feed-pull0", "\x1b[15~p": "pause feed-pull0", "\x1b": "", "\x1b[": "",
	} {
		m := &top.Model{}
		s := busy(0)
		m.Heard(s, nil, start())
		if strings.HasPrefix(keys, "s") {
			m.Press("s")
			m.Press("kkk")
			keys = keys[1:]
		}
		if got := strings.Join(m.Press(keys), ","); got != want {
			t.Errorf("%q: %q, want %q", keys, got, want)
		}
	}
	empty := &top.Model{}
	if got := empty.Press("prKjk\tprKjks"); got != nil {
		t.Errorf("without an answer: %q", got)
	}
	empty.Heard(&apiv1.StatusResponse{}, nil, start())
	if got := empty.Press("prKjk\tprKjks"); got != nil {
		t.Errorf("without queues: %q", got)
	}
}

// Whatever was shown before, the screen shows the lines that are painted, and what has not changed is not written again.
func TestPainter(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	paint := top.NewPainter(&out)
	screenful := func(lines ...string) string {
		out.Reset()
		if err := paint(lines); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := screenful("a", "", "c"); got != "\x1b[2J\x1b[1;1Ha\x1b[K\x1b[3;1Hc\x1b[K" {
		t.Errorf("first: %q", got)
	}
	if got := screenful("a", "", "c"); got != "" {
		t.Errorf("nothing new: %q", got)
	}
	if got := screenful("a", "b", ""); got != "\x1b[2;1Hb\x1b[K\x1b[3;1H\x1b[K" {
		t.Errorf("changed: %q", got)
	}
	if got := screenful("a"); got != "\x1b[2J\x1b[1;1Ha\x1b[K" {
		t.Errorf("another size: %q", got)
	}
}

// seat is a terminal on which a test types.
type seat struct {
	keys    *io.PipeReader
	mu      sync.Mutex
	out     bytes.Buffer
	raw     int
	stopped int
	write   func(text string) // hears each write
}

func (s *seat) Write(p []byte) (int, error) {
	s.mu.Lock()
	s.out.Write(p)
	hear := s.write
	s.mu.Unlock()
	if hear != nil {
		hear(string(p))
	}
	return len(p), nil
}

func (s *seat) Size() (columns, rows int) { return 80, 24 }

func (s *seat) Raw() (func(), error) {
	s.raw++
	return func() { s.raw-- }, nil
}

func (s *seat) Borrowed(ctx context.Context) io.Reader {
	context.AfterFunc(ctx, func() { _ = s.keys.CloseWithError(ctx.Err()) }) // never fails
	return s.keys
}

func (s *seat) Suspend() { s.stopped++ }

func (s *seat) Resized(context.Context) <-chan os.Signal { return nil }

// fake is a manager that remembers what it was asked.
type fake struct {
	mu    sync.Mutex
	asked []string
	panic bool
}

func (f *fake) Status(context.Context) (*apiv1.StatusResponse, error) {
	if f.panic {
		panic("the test's own")
	}
	return busy(0), nil
}

func (f *fake) note(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
	return nil
}

func (f *fake) Pause(_ context.Context, q string) error  { return f.note("pause %s", q) }
func (f *fake) Resume(_ context.Context, q string) error { return f.note("resume %s", q) }
func (f *fake) Restart(_ context.Context, q string, w uint64) error {
	return f.note("restart %s %d", q, w)
}
func (f *fake) Kill(_ context.Context, w uint64) error { return f.note("kill %d", w) }

// On every way out the terminal is as it was: after q, Ctrl-C, the end of the context, the end of the terminal, and a panic.
func TestTerminalIsGivenBack(t *testing.T) {
	t.Parallel()
	for name, out := range map[string]struct {
		keys  string
		panic bool
		end   bool
	}{
		"q": {keys: "q"}, "Ctrl-C": {keys: "\x03"}, "Ctrl-Z, then q": {keys: "\x1aq"}, "context": {end: true}, "hang up": {}, "panic": {panic: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader, writer := io.Pipe()
			s := &seat{keys: reader}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if out.end {
				s.write = func(text string) {
					if strings.Contains(text, "QUEUE") {
						cancel()
					}
				}
			} else if !out.panic {
				go func() {
					_, _ = io.WriteString(writer, out.keys) // cut short when the view has gone
					_ = writer.Close()
				}()
			}
			panicked := func() (r any) {
				defer func() { r = recover() }()
				if err := top.Run(ctx, s, &fake{panic: out.panic}, false, start); err != nil {
					t.Error(err)
				}
				return nil
			}()
			if (panicked != nil) != out.panic || s.raw != 0 || !strings.HasPrefix(s.out.String(), top.Enter) || !strings.HasSuffix(s.out.String(), top.Leave) {
				t.Errorf("panic %v, raw %d, %q", panicked, s.raw, s.out.String())
			}
			if strings.Count(s.out.String(), top.Leave) != strings.Count(s.out.String(), top.Enter) || (s.stopped == 1) != (name == "Ctrl-Z, then q") {
				t.Errorf("suspended %d times, %q", s.stopped, s.out.String())
			}
		})
	}
}

// What a key asks for is asked of the manager, and its end is told.
func TestActions(t *testing.T) {
	t.Parallel()
	reader, writer := io.Pipe()
	s, f := &seat{keys: reader}, &fake{}
	steps := []struct{ see, keys string }{
		{"QUEUE", "p"}, {"feed-pull is paused", "\tjK"}, {"Kill worker 2?", "y"}, {"worker 2 is killed", "r"}, {"worker 2: restarting", "\tjp"}, {"images takes tasks again", "q"},
	}
	var typing sync.WaitGroup
	s.write = func(text string) {
		if len(steps) > 0 && strings.Contains(text, steps[0].see) {
			keys := steps[0].keys
			steps = steps[1:]
			typing.Go(func() { _, _ = io.WriteString(writer, keys) }) // the view is there until the q
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := top.Run(ctx, s, f, true, start); err != nil {
		t.Fatal(err)
	}
	typing.Wait()
	if got := strings.Join(f.asked, ","); got != "pause feed-pull,kill 2,restart  2,resume images" || len(steps) != 0 {
		t.Errorf("asked for %q, left %v", got, steps)
	}
}
