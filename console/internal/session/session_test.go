package session_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/command"
	"github.com/drover-jobs/drover/console/internal/session"
	"github.com/drover-jobs/drover/protocol/client"
)

// world is what a process finds around itself.
type world struct {
	variables map[string]string
	files     []string
	width     int
	in        string
	dialled   []string
	closed    int
	dialErr   error
	dial      func() (client.Client, session.Control) // nil makes the usual
	out, err  bytes.Buffer
}

// tasks is a client of which only Close is called.
type tasks struct {
	client.Client
	w *world
}

func (t tasks) Close() error {
	t.w.closed++
	return nil
}

type control struct {
	command.Control
	w *world
}

func (c control) Close() error {
	c.w.closed++
	return nil
}

func (c control) Status(context.Context, *apiv1.StatusRequest) (*apiv1.StatusResponse, error) {
	return &apiv1.StatusResponse{Manager: &apiv1.Manager{Name: "dev", State: "running"}}, nil
}

func (w *world) run(words ...string) int {
	return session.Run(context.Background(), session.Process{
		Args: words, In: strings.NewReader(w.in), Out: &w.out, Err: &w.err,
		Getenv:   func(name string) string { return w.variables[name] },
		Exists:   func(path string) bool { return slices.Contains(w.files, path) },
		ReadFile: func(string) ([]byte, error) { return nil, errors.New("no such file") },
		Now:      time.Now, Zone: time.UTC, OutWidth: func() int { return w.width },
		Dial: func(address string) (client.Client, session.Control, error) {
			w.dialled = append(w.dialled, address)
			if w.dialErr != nil {
				return nil, nil, w.dialErr
			}
			if w.dial != nil {
				tasks, control := w.dial()
				return tasks, control, nil
			}
			return tasks{w: w}, control{w: w}, nil
		},
		Version: "v0.1.0",
	}, nil)
}

// The socket is the one asked for, else the variable's, else the first usual place where there is one.
func TestSocket(t *testing.T) {
	t.Parallel()
	const usual, xdg, system = "var/drover.sock", "/run/user/1/drover/drover.sock", "/run/drover/drover.sock"
	all := []string{usual, xdg, system, "/a.sock", "/b.sock"}
	for name, c := range map[string]struct {
		words     []string
		variables map[string]string
		files     []string
		want      string // the address; or, with "!" before it, part of the message
	}{
		"flag":             {[]string{"--socket", "/a.sock"}, map[string]string{"DROVER_SOCKET": "/b.sock"}, all, "unix:/a.sock"},
		"flag, address":    {[]string{"--socket=unix:/a.sock"}, nil, all, "unix:/a.sock"},
		"flag, TCP":        {[]string{"--socket=http://127.0.0.1:9"}, nil, nil, "http://127.0.0.1:9"},
		"variable":         {nil, map[string]string{"DROVER_SOCKET": "/b.sock"}, all, "unix:/b.sock"},
		"working folder":   {nil, map[string]string{"XDG_RUNTIME_DIR": "/run/user/1"}, all, "unix:" + usual},
		"runtime folder":   {nil, map[string]string{"XDG_RUNTIME_DIR": "/run/user/1"}, []string{xdg, system}, "unix:" + xdg},
		"system":           {nil, nil, []string{xdg, system}, "unix:" + system},
		"none":             {nil, map[string]string{"XDG_RUNTIME_DIR": "/run/user/1"}, nil, "!no manager answers at " + usual + ", " + xdg + ", " + system},
		"flag, not there":  {[]string{"--socket", "/gone.sock"}, nil, all, "!no manager answers at /gone.sock"},
		"variable, absent": {nil, map[string]string{"DROVER_SOCKET": "/gone.sock"}, all, "!no manager answers at /gone.sock"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{variables: c.variables, files: c.files}
			code := w.run(append([]string{"status"}, c.words...)...)
			if message, bad := strings.CutPrefix(c.want, "!"); bad {
				if code != 3 || len(w.dialled) != 0 || !strings.Contains(w.err.String(), message) {
					t.Errorf("exit %d, dialled %v, %q; want 3 and %q", code, w.dialled, w.err.String(), message)
				}
				return
			}
			if code != 0 || !slices.Equal(w.dialled, []string{c.want}) || w.closed != 2 {
				t.Errorf("exit %d, dialled %v, closed %d times, %q; want %q", code, w.dialled, w.closed, w.err.String(), c.want)
			}
		})
	}
}

// Help, version and wrong command lines need no manager and look for none.
func TestOffline(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{"help": 0, "version": 0, "status --help": 0, "": 2, "nonsense": 2, "status --x": 2, "--json": 2} {
		w := &world{}
		if code := w.run(strings.Fields(line)...); code != want || len(w.dialled) != 0 {
			t.Errorf("%q: exit %d, want %d; dialled %v", line, code, want, w.dialled)
		}
	}
}

// Without a manager a program reads the reason as JSON.
func TestNoManagerJSON(t *testing.T) {
	t.Parallel()
	w := &world{dialErr: errors.New("bad address"), files: []string{"var/drover.sock"}}
	if code := w.run("status", "--json"); code != 3 || !strings.HasPrefix(w.out.String(), `{"error":{"kind":"no_manager","message":"no manager answers at var/drover.sock (bad address)`) {
		t.Errorf("exit %d, %q", code, w.out.String())
	}
}

// Colours are for terminals that have them and people who want them.
func TestColour(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		width     int
		variables map[string]string
		want      bool
	}{
		"terminal": {80, nil, true}, "no terminal": {0, nil, false}, "NO_COLOR": {80, map[string]string{"NO_COLOR": "1"}, false}, "dumb": {80, map[string]string{"TERM": "dumb"}, false},
	} {
		w := &world{width: c.width, variables: c.variables, files: []string{"var/drover.sock"}}
		w.run("status")
		if got := strings.Contains(w.out.String(), "\x1b["); got != c.want {
			t.Errorf("%s: colour %v, want %v", name, got, c.want)
		}
	}
}

// The commands of a script go over one connection to one manager, with the flags of the start, and the first failure decides.
func TestScripts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		words []string
		in    string
		code  int
		out   string // what the output must have; with "!" before it, what it must not have
	}{
		"-c":           {[]string{"-c", "status; status"}, "", 0, "dev, running"},
		"input":        {nil, "status\nstatus", 0, "dev, running"},
		"flags":        {[]string{"--json", "--socket=/a.sock", "-c", "status;version"}, "", 0, `"name":"dev"`},
		"stops":        {[]string{"-c", "status; task x; version"}, "", 2, "!drover v0.1.0"},
		"goes on":      {[]string{"--keep-going", "-c", "status; task x; version"}, "", 2, "drover v0.1.0"},
		"leaves":       {nil, "status\nstatus; exit\nversion\n", 0, "!drover v0.1.0"},
		"a quote":      {nil, "status\nstatus\ntask '\nversion", 2, "!drover v0.1.0"},
		"its own text": {nil, "status\nstatus\nsubmit q -\n", 2, "!drover v0.1.0"},
		"joined lines": {nil, "sta\\\ntus\nstatus", 0, "dev, running"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &world{files: []string{"var/drover.sock", "/a.sock"}, in: c.in}
			code := w.run(c.words...)
			must, not := strings.CutPrefix(c.out, "!")
			if code != c.code || strings.Contains(w.out.String(), must) == not {
				t.Errorf("exit %d, want %d; %q, %q", code, c.code, w.out.String(), w.err.String())
			}
			if len(w.dialled) != 1 || w.closed != 2 {
				t.Errorf("dialled %v, closed %d times", w.dialled, w.closed)
			}
		})
	}
}

// A session speaks to each manager that is asked for over one connection, and another command's does not end it.
func TestTwoManagers(t *testing.T) {
	t.Parallel()
	w := &world{files: []string{"var/drover.sock", "/a.sock"}}
	if code := w.run("-c", "status; status --socket /a.sock; status; status --socket /a.sock"); code != 0 || !slices.Equal(w.dialled, []string{"unix:var/drover.sock", "unix:/a.sock"}) || w.closed != 4 {
		t.Errorf("exit %d, dialled %v, closed %d times", code, w.dialled, w.closed)
	}
}
