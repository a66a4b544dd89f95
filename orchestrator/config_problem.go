package orchestrator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ConfigProblem is one thing that is wrong with a configuration.
type ConfigProblem struct {
	// File and Line say where it was written; Line is 0 when it was not written in a file.
	File string
	Line int
	// Path is the way to the value: queues.feed-pull.max_workers. It is empty when the file as a whole is meant.
	Path string
	// Value is what was written; empty when nothing was, or when it may be a secret.
	Value string
	// Reason says what is wrong, and what may have been meant.
	Reason string
	// Allowed says what would do.
	Allowed string
}

// maxShownValue keeps an error in one readable line.
const maxShownValue = 80

// String puts the problem in one line: dev.yaml:12: queues.feed-pull.max_workers: "0" is below 1; allowed: ...
func (p ConfigProblem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	if value := p.Value; value != "" {
		if len(value) > maxShownValue {
			value = strings.ToValidUTF8(value[:maxShownValue], "") + "..."
		}
		fmt.Fprintf(&b, "%q ", value)
	}
	b.WriteString(p.Reason)
	if p.Allowed != "" {
		b.WriteString("; allowed: " + p.Allowed)
	}
	return b.String()
}

// ConfigError says everything that is wrong with a configuration, in the order of the file.
type ConfigError struct {
	Problems []ConfigProblem
}

// Error has one line for each problem.
func (e *ConfigError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// configError sorts the problems; none is no error.
func configError(problems []ConfigProblem) error {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b ConfigProblem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path))
	})
	return &ConfigError{Problems: problems}
}

// mark is the line where something was written, from 1.
type mark int

// markOf finds the line of the path, or of the nearest thing around it.
func markOf(marks map[string]mark, path string) mark {
	for {
		if m, ok := marks[path]; ok || path == "" {
			return m
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}
