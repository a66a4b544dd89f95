package repl_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/repl"
	"github.com/drover-jobs/drover/console/internal/screen"
)

func answer(change func(s *apiv1.StatusResponse)) *apiv1.StatusResponse {
	s := &apiv1.StatusResponse{
		Manager: &apiv1.Manager{Name: "dev", Pid: 7, State: "running"},
		Queues:  []*apiv1.Queue{{Name: "q", State: "ok", Dead: -1}, {Name: "r", State: "ok"}},
		Plugins: []*apiv1.Plugin{{Name: "p"}},
	}
	if change != nil {
		change(s)
	}
	return s
}

// The prompt has the manager's name, and a mark whenever something needs a person.
func TestPromptText(t *testing.T) {
	t.Parallel()
	gone := errors.New("refused")
	for name, c := range map[string]struct {
		before repl.State
		answer *apiv1.StatusResponse
		err    error
		want   string
	}{
		"not asked":     {repl.State{}, nil, context.DeadlineExceeded, "drover> "},
		"sound":         {repl.State{}, answer(nil), nil, "dev> "},
		"none":          {repl.State{}, nil, gone, "no manager!> "},
		"gone":          {repl.StateOf(repl.State{}, answer(nil), nil), nil, gone, "dev!> "},
		"slow":          {repl.StateOf(repl.State{}, answer(nil), nil), nil, context.DeadlineExceeded, "dev> "},
		"broker":        {repl.State{}, answer(func(s *apiv1.StatusResponse) { s.Manager.BrokerError = "refused" }), nil, "dev!> "},
		"circuit":       {repl.State{}, answer(func(s *apiv1.StatusResponse) { s.Queues[0].State = "circuit-open" }), nil, "dev!> "},
		"paused":        {repl.State{}, answer(func(s *apiv1.StatusResponse) { s.Queues[0].State = "paused" }), nil, "dev> "},
		"dead letters":  {repl.State{}, answer(func(s *apiv1.StatusResponse) { s.Queues[1].Dead = 2 }), nil, "dev!> "},
		"warning":       {repl.State{}, answer(func(s *apiv1.StatusResponse) { s.Manager.Warnings = []string{"x"} }), nil, "dev!> "},
		"plugin":        {repl.State{}, answer(func(s *apiv1.StatusResponse) { s.Plugins[0].Error = "no such file" }), nil, "dev!> "},
		"refused":       {repl.State{}, answer(func(s *apiv1.StatusResponse) { s.Plugins[0].Refused = "it does not start" }), nil, "dev!> "},
		"hostile, long": {repl.State{}, answer(func(s *apiv1.StatusResponse) { s.Manager.Name = "\x1b[2J" + strings.Repeat("日", 40) }), nil, `\x1b[2J` + strings.Repeat("日", 8) + "…> "},
	} {
		if got := repl.StateOf(c.before, c.answer, c.err).Prompt(screen.Style{}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Each change of what is wrong is told once, in words.
func TestNews(t *testing.T) {
	t.Parallel()
	state := func(change func(s *apiv1.StatusResponse)) repl.State {
		return repl.StateOf(repl.State{}, answer(change), nil)
	}
	fine := state(nil)
	none := repl.StateOf(repl.State{}, nil, errors.New("refused"))
	gone := repl.StateOf(fine, nil, errors.New("refused"))
	broken := state(func(s *apiv1.StatusResponse) { s.Manager.BrokerError = "no\x1broute" })
	open := state(func(s *apiv1.StatusResponse) { s.Queues[0].State, s.Queues[0].Reason = "circuit-open", "it ended" })
	restarted := state(func(s *apiv1.StatusResponse) { s.Manager.Pid = 8 })
	for name, c := range map[string]struct {
		before, now repl.State
		want        string
	}{
		"found at the start": {repl.State{}, fine, ""}, "none at the start": {repl.State{}, none, "no manager answers at /s"}, "still none": {none, none, ""},
		"gone": {fine, gone, "no manager answers at /s"}, "back": {gone, restarted, "the manager dev answers, pid 8"}, "restarted": {fine, restarted, "was restarted: its pid is 8"},
		"nothing": {fine, fine, ""}, "broker": {fine, broken, `the broker does not answer: no\x1broute`}, "broker back": {broken, fine, "the broker answers again"}, "still broken": {broken, broken, ""},
		"circuit": {fine, open, "q: its workers cannot start: it ended"}, "closed": {open, fine, "q: its workers start again"},
	} {
		got := strings.Join(repl.News(c.before, c.now, "/s"), "|")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) || strings.Contains(got, "|") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A Tab adds what all offers have in common, and a space only behind a word that is finished.
func TestAddition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		last, offers, want string
		several            bool
	}{
		{"sta", "status", "tus ", false}, {"s", "status stacks", "ta", true}, {"sta", "status stacks", "", true}, {"status", "status", " ", false}, {"x", "", "", false}, {"x", "status", "", false},
		{"mis", "misbehave:", "behave:", false}, {"q.s", "q.slots=", "lots=", false}, {"", "日本 日光", "日", true}, {"wait", "wait waitall", "", true},
	} {
		got, several := repl.Addition(c.last, strings.Fields(c.offers))
		if got != c.want || several != c.several {
			t.Errorf("%q of %q: %q, %v", c.last, c.offers, got, several)
		}
	}
}

// The offers above the prompt fit the terminal, whatever its size, and say when some are left out.
func TestColumns(t *testing.T) {
	t.Parallel()
	offers := []string{"q.slots=", "q.日本語=", "q.a=", "q.a_rather_long_name_of_a_setting=", "q.b="}
	for width := 2; width < 90; width++ {
		for _, l := range repl.Columns(offers, "q.", width, 10) {
			if screen.Width(l) > width || strings.HasPrefix(l, "q.") {
				t.Errorf("%d columns: %q", width, l)
			}
		}
	}
	if got := strings.Join(repl.Columns(offers, "q.", 20, 2), "|"); got != "slots=|..." {
		t.Errorf("got %q", got)
	}
	if got := strings.Join(repl.Columns([]string{"status", "stacks"}, "sta", 80, 10), "|"); got != "status  stacks" {
		t.Errorf("got %q", got)
	}
}

// The history lies where the user's state does, and nowhere when the user has no such place.
func TestHistoryFile(t *testing.T) {
	t.Parallel()
	for home, c := range map[string][2]string{"/home/ada": {"", "/home/ada/.local/state/drover/history"}, "": {"/state", "/state/drover/history"}, "relative": {"relative", ""}} {
		got := repl.HistoryFile(func(name string) string {
			if name == "HOME" {
				return home
			}
			return c[0]
		})
		if got != c[1] {
			t.Errorf("%q, %q: %q", home, c[0], got)
		}
	}
}
