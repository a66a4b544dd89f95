package address_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/plugins/discovery/internal/address"
	"github.com/drover-jobs/drover/protocol/fault"
)

// Whatever a person types becomes the addresses that it may mean, in one spelling; without a scheme https comes first.
func TestInput(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]string{
		"https://example.com":                      "https://example.com/",
		" HTTP://Example.COM:80/Blog#top\n":        "http://example.com/Blog",
		"example.com/blog":                         "https://example.com/blog http://example.com/blog",
		"localhost:8080/x":                         "https://localhost:8080/x http://localhost:8080/x",
		"//example.com/a":                          "https://example.com/a http://example.com/a",
		"http:/example.com/a":                      "http://example.com/a",
		"https:example.com":                        "https://example.com/",
		`https:\\example.com\a`:                    "https://example.com/a",
		"feed://example.com/rss":                   "http://example.com/rss",
		"feed:https://example.com/rss":             "https://example.com/rss",
		"view-source:https://example.com/":         "https://example.com/",
		"itpc://example.com/pod.xml":               "http://example.com/pod.xml",
		"<https://example.com/a b>":                "https://example.com/a%20b",
		"https://example.com/50%":                  "https://example.com/50%25",
		"https://bücher.example/ü":                 "https://xn--bcher-kva.example/%C3%BC",
		"@ada@social.example":                      "https://social.example/@ada",
		"acct:ada@social.example":                  "https://social.example/@ada",
		"https://example.com/a/../b/./c":           "https://example.com/b/c",
		"https://example.com./":                    "https://example.com/",
		"http://2130706433/":                       "http://127.0.0.1/",
		"http://0177.0.0.1/":                       "http://127.0.0.1/",
		"http://0x7f.1/":                           "http://127.0.0.1/",
		"http://[::FFFF:127.0.0.1]:80/":            "http://[::ffff:127.0.0.1]/",
		"https://user:secret@example.com/feed.xml": "https://user:secret@example.com/feed.xml",
	} {
		got, err := address.Input(input)
		if err != nil {
			t.Errorf("%q: %v", input, err)
			continue
		}
		texts := make([]string, len(got))
		for i, u := range got {
			texts[i] = u.String()
		}
		if text := strings.Join(texts, " "); text != want {
			t.Errorf("%q: got %s, want %s", input, text, want)
		}
	}
}

// What is no address, and what is never fetched, is a permanent fault that says which.
func TestInputRefuses(t *testing.T) {
	t.Parallel()
	for input, kind := range map[string]fault.Kind{
		"": fault.InvalidPayload, "golang": fault.InvalidPayload, "two words": fault.InvalidPayload, "https://": fault.InvalidPayload,
		"http://[::1%25eth0]/": fault.InvalidPayload, "http://1.2.3.4.5/": fault.InvalidPayload, "http://256.0.0.1/": fault.InvalidPayload,
		"http://example.com:99999/": fault.InvalidPayload, "https://" + strings.Repeat("a", address.MaxLength): fault.InvalidPayload,
		"file:///etc/passwd": fault.Refused, "javascript:alert(1)": fault.Refused, "ftp://example.com/": fault.Refused, "gopher://x/": fault.Refused,
		"feed:file:///etc/passwd": fault.Refused, "data:text/html,x": fault.Refused,
	} {
		got, err := address.Input(input)
		if err == nil {
			t.Errorf("%.40q: got %v", input, got)
			continue
		}
		if f := fault.From(err); f.Kind != kind || !f.Permanent {
			t.Errorf("%.40q: %v, want a permanent %v", input, f, kind)
		}
	}
}

// A reference is resolved as a browser does it: relative, without a host behind its scheme, with an absolute one left alone
// (FEED-BUGS 86, 88, 89, 90).
func TestResolve(t *testing.T) {
	t.Parallel()
	base, err := url.Parse("https://example.com/blog/index.html?x=1")
	if err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		"./feed.xml":                     "https://example.com/blog/feed.xml",
		"rss.xml":                        "https://example.com/blog/rss.xml",
		"/rss.xml":                       "https://example.com/rss.xml",
		"../feed":                        "https://example.com/feed",
		"../../../feed":                  "https://example.com/feed",
		"?feed=rss2":                     "https://example.com/blog/index.html?feed=rss2",
		"//other.example/f":              "https://other.example/f",
		"http://other.example/f":         "http://other.example/f",
		"http:/blog/feed":                "https://example.com/blog/feed",
		"http:feed.xml":                  "https://example.com/blog/feed.xml",
		"http:/example.com/feed.xml":     "http://example.com/feed.xml",
		"http:///other.example/f":        "http://other.example/f",
		"feed:https://other.example/f":   "https://other.example/f",
		"feed://other.example/f":         "http://other.example/f",
		"feed:/blog/rss":                 "https://example.com/blog/rss",
		" /a\n b.xml\t":                  "https://example.com/a%20b.xml",
		`\feed.xml`:                      "https://example.com/feed.xml",
		"/100%/feed":                     "https://example.com/100%25/feed",
		"HTTPS://OTHER.example:443/Feed": "https://other.example/Feed",
		"http://0x7f.0.0.1/f":            "http://127.0.0.1/f",
		"javascript:void(0)":             "", "mailto:a@b.example": "", "#top": "", "": "", "  ": "", "http://": "", "data:,x": "", "tel:+1": "",
	} {
		got, ok := address.Resolve(base, ref)
		text := ""
		if ok {
			text = got.String()
		}
		if text != want {
			t.Errorf("%q: got %q, want %q", ref, text, want)
		}
	}
}

// Two spellings of one document have one key, and two documents have two (FEED-BUGS 96).
func TestKey(t *testing.T) {
	t.Parallel()
	key := func(text string) string {
		all, err := address.Input(text)
		if err != nil {
			t.Fatal(err)
		}
		return address.Key(all[0])
	}
	want := key("https://example.com/feed?a=1&b=2")
	for _, same := range []string{
		"http://example.com/feed?a=1&b=2", "https://www.example.com/feed/?b=2&a=1", "HTTPS://EXAMPLE.com:443/x/../feed?a=1&b=2#x",
		"https://example.com/f%65ed?a=1&b=2&utm_source=feed",
	} {
		if got := key(same); got != want {
			t.Errorf("%s: %s, want %s", same, got, want)
		}
	}
	for _, other := range []string{"https://example.com/feed?a=1", "https://example.com/Feed?a=1&b=2", "https://example.org/feed?a=1&b=2", "https://example.com:8443/feed?a=1&b=2"} {
		if got := key(other); got == want {
			t.Errorf("%s has the same key", other)
		}
	}
}

// A site is what one owner has registered.
func TestSite(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://blog.example.co.uk/": "example.co.uk", "https://ada.github.io/": "ada.github.io", "https://example.com/": "example.com",
		"http://127.0.0.1:8080/": "127.0.0.1:8080", "http://localhost/": "localhost",
	} {
		all, err := address.Input(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := address.Site(all[0]); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// Whatever stands in a page or comes from a person gives an address that can be asked for, or none; spelling it again changes
// nothing.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{
		"example.com", "http:/blog/feed", "feed:https://a.example/%zz?%#%", `\\a.example\..\b`, "http://0x7f.1:80", "@a@b.example", "https://bücher.example",
		"http://[::ffff:1.2.3.4]:99", "view-source:feed:rss:http://a.example", "https://a.example/%2e%2e/%2f//..//x?b=;a&c",
	} {
		f.Add(seed)
	}
	base, err := url.Parse("https://example.com/blog/")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		found, _ := address.Input(text)
		if u, ok := address.Resolve(base, text); ok {
			found = append(found, u)
		}
		for _, u := range found {
			spelt := u.String()
			if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || !strings.HasPrefix(u.Path, "/") || len(spelt) > address.MaxLength {
				t.Fatalf("%q gives %q", text, spelt)
			}
			again, ok := address.Resolve(base, spelt)
			if !ok || again.String() != spelt {
				t.Fatalf("%q gives %q, which again gives %v", text, spelt, again)
			}
			if address.Key(u) != address.Key(again) || address.Site(u) == "" {
				t.Fatalf("%q: key %q, site %q", text, address.Key(u), address.Site(u))
			}
		}
	})
}
