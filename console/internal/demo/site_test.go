package demo

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// serveSite serves a site until the test ends.
func serveSite(t *testing.T) *site {
	t.Helper()
	s, listener, err := openSite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.serve(listener) }()
	t.Cleanup(func() {
		s.close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s
}

func get(t *testing.T, s *site, path, known string) (status int, contentType, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url(path), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("If-None-Match", known)
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request) // no redirect is followed
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("Content-Type"), string(text)
}

// The site serves what the demonstration says that it serves.
func TestSite(t *testing.T) {
	t.Parallel()
	s := serveSite(t)
	for path, want := range map[string]struct {
		status   int
		kind     string
		contains string
	}{
		"/rss.xml": {200, "application/rss+xml", "<rss"}, "/atom.xml": {200, "application/atom+xml", "<feed"}, "/feed.json": {200, "application/feed+json", "jsonfeed.org"},
		"/charset.xml": {200, "windows-1251", "Grüße"}, "/old-place.xml": {301, "text/html", "/new-place.xml"}, "/etag.xml": {200, "application/rss+xml", "ETag"},
		"/broken.xml": {200, "application/rss+xml", "entry 3"}, pathNotFeed: {200, "text/html", "Log in"}, "/nothing": {404, "text/plain", ""},
	} {
		status, kind, body := get(t, s, path, "")
		if status != want.status || !strings.Contains(kind, want.kind) || !strings.Contains(body, want.contains) {
			t.Errorf("%s: %d %s %q", path, status, kind, body)
		}
	}
	if status, _, body := get(t, s, "/etag.xml", `"demo-1"`); status != http.StatusNotModified || body != "" {
		t.Errorf("a known feed: %d %q", status, body)
	}
	if asked, unchanged := s.counts(); asked != 10 || unchanged != 1 {
		t.Errorf("%d requests and %d of 304, want 10 and 1", asked, unchanged)
	}
	if strings.Contains(cutRSS(), "</rss>") || strings.Count(cutRSS(), "</item>") != 2 {
		t.Errorf("the broken feed is not cut in its third entry: %s", cutRSS())
	}
}

// The demonstration is no proof if it accepts what it should not.
func TestChecks(t *testing.T) {
	t.Parallel()
	good := expectation{entries: 2, title: "A", warns: true}
	sound := pulled{Status: "new", NewEntries: 2, Title: "A", Warnings: []string{"x"}}
	bad := expectation{fault: fault.WrongContent}
	done := &task.Task{State: task.Completed}
	dead := func(k fault.Kind, message string) *task.Task {
		return &task.Task{State: task.Dead, Fault: fault.New(k, "%s", message)}
	}
	change := func(change func(*pulled)) pulled {
		r := sound
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		err  error
		good bool
	}{
		"sound":            {checkFirst(good, done, sound), true},
		"not completed":    {checkFirst(good, dead(fault.Failed, "x"), sound), false},
		"status":           {checkFirst(good, done, change(func(r *pulled) { r.Status = "updated" })), false},
		"entries":          {checkFirst(good, done, change(func(r *pulled) { r.NewEntries = 1 })), false},
		"title":            {checkFirst(good, done, change(func(r *pulled) { r.Title = "Ð" })), false},
		"warnings":         {checkFirst(good, done, change(func(r *pulled) { r.Warnings = nil })), false},
		"fault":            {checkFirst(bad, dead(fault.WrongContent, "x"), pulled{}), true},
		"other fault":      {checkFirst(bad, dead(fault.Failed, "x"), pulled{}), false},
		"silent fault":     {checkFirst(bad, dead(fault.WrongContent, " "), pulled{}), false},
		"no fault":         {checkFirst(bad, done, pulled{}), false},
		"again":            {checkAgain(good, done, pulled{Status: "unchanged"}), true},
		"again, new":       {checkAgain(good, done, sound), false},
		"again, failed":    {checkAgain(good, dead(fault.Failed, "x"), pulled{Status: "unchanged"}), false},
		"again, one more ": {checkAgain(good, done, pulled{Status: "unchanged", NewEntries: 1}), false},
	} {
		if (c.err == nil) != c.good {
			t.Errorf("%s: %v", name, c.err)
		}
	}
}
