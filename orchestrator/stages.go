package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// stages are the parts of a manager that run, in the order in which they were started. They are stopped in the opposite one.
type stages struct {
	running []stage
}

type stage struct {
	name string
	stop func() error
}

// start runs a part in a goroutine of its own until the stop.
func (s *stages) start(name string, run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	s.onStop(name, func() error {
		cancel()
		return <-ended
	})
}

// drop forgets the part that was started last: its end has been told already.
func (s *stages) drop() { s.running = s.running[:len(s.running)-1] }

// onStop adds something to be done at the stop.
func (s *stages) onStop(name string, stop func() error) {
	s.running = append(s.running, stage{name: name, stop: stop})
}

// stop stops everything, the last started first, and returns what went wrong.
func (s *stages) stop() error {
	var problems []error
	for _, st := range slices.Backward(s.running) {
		if err := st.stop(); err != nil {
			problems = append(problems, fmt.Errorf("stop the %s: %w", st.name, err))
		}
	}
	s.running = nil
	return errors.Join(problems...)
}
