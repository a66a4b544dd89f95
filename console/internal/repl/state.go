package repl

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

// State is what the prompt shows of a manager.
type State struct {
	Known   bool // the manager was asked at least once
	There   bool
	Name    string
	PID     int32
	Broker  string            // why the broker does not answer; empty while it does
	Open    map[string]string // queues whose circuit is open, and why
	Dead    int64             // dead letters of all queues
	Plugins int               // that are not sound, or not the newest
	Warned  bool              // the manager has a warning
}

// longestName is how many columns of the prompt a manager's name may take.
const longestName = 24

// StateOf is what a status, or the failure to get one, says. An answer that did not come in time says nothing new.
func StateOf(before State, s *apiv1.StatusResponse, err error) State {
	switch {
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		return before
	case err != nil:
		return State{Known: true, Name: before.Name, PID: before.PID}
	}
	m := s.GetManager()
	now := State{Known: true, There: true, Name: m.GetName(), PID: m.GetPid(), Broker: m.GetBrokerError(), Open: map[string]string{}, Warned: len(m.GetWarnings()) > 0}
	for _, q := range s.GetQueues() {
		if q.GetState() == "circuit-open" {
			now.Open[q.GetName()] = q.GetReason()
		}
		now.Dead += max(0, q.GetDead())
	}
	for _, p := range s.GetPlugins() {
		if p.GetError() != "" || p.GetRefused() != "" {
			now.Plugins++
		}
	}
	return now
}

// Wrong reports whether something needs a person.
func (s State) Wrong() bool {
	return s.Known && (!s.There || s.Broker != "" || len(s.Open) > 0 || s.Dead > 0 || s.Plugins > 0 || s.Warned)
}

// Prompt is the line's beginning: the manager's name, and a mark when something is wrong.
func (s State) Prompt(style screen.Style) string {
	name := screen.Cut(screen.Clean(s.Name), longestName)
	switch {
	case name == "" && s.Known && !s.There:
		name = "no manager"
	case name == "":
		name = "drover"
	}
	if s.Wrong() {
		name += style.Paint(screen.Bad, "!")
	}
	return name + "> "
}

// News is what has changed between two states, in sentences.
func News(before, now State, address string) []string {
	var news []string
	say := func(format string, args ...any) { news = append(news, screen.Clean(fmt.Sprintf(format, args...))) }
	switch {
	case !now.There && (before.There || !before.Known) && now.Known:
		say("no manager answers at %s; commands work again when one does", address)
		return news
	case !now.There:
		return nil
	case before.Known && !before.There:
		say("the manager %s answers, pid %d", now.Name, now.PID)
	case before.There && before.PID != now.PID:
		say("the manager %s was restarted: its pid is %d now", now.Name, now.PID)
	}
	switch {
	case now.Broker != "" && before.Broker == "":
		say("the broker does not answer: %s", now.Broker)
	case now.Broker == "" && before.Broker != "":
		say("the broker answers again")
	}
	for _, name := range slices.Sorted(maps.Keys(now.Open)) {
		if _, was := before.Open[name]; !was {
			say("%s: its workers cannot start: %s", name, now.Open[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before.Open)) {
		if _, is := now.Open[name]; !is {
			say("%s: its workers start again", name)
		}
	}
	return news
}
