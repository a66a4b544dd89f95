package main_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/testenv"
)

// window is a console in a window of tmux, which shows what a person would see rather than what was written.
type window struct {
	t      *testing.T
	socket string // of tmux
}

// open starts the console in a window.
func open(t *testing.T, columns, rows int, drover, socket, state string) *window {
	t.Helper()
	w := &window{t: t, socket: filepath.Join(testenv.ShortDir(t), "tmux")}
	w.tmux("new-session", "-d", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows),
		"-e", "DROVER_SOCKET="+socket, "-e", "XDG_STATE_HOME="+state, "-e", "NO_COLOR=1", "-e", "LC_ALL=C.UTF-8", drover)
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", w.socket, "kill-server").Run() // it has ended with its window, unless the test failed
	})
	return w
}

// tmux tells it something and returns what it says.
func (w *window) tmux(words ...string) string {
	w.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-u", "-f", "/dev/null", "-S", w.socket}, words...)...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("tmux %s: %v: %s", strings.Join(words, " "), err, out)
	}
	return string(out)
}

// keys types the names of keys, and text types text.
func (w *window) keys(names ...string) { w.tmux(append([]string{"send-keys"}, names...)...) }
func (w *window) text(text string)     { w.tmux("send-keys", "-l", text) }

func (w *window) resize(columns, rows int) {
	w.tmux("resize-window", "-x", strconv.Itoa(columns), "-y", strconv.Itoa(rows))
}

// screen is what stands on it, lines that were wrapped as one, without the empty ones at its end.
func (w *window) screen() string { return strings.TrimRight(w.tmux("capture-pane", "-p", "-J"), " \n") }

// see waits until the screen matches.
func (w *window) see(pattern string) {
	w.t.Helper()
	re := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(startTime); time.Now().Before(deadline); {
		if re.MatchString(w.screen()) {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	w.t.Fatalf("never on the screen: %s; it shows:\n%s", pattern, w.screen())
}

// On a real terminal what is typed, completed, wrapped and resized stands where it should, wide characters included; a live view
// takes the whole screen and gives it back; Ctrl-C and Ctrl-D do what they do everywhere.
func TestScreen(t *testing.T) {
	t.Parallel()
	drover, droverd, worker, dir := prompts(t)
	w := open(t, 100, 24, drover, startManager(t, droverd, worker, dir), dir)
	w.see(`(?m)^session>$`)
	w.text("sub")
	w.keys("Tab")
	w.see(`(?m)^session> submit$`)
	w.text(`mis`)
	w.keys("Tab")
	w.text(`do=return value=日本語 --wait`)
	w.see(`(?m)^session> submit misbehave do=return value=日本語 --wait$`)
	w.keys("Enter")
	w.see(`(?s)State +completed.*Result +"日本語".*\nsession>$`)

	w.text("日本語テスト")
	w.keys("BSpace", "BSpace", "BSpace")
	w.see(`\nsession> 日本語$`)
	w.keys("Home")
	w.text("é")
	w.see(`\nsession> é日本語$`)
	w.keys("C-u", "C-k")
	w.see(`\nsession>$`)

	long := "submit misbehave do=return note=" + strings.Repeat("0123456789", 12)
	w.resize(50, 20)
	w.text(long)
	w.see(`(?s)` + squeezed(long))
	w.keys("C-c")
	w.see(`\nsession>$`)
	w.resize(100, 24)

	w.text("top")
	w.keys("Enter")
	w.see(`(?s)^session running.*QUEUE.*misbehave.*q quit`)
	w.resize(40, 10)
	w.see(`(?s)^session running.*misbehave`)
	for _, line := range strings.Split(w.tmux("capture-pane", "-p"), "\n") {
		if n := len([]rune(line)); n > 40 {
			t.Errorf("a line of %d columns on 40: %q", n, line)
		}
	}
	w.resize(100, 24)
	w.keys("q")
	w.see(`\nsession>$`)

	w.text("watch")
	w.keys("Enter")
	w.see(`session> watch`)
	w.keys("C-c")
	w.see(`(?s)watch.*\nsession>$`)
	w.keys("C-d")
	for deadline := time.Now().Add(stopTime); exec.Command("tmux", "-S", w.socket, "has-session").Run() == nil; {
		if time.Now().After(deadline) {
			t.Fatalf("Ctrl-D does not leave; the screen shows:\n%s", w.screen())
		}
		<-time.After(20 * time.Millisecond)
	}
}

// squeezed matches a text whatever line ends a narrow terminal puts into it.
func squeezed(text string) string {
	var pattern strings.Builder
	for _, r := range text {
		pattern.WriteString(regexp.QuoteMeta(string(r)) + `\n?`)
	}
	return pattern.String()
}
