package discover_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/discovery/internal/discover"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol/fault"
)

// answer is what the awkward web says at one address. The body is text; %s in it and in the headers is the site's own address.
type answer struct {
	status  int
	headers map[string]string
	body    string
}

// site is a web site on loopback that counts what it is asked.
type site struct {
	*httptest.Server
	mu    sync.Mutex
	asked []string
}

// serve starts a site with these answers; everything else is a plain 404.
func serve(t testing.TB, answers map[string]answer) *site {
	t.Helper()
	s := &site{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.URL.RequestURI())
		s.mu.Unlock()
		a, ok := answers[r.URL.RequestURI()]
		if !ok {
			a, ok = answers["*"]
		}
		if !ok {
			http.NotFound(w, r)
			return
		}
		fill := func(text string) string { return strings.ReplaceAll(text, "%s", s.URL) }
		w.Header().Set("Content-Type", "text/html")
		for name, value := range a.headers {
			w.Header().Set(name, fill(value))
		}
		if a.status != 0 {
			w.WriteHeader(a.status)
		}
		_, _ = w.Write([]byte(fill(a.body)))
	}))
	t.Cleanup(s.Close)
	return s
}

// requests is what was asked since the last call.
func (s *site) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.asked
	s.asked = nil
	return out
}

// host is the address without its scheme.
func (s *site) host() string { return strings.TrimPrefix(s.URL, "http://") }

// page is a good answer with HTML.
func page(body string) answer { return answer{body: "<!doctype html><title>Home</title>" + body} }

// link is a link element as it should be.
func link(href string) string {
	return `<link rel="alternate" type="application/rss+xml" href="` + href + `">`
}

// rss is a feed of posts with these numbers, of the last days.
func rss(title string, posts ...int) answer {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0"?><rss version="2.0"><channel><title>%s</title><link>%%s/</link><description>About %s</description>`, title, title)
	for i, n := range posts {
		at := time.Now().Add(-time.Duration(i+1) * 24 * time.Hour).UTC().Format(time.RFC1123Z)
		fmt.Fprintf(&b, "<item><title>%s %d</title><link>%%s/%s/%d</link><pubDate>%s</pubDate></item>", title, n, title, n, at)
	}
	return answer{headers: map[string]string{"Content-Type": "application/rss+xml"}, body: b.String() + "</channel></rss>"}
}

// atom is the same in Atom.
func atom(title string, posts ...int) answer {
	var b strings.Builder
	fmt.Fprintf(&b, `<feed xmlns="http://www.w3.org/2005/Atom"><title>%s</title><id>%%s/</id>`, title)
	for i, n := range posts {
		at := time.Now().Add(-time.Duration(i+1) * 24 * time.Hour).UTC().Format(time.RFC3339)
		fmt.Fprintf(&b, `<entry><id>tag:%d</id><title>%s %d</title><link href="%%s/%s/%d"/><updated>%s</updated></entry>`, n, title, n, title, n, at)
	}
	return answer{headers: map[string]string{"Content-Type": "application/atom+xml"}, body: b.String() + "</feed>"}
}

// jsonFeed is the same as a JSON Feed.
func jsonFeed(title string, posts ...int) answer {
	var items []string
	for _, n := range posts {
		items = append(items, fmt.Sprintf(`{"id":"%d","title":"%s %d","url":"%%s/%s/%d","content_text":"x"}`, n, title, n, title, n))
	}
	return answer{body: `{"version":"https://jsonfeed.org/version/1.1","title":"` + title + `","items":[` + strings.Join(items, ",") + `]}`}
}

// worker is a worker under test that may reach 127.0.0.1 and nothing else that is not public.
type worker struct {
	t testing.TB
	*sdktest.Worker
}

func start(t testing.TB, extra map[string]any) worker {
	t.Helper()
	options := map[string]any{"store": "off", "cache": "dir:" + filepath.Join(t.TempDir(), "cache"), "allow_networks": []string{"127.0.0.1/32"}}
	for name, value := range extra {
		options[name] = value
	}
	return worker{t: t, Worker: sdktest.Start(t, discover.Program(), sdktest.Options(t, options))}
}

func (w worker) run(payload any) (discover.Result, *fault.Fault) {
	w.t.Helper()
	var out discover.Result
	raw, err := w.Run(w.t.Context(), payload)
	if err != nil {
		var f *fault.Fault
		if !errors.As(err, &f) {
			w.t.Fatalf("%v is not a fault", err)
		}
		return out, f
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		w.t.Fatal(err)
	}
	return out, nil
}

// find looks at an address and expects a result.
func (w worker) find(address string) discover.Result {
	w.t.Helper()
	out, f := w.run(discover.Payload{URL: address})
	if f != nil {
		w.t.Fatalf("%s: %v", address, f)
	}
	return out
}

// feeds are the paths of the feeds of a result, in its order.
func feeds(s *site, r discover.Result) string {
	var paths []string
	for _, f := range r.Feeds {
		paths = append(paths, strings.TrimPrefix(f.URL, s.URL))
	}
	return strings.Join(paths, " ")
}
