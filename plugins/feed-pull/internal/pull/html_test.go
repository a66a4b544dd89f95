package pull_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/plugins/feed-pull/internal/pull"
	"github.com/drover-jobs/drover/plugins/internal/feed"
)

// What is stored is safe to show: the HTML is sanitised and absolute, titles and authors are text, addresses run nothing.
func TestStoredHTML(t *testing.T) {
	t.Parallel()
	const page = `<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>T</title><item><title>a &lt;b&gt;</title><guid>1</guid><link>/p/x</link>
		<dc:creator>&lt;script&gt;</dc:creator><description>&lt;p onclick="x()"&gt;a&lt;script&gt;x()&lt;/script&gt;&lt;img src="i.png"&gt;&lt;/p&gt;</description></item>
		<item><title>c</title><guid>2</guid><link>javascript:x()</link><enclosure url="javascript:x()" type="audio/mpeg"/></item></channel></rss>`
	b := start(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(page)) }, nil)
	out := b.pull("/f", feed.StatusNew, 2, 0)
	stored, err := b.open().Entries(t.Context(), out.FeedID, 10)
	if err != nil || len(stored) != 2 {
		t.Fatalf("%d entries, %v", len(stored), err)
	}
	for _, e := range stored {
		switch e.GUID {
		case "1":
			if want := `<p>a<img src="` + b.site.URL + `/p/i.png"/></p>`; e.Summary != want || e.Title != "a <b>" || e.Author != "<script>" {
				t.Errorf("%q by %q: %s, want %s", e.Title, e.Author, e.Summary, want)
			}
		default:
			if e.URL != "" || len(e.Enclosures) != 0 {
				t.Errorf("stored %q and %v", e.URL, e.Enclosures)
			}
		}
	}
}

// A feed of which one item of thirty cannot be read yields the others and a warning, and the result counts it.
func TestOneBrokenItem(t *testing.T) {
	t.Parallel()
	whole := rss("T", 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)
	broken := strings.Replace(whole, "<title>Post 12</title>", "<title>Post 12</title>"+strings.Repeat("<x:a>", 3000), 1)
	b := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/broken" {
			_, _ = w.Write([]byte(broken))
			return
		}
		_, _ = w.Write([]byte(whole))
	}, nil)
	out := b.pull("/broken", feed.StatusNew, 29, 0)
	if out.Items != 30 || out.Lost != 1 || out.Entries != 29 || !strings.Contains(strings.Join(out.Warnings, "; "), "item 19 is lost") {
		t.Errorf("%+v", out)
	}
	if out := b.pull("/whole", feed.StatusNew, 30, 0); out.Items != 30 || out.Lost != 0 || len(out.Warnings) != 0 {
		t.Errorf("%+v", out)
	}
	// The same again is not read, so nothing is counted.
	if again, f := b.run(pull.Payload{URL: b.site.URL + "/whole"}); f != nil || again.Items != 0 || again.Status != feed.StatusUnchanged {
		t.Errorf("%+v, %v", again, f)
	}
}
