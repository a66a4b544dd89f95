package feedread_test

import (
	"strings"
	"testing"
)

const (
	rssBases = `<?xml version="1.0"?><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/">`
)

// Addresses in the HTML of an entry are relative to the nearest xml:base of any level, else to the entry, else to the site, else to
// the place of the feed; as RFC 3986 says, the last part of a base does not count.
func TestBases(t *testing.T) {
	t.Parallel()
	const image = `&lt;img src="i.png"&gt;`
	for name, c := range map[string]struct{ body, want, link string }{
		"atom, entry link": {atom + `<entry><id>1</id><link href="/a/b.html"/><content type="html">` + image + `</content></entry></feed>`, "https://example.com/a/i.png", "https://example.com/a/b.html"},
		"atom, root":       {strings.Replace(atom, "<feed", `<feed xml:base="http://r.example/x/y"`, 1) + `<entry><id>1</id><link href="p"/><content type="html">` + image + `</content></entry></feed>`, "http://r.example/x/i.png", "http://r.example/x/p"},
		"atom, entry":      {atom + `<entry xml:base="http://e.example/x/"><id>1</id><link href="p"/><content type="html">` + image + `</content></entry></feed>`, "http://e.example/x/i.png", "http://e.example/x/p"},
		"atom, content":    {atom + `<entry><id>1</id><link href="/p"/><content type="html" xml:base="http://c.example/x/page.html">` + image + `</content></entry></feed>`, "http://c.example/x/i.png", "https://example.com/p"},
		"atom, nested":     {strings.Replace(atom, "<feed", `<feed xml:base="http://r.example/"`, 1) + `<entry xml:base="a/"><id>1</id><content type="html" xml:base='b/'>` + image + `</content></entry></feed>`, "http://r.example/a/b/i.png", ""},
		"atom, xhtml": {atom + `<entry><id>1</id><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml" xml:base="http://d.example/x/"><img src="i.png"/></div></content></entry></feed>`,
			"http://d.example/x/i.png", ""},
		"atom, relative to the feed": {`<feed xmlns="http://www.w3.org/2005/Atom" xml:base="sub/"><title>T</title><entry><id>1</id><content type="html">` + image + `</content></entry></feed>`, "https://example.org/sub/i.png", ""},
		"atom, nothing said":         {`<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><entry><id>1</id><content type="html">` + image + `</content></entry></feed>`, "https://example.org/i.png", ""},
		"atom, script as base":       {atom + `<entry xml:base="javascript:x"><id>1</id><link href="/p"/><content type="html">` + image + `</content></entry></feed>`, "https://example.com/i.png", "https://example.com/p"},
		"rss, entry link":            {rssHead + `<item><link>/a/b</link><description>` + image + `</description></item>` + rssTail, "https://example.com/a/i.png", "https://example.com/a/b"},
		"rss, channel":               {rssBases + `<channel xml:base="http://r.example/x/"><title>T</title><item><link>p</link><content:encoded>` + image + `</content:encoded></item>` + rssTail, "http://r.example/x/i.png", "http://r.example/x/p"},
		"rss, item":                  {rssHead + `<item xml:base="http://e.example/x/"><link>p</link><description>` + image + `</description></item>` + rssTail, "http://e.example/x/i.png", "http://e.example/x/p"},
		"rss, description":           {rssHead + `<item><link>/p</link><description xml:base="http://c.example/x/">` + image + `</description></item>` + rssTail, "http://c.example/x/i.png", "https://example.com/p"},
		"rss, the second of two":     {rssHead + `<item xml:base="http://no.example/"><title>x</title></item><item><link>/p/</link><description>` + image + `</description></item>` + rssTail, "https://example.com/p/i.png", "https://example.com/p/"},
		"rss, broken":                {rssHead + `<item xml:base="http://e.example/x/"><link>p</link><title>a</titel><description>` + image + `</description></item>` + rssTail, "http://e.example/x/i.png", "http://e.example/x/p"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := read(t, c.body)
			e := doc.Entries[len(doc.Entries)-1]
			if got := e.Content + e.Summary; !strings.Contains(got, `<img src="`+c.want+`"/>`) {
				t.Errorf("got %s, want %s (%q)", got, c.want, doc.Warnings)
			}
			if c.link != "" && e.URL != c.link {
				t.Errorf("the link is %s, want %s", e.URL, c.link)
			}
		})
	}
}

// What is text is shown as text, what is HTML as HTML, and both are decoded exactly once.
func TestTextOrHTML(t *testing.T) {
	t.Parallel()
	json := func(item string) string {
		return `{"version":"https://jsonfeed.org/version/1.1","title":"T","items":[{"id":"1",` + item + `}]}`
	}
	for name, c := range map[string]struct{ body, title, summary, content string }{
		"atom text":     {atom + `<entry><title>a &lt;b&gt;</title><summary>c &lt; d</summary><content type="text">&lt;p&gt;e&lt;/p&gt;</content></entry></feed>`, "a <b>", "c &lt; d", "&lt;p&gt;e&lt;/p&gt;"},
		"atom html":     {atom + `<entry><title type="html">a &lt;b&gt;c&lt;/b&gt; &amp;amp; d</title><content type="html">&lt;p&gt;e &amp;lt;f&amp;gt;&lt;/p&gt;</content></entry></feed>`, "a c & d", "", "<p>e &lt;f&gt;</p>"},
		"atom xhtml":    {atom + `<entry><title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">a <b>c</b></div></title><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>e &lt;f&gt;</p></div></content></entry></feed>`, "a c", "", "<p>e &lt;f&gt;</p>"},
		"atom untyped":  {atom + `<entry><id>1</id><content>&lt;p onclick="x"&gt;e&lt;/p&gt;</content></entry></feed>`, "", "", "<p>e</p>"},
		"rss":           {rssHead + `<item><title>a &lt;b&gt;</title><description>&lt;p&gt;c &amp;lt;script&amp;gt;&lt;/p&gt;</description></item>` + rssTail, "a <b>", "<p>c &lt;script&gt;</p>", ""},
		"rss cdata":     {rssHead + `<item><description><![CDATA[<code>&lt;body onload=x&gt;</code><script>x</script>]]></description></item>` + rssTail, "", "<code>&lt;body onload=x&gt;</code>", ""},
		"json html":     {json(`"content_html":"<p onclick='x'>a &lt;b&gt;</p>","summary":"c <d>"`), "", "c &lt;d&gt;", "<p>a &lt;b&gt;</p>"},
		"json text":     {json(`"content_text":"a <script>b</script>"`), "", "", "a &lt;script&gt;b&lt;/script&gt;"},
		"script source": {rssHead + `<item><guid>1</guid><link>javascript:x()</link><description>&lt;a href="javascript:x()"&gt;a&lt;/a&gt;</description></item>` + rssTail, "", "a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := read(t, c.body).Entries[0]
			if e.Title != c.title && c.title != "" || e.Summary != c.summary || c.content != e.Content || strings.HasPrefix(e.URL, "javascript") {
				t.Errorf("got %q, %q, %q (%s)\nwant %q, %q, %q", e.Title, e.Summary, e.Content, e.URL, c.title, c.summary, c.content)
			}
		})
	}
}

// All authors of an entry are named, once each.
func TestAuthors(t *testing.T) {
	t.Parallel()
	doc := read(t, atom+`<entry><id>1</id><author><name>Ann</name></author><author><name> Bob  B. </name></author><author><email>c@d.example</email></author><author><name>Ann</name></author></entry></feed>`)
	if got := doc.Entries[0].Author; got != "Ann, Bob B., c@d.example" {
		t.Errorf("got %q", got)
	}
}
