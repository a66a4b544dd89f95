package discover

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/protocol/fault"
)

// kept is what lies in the cache: a result or a fault.
type kept struct {
	Result *Result      `json:"result,omitempty"`
	Fault  *fault.Fault `json:"fault,omitempty"`
}

func (k *kept) err() error {
	if k.Fault != nil {
		return k.Fault
	}
	return nil
}

// keyOf names a question; with and without a scheme are two.
func keyOf(starts []*url.URL) string {
	key := starts[0].String()
	if len(starts) > 1 {
		key += " or http"
	}
	return key
}

// recall returns what was found before. A cache that does not work is one that has nothing.
func (f *finder) recall(ctx context.Context, starts []*url.URL) (*kept, bool) {
	if hasSecret(starts) {
		return nil, false
	}
	value, ok, err := f.cache.Get(ctx, keyOf(starts))
	if err != nil {
		sdk.Logger(ctx).WarnContext(ctx, "the cache does not answer; looking again", "error", err)
	}
	if !ok {
		return nil, false
	}
	var k kept
	if err := json.Unmarshal(value, &k); err != nil || (k.Result == nil) == (k.Fault == nil) {
		return nil, false // of an older version
	}
	if k.Result != nil {
		k.Result.From = fromCache
	}
	return &k, true
}

// remember keeps what came of a search; ttl 0 keeps nothing.
func (f *finder) remember(ctx context.Context, starts []*url.URL, result *Result, err error, ttl time.Duration) {
	if ttl <= 0 || hasSecret(starts) {
		return
	}
	value, encodeErr := json.Marshal(kept{Result: result, Fault: fault.From(err)})
	if encodeErr == nil {
		encodeErr = f.cache.Put(ctx, keyOf(starts), value, ttl)
	}
	if encodeErr != nil {
		sdk.Logger(ctx).WarnContext(ctx, "the answer is not kept", "error", encodeErr)
	}
}
