package sdk

import (
	"errors"
	"time"

	"github.com/drover-jobs/drover/protocol/fault"
)

// Causes of the end of a handler's context, for context.Cause.
var (
	// ErrTimeout says that the task ran longer than its queue's task_timeout.
	ErrTimeout = errors.New("the task ran longer than it may")
	// ErrCancelled says that somebody asked for the task's end.
	ErrCancelled = errors.New("the task was cancelled")
	// ErrStopped says that the process is about to stop; the task will run again elsewhere.
	ErrStopped = errors.New("the worker is stopping")
)

// Permanent says of err that trying the task again cannot help. It returns nil for nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &marked{err: err, permanent: true}
}

// RetryAfter says of err that the task should be tried again no sooner than after d; 0 asks for at once. The next run begins up
// to a quarter of d later, spread at random so that what failed together does not come back together, and up to two seconds
// more, since the queue's clock has whole seconds. A free worker is taken for granted. It returns nil for nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &marked{err: err, retryAfter: &d}
}

// marked is an error with a wish to the manager. It keeps the chain of the error and turns into a fault on demand.
type marked struct {
	err        error
	permanent  bool
	retryAfter *time.Duration
}

func (m *marked) Error() string { return m.err.Error() }

func (m *marked) Unwrap() error { return m.err }

// As makes errors.As and fault.From see a fault with the wishes of this error and of those inside it.
func (m *marked) As(target any) bool {
	f, ok := target.(**fault.Fault)
	if !ok {
		return false
	}
	c := *fault.From(m.err)
	if m.permanent {
		c.Permanent = true
	}
	if m.retryAfter != nil {
		c.RetryAfter = m.retryAfter
	}
	*f = &c
	return true
}
