package discover_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/plugins/discovery/internal/discover"
	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/feedstore"
	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Every awkward page of the list leads to its feed; the numbers are those of the list of what goes wrong in the real world.
func TestAwkwardPages(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	shell := `<html><head><script src=/app.js></script></head><body><div id=root></div><noscript>Please enable JavaScript.</noscript>`
	for name, c := range map[string]struct {
		at      string
		answers map[string]answer
		want    string
	}{
		"86 ./feed.xml":                   {"/blog/", map[string]answer{"/blog/": page(link("./feed.xml")), "/blog/feed.xml": rss("B", 1)}, "/blog/feed.xml"},
		"87 base ../":                     {"/a/b/", map[string]answer{"/a/b/": page(`<base href="../">` + link("feed.xml")), "/a/feed.xml": rss("B", 1)}, "/a/feed.xml"},
		"87 base absolute":                {"/a/", map[string]answer{"/a/": page(`<base href="%s/c/">` + link("feed.xml")), "/c/feed.xml": rss("B", 1)}, "/c/feed.xml"},
		"88 base and an absolute address": {"/a/", map[string]answer{"/a/": page(`<base href="https://elsewhere.invalid/x/">` + link("%s/feed.xml")), "/feed.xml": rss("B", 1)}, "/feed.xml"},
		"89 unquoted":                     {"/x/page.html", map[string]answer{"/x/page.html": page(`<link rel=alternate type=application/rss+xml href=rss.xml>`), "/x/rss.xml": rss("B", 1)}, "/x/rss.xml"},
		"90 http:/path":                   {"/", map[string]answer{"/": page(link("http:/blog/feed")), "/blog/feed": rss("B", 1)}, "/blog/feed"},
		"91 Link header":                  {"/", map[string]answer{"/": {headers: map[string]string{"Link": `</news>; rel="alternate"; type="application/rss+xml"`}, body: "<title>x</title>"}, "/news": rss("B", 1)}, "/news"},
		"92 anchor by text":               {"/", map[string]answer{"/": page(`<a href="/subscribe">RSS</a>`), "/subscribe": rss("B", 1)}, "/subscribe"},
		"92 anchor by type":               {"/", map[string]answer{"/": page(`<a type="application/rss+xml" href="/q">follow us</a>`), "/q": rss("B", 1)}, "/q"},
		"92 anchor by extension":          {"/", map[string]answer{"/": page(`<a href="/all.atom">everything</a>`), "/all.atom": atom("B", 1)}, "/all.atom"},
		"92 anchor to a page of feeds":    {"/", map[string]answer{"/": page(`<a href="/our-feeds">RSS feeds</a>`), "/our-feeds": page(`<a href="/x1.rss">News</a>`), "/x1.rss": rss("B", 1)}, "/x1.rss"},
		"93 neither rel nor type":         {"/", map[string]answer{"/": page(`<link href="/rss.xml">`), "/rss.xml": rss("B", 1)}, "/rss.xml"},
		"94 two types for one address":    {"/", map[string]answer{"/": page(`<link rel=alternate type=application/rdf+xml href=/n><link rel=alternate type=application/atom+xml href=/n>`), "/n": atom("B", 1)}, "/n"},
		"94 the first alternate is bad":   {"/", map[string]answer{"/": page(`<link rel=alternate type=application/rdf+xml href=/user/1><link rel=alternate type=application/atom+xml href=/user/1.atom>`), "/user/1": {body: "<rdf:x xmlns:rdf='x'/>"}, "/user/1.atom": atom("B", 1)}, "/user/1.atom"},
		"95 comments last": {"/", map[string]answer{
			"/": page(link("/comments/feed") + link("/tag/go/feed") + link("/feed")), "/comments/feed": rss("C", 1), "/tag/go/feed": rss("T", 1), "/feed": rss("B", 1),
		}, "/feed /tag/go/feed /comments/feed"},
		"96 one address twice":        {"/", map[string]answer{"/": page(link("/feed") + link("%s/feed#x") + link("/x/../feed") + link("/feed/")), "/feed": rss("B", 1), "/feed/": rss("B", 1)}, "/feed"},
		"97 a feed":                   {"/f", map[string]answer{"/f": rss("B", 1)}, "/f"},
		"97 a feed sent as HTML":      {"/f", map[string]answer{"/f": {headers: map[string]string{"Content-Type": "text/html"}, body: atom("B", 1).body}}, "/f"},
		"98 shell, usual addresses":   {"/", map[string]answer{"/": {body: shell}, "/atom.xml": atom("B", 1)}, "/atom.xml"},
		"98 shell, manifest":          {"/", map[string]answer{"/": {body: strings.Replace(shell, "<head>", `<head><link rel=manifest href=/m.json>`, 1)}, "/m.json": {body: `{"start_url":"/journal/?pwa"}`}, "/journal/feed.xml": rss("B", 1)}, "/journal/feed.xml"},
		"98 shell, address in script": {"/", map[string]answer{"/": {body: shell + `<script>var f="\/out\/all.rss"</script>`}, "/out/all.rss": rss("B", 1)}, "/out/all.rss"},
		"meta refresh":                {"/", map[string]answer{"/": page(`<meta http-equiv=refresh content="0; url=/en/">`), "/en/": page(link("f.rss")), "/en/f.rss": rss("B", 1)}, "/en/f.rss"},
		"meta refresh in a circle":    {"/", map[string]answer{"/": page(`<meta http-equiv=refresh content="0; url=/b">`), "/b": page(`<meta http-equiv=refresh content="0; url=/">`), "/feed": rss("B", 1)}, "/feed"},
		"usual address in its folder": {"/blog/post.html", map[string]answer{"/blog/post.html": page("x"), "/blog/atom.xml": atom("B", 1)}, "/blog/atom.xml"},
		"generator":                   {"/", map[string]answer{"/": page(`<meta name=generator content="Serendipity 2.5">`), "/feeds/index.rss2": rss("B", 1)}, "/feeds/index.rss2"},
		"another page of the site":    {"/", map[string]answer{"/": page(`<a href="/about">About</a><a href="/journal/">Our journal</a>`), "/journal/": page(link("x")), "/journal/x": rss("B", 1)}, "/journal/x"},
		"only comments are declared":  {"/", map[string]answer{"/": page(link("/comments/feed")), "/comments/feed": rss("C", 1), "/feed": rss("B", 1)}, "/feed /comments/feed"},
		"a page that is gone":         {"/old", map[string]answer{"/old": {status: 404, body: "<title>No such page</title>" + link("/feed")}, "/feed": rss("B", 1)}, "/feed"},
		"a feed with a broken item":   {"/", map[string]answer{"/": page(link("/f")), "/f": {body: "<rss><channel><title>B</title><item><title>1</title></item><item><title>&nbsp;2</titel></item></channel></rss>"}}, "/f"},
		"redirects":                   {"/", map[string]answer{"/": page(link("/old")), "/old": {status: 301, headers: map[string]string{"Location": "/new"}}, "/new": rss("B", 1)}, "/new"},
		"temporary redirects":         {"/", map[string]answer{"/": page(link("/old")), "/old": {status: 302, headers: map[string]string{"Location": "/new"}}, "/new": rss("B", 1)}, "/old"},
		"every address says hello":    {"/", map[string]answer{"*": page("hello")}, ""},
		"every address is the feed":   {"/", map[string]answer{"/": page("hello"), "*": rss("B", 1)}, "/feed"},
		"nothing but dead links":      {"/", map[string]answer{"/": page(link("/dead") + link("mailto:x@example.com") + link("http://"))}, ""},
		"what only looks like one":    {"/", map[string]answer{"/": page(link("/sitemap")), "/sitemap": {body: `<?xml version="1.0"?><urlset><url/></urlset>`}}, ""},
		"a fediverse profile":         {"/@ada", map[string]answer{"/@ada": {body: shell}, "/@ada.rss": rss("B", 1)}, "/@ada.rss"},
	} {
		s := serve(t, c.answers)
		got := w.find(s.URL + c.at)
		if feeds(s, got) != c.want {
			t.Errorf("%s: got %q, want %q (tried %+v, notes %q)", name, feeds(s, got), c.want, got.Tried, got.Notes)
		}
		if isShell := strings.HasPrefix(name, "98"); isShell != strings.Contains(strings.Join(got.Notes, " "), "empty shell") {
			t.Errorf("%s: notes %q", name, got.Notes)
		}
	}
}

// A feed is described by what it says itself, in text; what the page calls it and its icon fill gaps.
func TestWhatIsSaid(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	s := serve(t, map[string]answer{
		"/": {body: `<title>The Site</title><link rel=icon href=/i.png><link rel=alternate type=application/rss+xml title="Declared" href=/f><link rel=alternate type=application/rss+xml title="Named" href=/comments/feed>`},
		"/f": {body: `<rss><channel><title>A &lt;b&gt;bold&lt;/b&gt; &amp;amp; good&lt;script&gt;x()&lt;/script&gt; title</title><description>&lt;p&gt;One&lt;/p&gt;&lt;p&gt;two&lt;/p&gt;</description>` +
			`<item><title>a</title><pubDate>Mon, 01 Jun 2026 10:00:00 GMT</pubDate></item><item><title>b</title><pubDate>Tue, 01 Jan 2999 10:00:00 GMT</pubDate></item></channel></rss>`},
		"/comments/feed": {body: `<rss><channel><image><url>/mine.png</url></image><item><title>x</title></item></channel></rss>`},
	})
	got := w.find(s.URL)
	if len(got.Feeds) != 2 || got.Site != s.URL+"/" || got.Title != "The Site" || got.From != "search" || got.FoundAt.IsZero() {
		t.Fatalf("got %+v", got)
	}
	f, c := got.Feeds[0], got.Feeds[1]
	if f.Title != "A bold & good title" || f.Description != "One two" || f.Entries != 2 || f.Icon != s.URL+"/i.png" || f.Origin != "declared" || !strings.HasPrefix(f.Type, "rss") ||
		f.LastPost == nil || !f.LastPost.Equal(time.Date(2026, 6, 1, 10, 0, 0, 0, time.UTC)) {
		t.Errorf("got %+v", f)
	}
	if c.Title != "Named" || c.Icon != s.URL+"/mine.png" || c.LastPost != nil || c.Score >= f.Score {
		t.Errorf("got %+v", c)
	}
	if slices.Contains(s.requests(), "/i.png") {
		t.Error("an icon was asked for")
	}
}

// RSS, Atom and JSON of the same posts are one feed with its alternates.
func TestTwins(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	s := serve(t, map[string]answer{
		"/":    page(link("/rss") + link("/atom") + link("/json") + link("/other")),
		"/rss": rss("B", 3, 2, 1), "/atom": atom("B", 4, 3, 2, 1), "/json": jsonFeed("B", 3, 2, 1), "/other": rss("O", 3, 2, 1),
	})
	got := w.find(s.URL)
	if feeds(s, got) != "/atom /other" {
		t.Fatalf("got %s", feeds(s, got))
	}
	if alternates := strings.ReplaceAll(strings.Join(got.Feeds[0].Alternates, " "), s.URL, ""); alternates != "/rss /json" && alternates != "/json /rss" {
		t.Errorf("alternates %s", alternates)
	}
}

// An address may lack its scheme, be a feed of its own, and fails with a fault that says what to do.
func TestInputs(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	s := serve(t, map[string]answer{"/f": rss("B", 1), "/": page(link("/f")), "/broken": {body: "<rss><channel><item><title>x"}, "/empty": {}, "/500": {status: 500}, "/404": {status: 404}, "/pdf": {body: "%PDF-1.7 \x00\x01"}})
	for _, input := range []string{s.host() + "/f", s.host(), " feed://" + s.host() + "/f ", "feed:" + s.URL + "/f"} {
		if got := w.find(input); feeds(s, got) != "/f" {
			t.Errorf("%s: got %+v", input, got)
		}
	}
	if got := w.find(s.URL + "/f"); got.Feeds[0].Score != 100 || got.Feeds[0].Origin != "given" || got.Site != s.URL+"/" {
		t.Errorf("a feed: %+v", got)
	}
	bare := serve(t, map[string]answer{"/broken": {body: "<rss><channel><item><title>x"}, "/500": {status: 500}, "/404": {status: 404}})
	for input, want := range map[string]struct {
		kind fault.Kind
		part string
	}{
		bare.URL + "/broken":  {fault.Unreadable, "broken"},
		bare.URL + "/500":     {fault.HTTPStatus, "500"},
		bare.URL + "/404":     {fault.HTTPStatus, "404"},
		"http://127.0.0.1:1/": {fault.Unreachable, "does not answer"},
		"127.0.0.1:1":         {fault.Unreachable, "does not answer"},
		"two words":           {fault.InvalidPayload, "example.com"},
		"ftp://example.com/":  {fault.Refused, "only http and https"},
	} {
		if _, f := w.run(discover.Payload{URL: input}); f == nil || f.Kind != want.kind || !f.Permanent || !strings.Contains(f.Message, want.part) {
			t.Errorf("%s: got %v, want %v with %q", input, f, want.kind, want.part)
		}
	}
}

// A challenge is called by its name, and the host that gave it is not asked again, neither by this task nor by the next; nor is
// one that says too many requests, or forbids again and again (FEED-BUGS 99).
func TestNoStorm(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	for name, c := range map[string]struct {
		answers map[string]answer
		kind    fault.Kind
		part    string
		most    int
	}{
		"403 with the header":    {map[string]answer{"*": {status: 403, headers: map[string]string{"Cf-Mitigated": "challenge"}, body: "<title>Just a moment...</title>"}}, fault.HTTPStatus, "Cloudflare challenge", 1},
		"503 with the page":      {map[string]answer{"*": {status: 503, body: "<title>Just a moment...</title><script src=/cdn-cgi/challenge-platform/x.js></script>"}}, fault.HTTPStatus, "Cloudflare challenge", 1},
		"200 with the page":      {map[string]answer{"*": {body: "<html><title>Just a moment...</title></html>"}}, fault.WrongContent, "Cloudflare challenge", 1},
		"429":                    {map[string]answer{"*": {status: 429, headers: map[string]string{"Retry-After": "120"}}}, fault.HTTPStatus, "429", 1},
		"403 for everything":     {map[string]answer{"*": {status: 403}}, fault.HTTPStatus, "403", 8},
		"503 without a word":     {map[string]answer{"*": {status: 503}}, fault.HTTPStatus, "503", 1},
		"500":                    {map[string]answer{"*": {status: 500}}, fault.HTTPStatus, "500", 1},
		"404 for all but home":   {map[string]answer{"/": page("x")}, fault.None, "", 60},
		"429 once it is guessed": {map[string]answer{"/": page("x"), "*": {status: 429}}, fault.None, "", 8},
	} {
		s := serve(t, c.answers)
		got, f := w.run(discover.Payload{URL: s.URL})
		if c.kind == fault.None {
			if f != nil || len(got.Feeds) != 0 {
				t.Errorf("%s: %+v, %v", name, got, f)
			}
		} else if f == nil || f.Kind != c.kind || !f.Permanent || !strings.Contains(f.Message, c.part) {
			t.Errorf("%s: %v, want %v with %q", name, f, c.kind, c.part)
		}
		if n := len(s.requests()); n > c.most {
			t.Errorf("%s: %d requests, at most %d are kind", name, n, c.most)
		}
		_, again := w.run(discover.Payload{URL: s.URL})
		if (again == nil) != (f == nil) || again != nil && again.Message != f.Message {
			t.Errorf("%s: the second time %v, the first %v", name, again, f)
		}
		if n := len(s.requests()); n != 0 {
			t.Errorf("%s: the second task asked %d times", name, n)
		}
	}
}

// Nothing that a person types or a page contains makes the worker touch an address that is not public, in whatever spelling and
// behind whatever redirect (FEED-BUGS 182 to 191).
func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	touched := make(chan string, 100)
	inside := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		touched <- r.Host + r.URL.Path
		_, _ = w.Write([]byte("<rss><channel><title>secret</title><item><title>x</title></item></channel></rss>"))
	}))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = inside.Listener.Close()
	inside.Listener = listener
	inside.Start()
	t.Cleanup(inside.Close)
	port := strings.TrimPrefix(listener.Addr().String(), "127.0.0.2:")
	w := start(t, nil)
	targets := map[string]string{
		"loopback": "http://127.0.0.2:%p/feed", "private": "http://10.0.0.1/feed", "private 172": "http://172.16.0.1/", "private 192": "http://192.168.1.1/",
		"link-local": "http://169.254.169.254/latest/meta-data", "this network": "http://0.0.0.0:%p/", "carrier": "http://100.64.0.1/", "multicast": "http://224.0.0.1/",
		"broadcast": "http://255.255.255.255/", "loopback 6": "http://[::1]:%p/", "unique local": "http://[fd00::1]/", "link-local 6": "http://[fe80::1]/",
		"mapped": "http://[::ffff:127.0.0.2]:%p/", "mapped in hex": "http://[::ffff:7f00:2]:%p/", "NAT64": "http://[64:ff9b::7f00:2]:%p/", "6to4": "http://[2002:7f00:2::]:%p/",
		"decimal": "http://2130706434:%p/", "octal": "http://0177.0.0.2:%p/", "hex": "http://0x7f.0.0.2:%p/", "short": "http://127.2:%p/", "hex whole": "http://0x7f000002:%p/",
	}
	for name, target := range targets {
		target = strings.ReplaceAll(target, "%p", port)
		_, f := w.run(discover.Payload{URL: target})
		if f == nil || f.Kind != fault.Refused || !f.Permanent || !strings.Contains(f.Message, "allow_networks") {
			t.Errorf("%s, typed: %v", name, f)
		}
		s := serve(t, map[string]answer{
			"/":      page(link(target) + `<a href="` + target + `">RSS</a>` + link("/hop") + `<link rel=manifest href="` + target + `"><link rel=icon href="` + target + `"><script>"` + target + `"</script><a href="` + target + `">Blog</a>`),
			"/hop":   {status: 302, headers: map[string]string{"Location": target}},
			"/meta":  page(`<meta http-equiv=refresh content="0; url=` + target + `">`),
			"/moved": {status: 301, headers: map[string]string{"Location": target}},
			"/base":  page(`<base href="` + target + `"><link rel=alternate type=application/rss+xml href=feed.xml>`),
			"/link":  {headers: map[string]string{"Link": "<" + target + ">; rel=alternate; type=\"application/rss+xml\""}, body: "x"},
		})
		for _, at := range []string{"/", "/meta", "/base", "/link"} {
			if got := w.find(s.URL + at); len(got.Feeds) > 0 {
				t.Errorf("%s, in the page %s: %+v", name, at, got.Feeds)
			}
		}
		if _, f := w.run(discover.Payload{URL: s.URL + "/moved"}); f == nil || f.Kind != fault.Refused && f.Kind != fault.Unreachable {
			t.Errorf("%s, redirected: %v", name, f)
		}
	}
	select {
	case what := <-touched:
		t.Errorf("it reached %s", what)
	default:
	}
}

// Schemes other than http and https in pages are not followed.
func TestOtherSchemes(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	for _, target := range []string{"file:///etc/passwd", "ftp://127.0.0.1/feed", "gopher://127.0.0.1/feed", "data:application/rss+xml,<rss/>", "unix:///x/feed"} {
		s := serve(t, map[string]answer{"/": page(link(target) + link("/hop")), "/hop": {status: 302, headers: map[string]string{"Location": target}}})
		got := w.find(s.URL)
		if len(got.Feeds) != 0 {
			t.Errorf("%s: %+v", target, got.Feeds)
		}
	}
}

// What was found before is told again at once, also to another process and also that there is nothing; fresh looks again.
func TestKept(t *testing.T) {
	t.Parallel()
	cache := map[string]any{"cache": "dir:" + t.TempDir()}
	a, b := start(t, cache), start(t, cache)
	s := serve(t, map[string]answer{"/": page(link("/f")), "/f": rss("B", 2, 1), "/none": page("x")})
	first := a.find(s.URL)
	s.requests()
	again := b.find(s.URL + "/")
	if again.From != "cache" || feeds(s, again) != "/f" || !again.FoundAt.Equal(first.FoundAt) || len(s.requests()) != 0 {
		t.Errorf("another process: %+v", again)
	}
	none := serve(t, map[string]answer{"/": page("x")})
	if got := a.find(none.URL); len(got.Feeds) != 0 || got.From != "search" {
		t.Fatalf("got %+v", got)
	}
	none.requests()
	if got := b.find(none.URL); len(got.Feeds) != 0 || got.From != "cache" || len(none.requests()) != 0 {
		t.Errorf("nothing, kept: %+v", got)
	}
	if got, f := b.run(discover.Payload{URL: s.URL, Fresh: true}); f != nil || got.From != "search" || len(s.requests()) == 0 {
		t.Errorf("fresh: %+v, %v", got, f)
	}
	secret := strings.Replace(s.URL, "http://", "http://user:word@", 1)
	a.find(secret)
	if got := a.find(secret); got.From != "search" {
		t.Errorf("an address with a password is kept")
	}
}

// An answer that is kept takes less than 20 ms, also when many ask.
func TestKeptIsQuick(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	s := serve(t, map[string]answer{"/": page(link("/f")), "/f": rss("B", 2, 1)})
	w.find(s.URL)
	var took []time.Duration
	for range 200 {
		begun := time.Now()
		if got := w.find(s.URL); got.From != "cache" {
			t.Fatalf("got %+v", got)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	t.Logf("median %v, 99th %v", took[100], took[198])
	if took[100] > 20*time.Millisecond {
		t.Errorf("half of the answers take more than %v", took[100])
	}
}

// A slow site costs no more than the budget; what was found by then is the result, and it says that it is not all.
func TestBudget(t *testing.T) {
	t.Parallel()
	w := start(t, map[string]any{"budget": "1s", "timeout": "1s"})
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(release) })
	s := serve(t, map[string]answer{"/": page(link(slow.URL+"/1") + link("/f") + link(slow.URL+"/2") + link("/comments/feed")), "/f": rss("B", 1), "/comments/feed": rss("C", 1)})
	begun := time.Now()
	got := w.find(s.URL)
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	if feeds(s, got) != "/f /comments/feed" || !strings.Contains(strings.Join(got.Notes, " "), "time ran out") {
		t.Errorf("got %s, notes %q, tried %+v", feeds(s, got), got.Notes, got.Tried)
	}
	if _, f := w.run(discover.Payload{URL: slow.URL}); f == nil || f.Kind != fault.Unreachable || !f.Permanent {
		t.Errorf("a site that is silent: %v", f)
	}
}

// A task that is cancelled ends as cancelled, with all its fetches, and nothing of it is kept.
func TestCancelled(t *testing.T) {
	t.Parallel()
	w := start(t, nil)
	asked := make(chan struct{}, 10)
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(slow.Close)
	for range 2 {
		run := w.Begin(discover.Payload{URL: slow.URL})
		<-asked // so it was not kept the first time
		run.Cancel("cancelled")
		var f *fault.Fault
		if _, err := run.Wait(); !errors.As(err, &f) || f.Kind != fault.Cancelled {
			t.Errorf("the end is %v", err)
		}
	}
}

// A page with a thousand feeds costs a bounded number of requests, and large answers do no harm.
func TestBounds(t *testing.T) {
	t.Parallel()
	w := start(t, map[string]any{"max_bytes": "256KiB"})
	var many strings.Builder
	answers := map[string]answer{"/big": {body: "<rss>" + strings.Repeat(" ", 1<<20)}}
	for i := range 1000 {
		many.WriteString(link(fmt.Sprintf("/f%d", i)))
		answers[fmt.Sprintf("/f%d", i)] = rss(fmt.Sprintf("B%d", i), 1)
	}
	answers["/"] = page(link("/big") + many.String())
	s := serve(t, answers)
	got := w.find(s.URL)
	if n := len(s.requests()); n > 81 || len(got.Feeds) < 20 || len(got.Feeds) > 50 {
		t.Errorf("%d requests, %d feeds", n, len(got.Feeds))
	}
	if !slices.ContainsFunc(got.Tried, func(tried discover.Tried) bool {
		return strings.HasSuffix(tried.URL, "/big") && strings.Contains(tried.Result, "max_bytes")
	}) {
		t.Errorf("the large one: %+v", got.Tried)
	}
}

// Each mistake in the options is told before the first task, with what is allowed.
func TestOptions(t *testing.T) {
	t.Parallel()
	for options, part := range map[string]string{
		`{"cahce":"x"}`: `unknown option "cahce": allowed are allow_networks, budget, cache`, `{"cache":"redis:x"}`: "memcached", `{"store":"mysql:x"}`: "sqlite",
		`{"budget":"5"}`: "option budget", `{"timeout":"30s"}`: "option timeout", `{"keep":"0s"}`: "option keep", `{"allow_networks":["home"]}`: "allow_networks", `[]`: "object",
	} {
		worker := sdktest.Start(t, discover.Program(), sdktest.Unconfigured(), sdktest.AnyExit())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := worker.Configure(ctx, sdk.Config{Queue: "discovery", Manager: "test", Slots: 1, Options: json.RawMessage(options)})
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v, want %q", options, err, part)
		}
		cancel()
	}
}

// The worker keeps what every worker owes its manager.
func TestConform(t *testing.T) {
	t.Parallel()
	s := serve(t, map[string]answer{"/": page(link("/f")), "/f": rss("B", 1)})
	slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(slow.Close)
	sdktest.Conform(t, discover.Program(), []any{discover.Payload{URL: s.URL}, discover.Payload{URL: s.URL + "/f"}},
		sdktest.Slow(t, discover.Payload{URL: slow.URL}),
		sdktest.Options(t, map[string]any{"store": "off", "cache": "dir:" + t.TempDir(), "allow_networks": []string{"127.0.0.1/32"}}))
}

// A feed that the store knows and that is well is told without asking its server; one that has failed is looked at.
func TestKnownFeeds(t *testing.T) {
	t.Parallel()
	address := "sqlite:" + filepath.Join(t.TempDir(), "feeds.db")
	store, err := feedstore.Open(t.Context(), address, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	w := start(t, map[string]any{"store": address})
	s := serve(t, map[string]answer{"/well": rss("B", 1), "/ill": rss("B", 1)})
	now := time.Now()
	for path, answers := range map[string][]feed.Answer{"/well": {feed.Read}, "/ill": {feed.Read, feed.Failed}} {
		for i, answer := range answers {
			pull := &feed.Pull{Feed: feed.Ref{URL: s.URL + path}, At: now.Add(time.Duration(i-5) * time.Minute), Answer: answer, ErrorKind: "x", ErrorText: "x"}
			if answer == feed.Read {
				pull.Document = &feed.Document{Type: "rss 2.0", Title: "Known & <b>good</b>", SiteURL: s.URL + "/home", Entries: []feed.Entry{
					{GUID: "1", Title: "one", Published: now.Add(-48 * time.Hour)}, {GUID: "2", Title: "two", Published: now.Add(-24 * time.Hour)},
				}}
			}
			if _, err := store.Save(t.Context(), pull, feed.DefaultPolicy()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, input := range []string{s.URL + "/well", s.host() + "/well"} {
		got := w.find(input)
		if got.From != "store" || len(got.Feeds) != 1 || got.Site != s.URL+"/home" {
			t.Fatalf("%s: %+v", input, got)
		}
		f := got.Feeds[0]
		if f.Title != "Known & good" || f.Entries != 2 || f.Score != 100 || f.LastPost == nil || now.Sub(*f.LastPost).Round(time.Minute) != 24*time.Hour {
			t.Errorf("%s: %+v", input, f)
		}
	}
	if asked := s.requests(); len(asked) > 0 {
		t.Errorf("asked for %v", asked)
	}
	if got := w.find(s.URL + "/ill"); got.From != "search" || feeds(s, got) != "/ill" {
		t.Errorf("one that failed: %+v", got)
	}
	if got, f := w.run(discover.Payload{URL: s.URL + "/well", Fresh: true}); f != nil || got.From != "search" {
		t.Errorf("fresh: %+v, %v", got, f)
	}
}
