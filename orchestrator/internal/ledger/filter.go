package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/task"
)

// maxMatch bounds the text that is looked for, in bytes.
const maxMatch = 1 << 10

// Filter chooses among dead letters. The zero Filter leaves all.
type Filter struct {
	// Reason is one of task.Reasons; empty for all.
	Reason string
	// DiedBefore and DiedSince bound when they died, to the second; zero for no bound.
	DiedBefore, DiedSince time.Time
	// Match is contained in the message of the last failure, in upper or lower case; empty for all.
	Match string
}

func (f Filter) empty() bool { return f == Filter{} }

// validate says what cannot be asked for; it is an *InvalidError.
func (f Filter) validate() error {
	known := task.Reasons()
	switch {
	case f.Reason != "" && !slices.Contains(known, f.Reason):
		hint := ""
		if near := settings.Nearest(f.Reason, known); near != "" {
			hint = fmt.Sprintf("; did you mean %q?", near)
		}
		return invalid("reason: nothing dies for %.60q%s (there are %s)", f.Reason, hint, strings.Join(known, ", "))
	case len(f.Match) > maxMatch:
		return invalid("match: %d bytes are more than the %d that are looked for", len(f.Match), maxMatch)
	case !f.DiedBefore.IsZero() && !f.DiedSince.Before(f.DiedBefore):
		return invalid("died_since: it must lie before died_before, or no dead letter fits both")
	}
	return nil
}

// fits reports whether a dead letter is chosen.
func (f Filter) fits(t *task.Task) bool {
	message := ""
	if t.Fault != nil {
		message = t.Fault.Message
	}
	return (f.Reason == "" || slices.Contains(t.DiedFor(), f.Reason)) &&
		(f.DiedBefore.IsZero() || t.Ended.Before(f.DiedBefore)) && !t.Ended.Before(f.DiedSince) &&
		(f.Match == "" || strings.Contains(strings.ToLower(message), strings.ToLower(f.Match)))
}
