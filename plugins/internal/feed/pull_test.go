package feed_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/plugins/internal/feed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// A penalty begins at half an hour, doubles up to a day, is never shorter than the server's wish, and may be flat.
func TestPenalty(t *testing.T) {
	t.Parallel()
	policy := feed.DefaultPolicy()
	flat := feed.Policy{FirstPenalty: time.Hour, MaxPenalty: time.Hour}
	for _, c := range []struct {
		policy   feed.Policy
		failures int
		wish     time.Duration
		want     time.Duration
	}{
		{policy, 1, 0, 30 * time.Minute}, {policy, 2, 0, time.Hour}, {policy, 3, 0, 2 * time.Hour}, {policy, 6, 0, 16 * time.Hour},
		{policy, 7, 0, 24 * time.Hour}, {policy, 1 << 30, 0, 24 * time.Hour}, {policy, 1, 50 * time.Hour, 50 * time.Hour},
		{policy, 0, 0, 30 * time.Minute}, {flat, 1, 0, time.Hour}, {flat, 9, 0, time.Hour},
	} {
		if got := c.policy.Penalty(c.failures, c.wish); got != c.want {
			t.Errorf("after %d failures with a wish of %v: %v, want %v", c.failures, c.wish, got, c.want)
		}
	}
}

// Failures never stop a feed for good, a success clears them, and only a 410 takes a feed out, until it answers again.
func TestFailuresAndRecovery(t *testing.T) {
	t.Parallel()
	policy := feed.DefaultPolicy()
	f := feed.Feed{URL: "http://a/", State: feed.Active}
	at := start
	for n := 1; n <= 100; n++ {
		at = at.Add(time.Hour)
		f.Apply(&feed.Pull{At: at, Answer: feed.Failed, ErrorKind: "unreachable"}, policy)
		if f.State != feed.Active || f.Failures != n || !f.NextFetch.After(at) || f.NextFetch.Sub(at) > policy.MaxPenalty {
			t.Fatalf("after %d failures: %+v", n, f)
		}
	}
	f.Apply(&feed.Pull{At: at.Add(1), Answer: feed.GoneAnswer}, policy)
	if f.State != feed.Gone || !f.NextFetch.IsZero() {
		t.Errorf("after a 410: %+v", f)
	}
	f.Apply(&feed.Pull{At: at.Add(2), Answer: feed.Read, Document: &feed.Document{Title: "T"}}, policy)
	if f.State != feed.Active || f.Failures != 0 || f.ErrorKind != "" || f.NextFetch.IsZero() || f.Title != "T" {
		t.Errorf("after a success: %+v", f)
	}
}

// The newest validators are kept after 200 and 304, and a 304 without any leaves the old ones.
func TestValidators(t *testing.T) {
	t.Parallel()
	f := feed.Feed{}
	for i, c := range []struct {
		pull feed.Pull
		want string
	}{
		{feed.Pull{Answer: feed.Read, ETag: "1", LastModified: "a"}, "1a"},
		{feed.Pull{Answer: feed.SameBody, ETag: "2", LastModified: "a"}, "2a"},
		{feed.Pull{Answer: feed.NotModified, ETag: `W/"3"`}, `W/"3"a`},
		{feed.Pull{Answer: feed.NotModified}, `W/"3"a`},
		{feed.Pull{Answer: feed.Failed, ETag: "4"}, `W/"3"a`},
		{feed.Pull{Answer: feed.Read}, ""},
	} {
		c.pull.At = start.Add(time.Duration(i))
		f.Apply(&c.pull, feed.DefaultPolicy())
		if got := f.ETag + f.LastModified; got != c.want {
			t.Errorf("after pull %d: %q, want %q", i, got, c.want)
		}
	}
}

// A feed moves only when permanent redirects have led to the same place for days without a break.
func TestMoving(t *testing.T) {
	t.Parallel()
	f := feed.Feed{URL: "http://a/"}
	day := 24 * time.Hour
	for _, c := range []struct {
		after   time.Duration
		movedTo string
		want    string
	}{
		{0, "http://b/", ""}, {2 * day, "http://b/", ""}, {3*day - 1, "http://c/", ""}, {4 * day, "http://c/", ""},
		{5 * day, "", ""}, {9 * day, "http://c/", ""}, {12 * day, "http://c/", "http://c/"},
	} {
		got := f.Apply(&feed.Pull{At: start.Add(c.after), Answer: feed.NotModified, MovedTo: c.movedTo}, feed.DefaultPolicy())
		if got != c.want {
			t.Errorf("after %v: moves to %q, want %q", c.after, got, c.want)
		}
	}
}

// A pull that was overtaken changes nothing.
func TestStale(t *testing.T) {
	t.Parallel()
	f := feed.Feed{CheckedAt: start, ETag: "new"}
	before := f
	f.Apply(&feed.Pull{At: start.Add(-1), Answer: feed.Read, ETag: "old"}, feed.DefaultPolicy())
	if f != before {
		t.Errorf("a stale pull changed the feed: %+v", f)
	}
}

// A missing or future date becomes the time of first sight.
func TestEffectiveDate(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]time.Time{{{}, start}, {start.Add(time.Hour), start}, {start.Add(-time.Hour), start.Add(-time.Hour)}} {
		if got := feed.EffectiveDate(c[0], start); !got.Equal(c[1]) {
			t.Errorf("%v gives %v, want %v", c[0], got, c[1])
		}
	}
}
