package demo

import (
	"fmt"
	"strings"
)

// rss is an RSS 2.0 document with so many items.
func rss(title string, items int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel>\n<title>%s</title><link>https://example.org/</link><description>A feed</description>\n", title)
	for i := range items {
		b.WriteString(rssItem(title, i+1))
	}
	b.WriteString("</channel></rss>\n")
	return b.String()
}

func rssItem(title string, n int) string {
	return fmt.Sprintf("<item><title>%s, entry %d</title><link>https://example.org/%d</link><guid>tag:%s:%d</guid>"+
		"<pubDate>Mon, 02 Mar 2026 10:0%d:00 GMT</pubDate><description>Text %d</description></item>\n", title, n, n, title, n, n%10, n)
}

// cutRSS is an RSS document that ends in the middle of its third item.
func cutRSS() string {
	whole := rss("Cut off", 3)
	return whole[:strings.LastIndex(whole, "<pubDate>")]
}

func atom() string {
	return `<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom">
<title>Atom</title><id>urn:demo:atom</id><updated>2026-03-02T10:00:00Z</updated>
<entry><title>First</title><id>urn:demo:atom:1</id><updated>2026-03-01T10:00:00Z</updated><link href="https://example.org/a1"/><content type="html">&lt;p&gt;One&lt;/p&gt;</content></entry>
<entry><title>Second</title><id>urn:demo:atom:2</id><updated>2026-03-02T10:00:00Z</updated><link href="https://example.org/a2"/><summary>Two</summary></entry>
</feed>
`
}

func jsonFeed() string {
	return `{"version":"https://jsonfeed.org/version/1.1","title":"JSON Feed","home_page_url":"https://example.org/","items":[
{"id":"j1","url":"https://example.org/j1","content_text":"One","date_published":"2026-03-01T10:00:00Z"},
{"id":"j2","url":"https://example.org/j2","content_html":"<p>Two</p>","date_published":"2026-03-02T10:00:00Z"}]}
`
}
