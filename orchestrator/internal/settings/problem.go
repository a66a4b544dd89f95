package settings

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a set of values, for a person to read and for the configuration to place.
type Problem struct {
	// Queue is empty for a setting of the manager, and where the caller knows which queue it asked about.
	Queue string
	// Name is the setting, as it was written; empty when the queue itself is the problem.
	Name string
	// Others are further settings that have a part in it.
	Others []string
	// Value is the text that was refused.
	Value string
	// Reason says what is wrong, and what may have been meant.
	Reason string
	// Allowed says what would do.
	Allowed string
}

// String puts the problem in one line.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.Queue)
	if p.Queue != "" && p.Name != "" {
		b.WriteString(".")
	}
	b.WriteString(p.Name)
	b.WriteString(": ")
	if p.Value != "" {
		fmt.Fprintf(&b, "%q ", p.Value)
	}
	b.WriteString(p.Reason)
	if p.Allowed != "" {
		b.WriteString("; allowed: " + p.Allowed)
	}
	return b.String()
}

// InvalidError is what a refused set of values comes back with: all problems, not only the first.
type InvalidError struct {
	Problems []Problem
}

// Error has one line for each problem.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// asError keeps a nil out of the interface.
func asError(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &InvalidError{Problems: problems}
}
