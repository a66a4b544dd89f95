package discover

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/fetch"
	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/protocol/fault"

	"github.com/drover-jobs/drover/plugins/discovery/internal/address"
	"github.com/drover-jobs/drover/plugins/discovery/internal/cache"
)

// finder does the tasks of one process.
type finder struct {
	client *fetch.Client
	gate   chan struct{}
	cache  cache.Cache
	store  knownFeeds // nil when nothing is looked up
	keep   time.Duration
	budget time.Duration
	close  func() error
}

// find does one task. Its error is a permanent *fault.Fault, or wraps the cause that ended ctx.
func (f *finder) find(ctx context.Context, in Payload) (*Result, error) {
	starts, err := address.Input(in.URL)
	if err != nil {
		return nil, err
	}
	if !in.Fresh {
		if known, ok := f.known(ctx, starts); ok {
			return known, nil
		}
		if kept, ok := f.recall(ctx, starts); ok {
			return kept.Result, kept.err()
		}
	}
	limited, cancel := context.WithTimeoutCause(ctx, f.budget, errBudget)
	defer cancel()
	s := newSearch(f.client, f.gate, starts)
	result, err := s.run(limited)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // the task was ended; the site is not to blame
	}
	if err != nil {
		err = permanent(err)
	}
	f.remember(ctx, starts, result, err, s.holds(err, f.keep))
	if err != nil {
		return nil, err
	}
	sdk.Logger(ctx).InfoContext(ctx, "discovered", "site", fetch.Redact(result.Site), "feeds", len(result.Feeds), "requests", len(result.Tried))
	return result, nil
}

var errBudget = errors.New("the time for the task ran out (option budget)")

// permanent makes the fault of a search: a person waits for it, and asks again if that makes sense.
func permanent(err error) error {
	var f *fault.Fault
	if !errors.As(err, &f) {
		f = fault.New(fault.Unreachable, "%v", err)
	}
	return f.AsPermanent()
}

// How long an answer that may soon be another one holds. It keeps those who press a button again from asking the site again.
const (
	keepFailure = time.Minute
	keepBlocked = 15 * time.Minute
)

// holds says how long what came of the search may be told again.
func (s *search) holds(err error, keep time.Duration) time.Duration {
	var f *fault.Fault
	switch blocked := s.asker.blocked(s.starts[0].Host); {
	case errors.As(err, &f) && (f.Kind == fault.Refused || f.Kind == fault.InvalidPayload):
		return 0 // costs nothing to say again
	case err != nil && f != nil && f.RetryAfter != nil:
		return min(max(*f.RetryAfter, keepFailure), keep)
	case blocked != "":
		return min(keepBlocked, keep)
	case err != nil || s.partial:
		return min(keepFailure, keep)
	}
	return keep
}

// failed is true for an answer whose body is not what was asked for.
func failed(status int) bool {
	return status < http.StatusOK || status >= http.StatusMultipleChoices
}

// hasSecret is true for an address with a password, which no cache should hold.
func hasSecret(starts []*url.URL) bool { return starts[0].User != nil }
