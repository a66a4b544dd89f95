package pull

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/fetch"
	"github.com/drover-jobs/drover/protocol/fault"
)

// fullStore is a store whose disk is full.
type fullStore struct{ findErr error }

func (s fullStore) Find(context.Context, feed.Ref) (feed.Feed, error) { return feed.Feed{}, s.findErr }

func (fullStore) Save(context.Context, *feed.Pull, feed.Policy) (feed.Saved, error) {
	return feed.Saved{}, errors.New("the disk is full")
}

func (fullStore) Icon(context.Context, int64) (feed.Icon, error) {
	return feed.Icon{}, feed.ErrNotFound
}

func (fullStore) SaveIcon(context.Context, int64, feed.Icon) error {
	return errors.New("the disk is full")
}

// A store that does not do its work is a fault that the queue may try again, also when the pull itself had failed.
func TestStoreUnavailable(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte("<rss><channel><title>T</title></channel></rss>"))
	}))
	defer site.Close()
	client, err := fetch.New(fetch.Config{AllowNetworks: []string{"127.0.0.0/8"}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for name, c := range map[string]struct {
		path string
		find error
	}{"find": {"/", errors.New("the database is locked")}, "save": {"/", feed.ErrNotFound}, "save a failure": {"/bad", feed.ErrNotFound}} {
		p := &puller{client: client, store: fullStore{findErr: c.find}, policy: feed.DefaultPolicy()}
		_, err := p.pull(t.Context(), Payload{URL: site.URL + c.path})
		var f *fault.Fault
		if !errors.As(err, &f) || f.Kind != fault.Unavailable || f.Permanent {
			t.Errorf("%s: %v, want a fault that may be tried again", name, err)
		}
	}
}
