package settings

import (
	"fmt"
	"strings"
)

// Scope says whose setting it is.
type Scope string

// The scopes.
const (
	ScopeQueue    Scope = "queue"
	ScopeManager  Scope = "manager"
	ScopeSchedule Scope = "schedule"
)

// Kind says how the value of a setting is written.
type Kind string

// The kinds.
const (
	KindCount    Kind = "count"    // a whole number: 4
	KindDuration Kind = "duration" // 90s, 10m, 1h30m, 7d
	KindBytes    Kind = "bytes"    // 256MiB, 1GB
	KindRate     Kind = "rate"     // 10/s, 600/m, 5/h
	KindChoice   Kind = "choice"   // one of a few words
	KindText     Kind = "text"     // what Form says
)

// Effect says when a changed value takes hold. No setting needs a restart of the manager.
type Effect string

// The effects.
const (
	EffectNow        Effect = "at once"
	EffectNextTask   Effect = "with the next task"
	EffectNextWorker Effect = "with the next worker; those that run keep what they have until they are restarted"
)

// Setting is one row of the table: all that a person may want to know about a setting.
type Setting struct {
	Scope Scope
	// Name is unique within its scope.
	Name string
	Kind Kind
	// Default is the value, in its canonical form, when no layer names the setting.
	Default string
	// Min and Max bound the value, both included, in canonical form; empty for a choice.
	Min, Max string
	// Off says what "off" (or 0) means; empty when the setting cannot be off.
	Off string
	// Choices are the allowed words of a choice.
	Choices []string
	// Form says how a text is written, with an example.
	Form string
	// Takes says when a change takes hold.
	Takes Effect
	// Meaning is one sentence or two for people.
	Meaning string
}

// Allowed says in words which values the setting takes.
func (s Setting) Allowed() string {
	if s.Kind == KindChoice {
		return "one of " + strings.Join(s.Choices, ", ")
	}
	noun, example := s.Kind.words()
	text := fmt.Sprintf("%s from %s to %s%s", noun, s.Min, s.Max, example)
	if s.Kind == KindText {
		text = s.Form
	}
	if s.Off != "" {
		text += fmt.Sprintf(", or off (%s)", s.Off)
	}
	return text
}

func (k Kind) words() (noun, example string) {
	switch k {
	case KindDuration:
		return "a duration", ", such as 90s, 10m or 1h30m"
	case KindBytes:
		return "a size", ", such as 256MiB or 1GB"
	case KindRate:
		return "a rate", ", such as 10/s, 600/m or 5/h"
	default:
		return "a whole number", ""
	}
}
