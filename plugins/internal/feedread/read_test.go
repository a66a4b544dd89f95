package feedread_test

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/feedread"
	"github.com/drover-jobs/drover/protocol/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	rssHead = `<?xml version="1.0"?><rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>T</title><link>https://example.com/</link>`
	rssTail = `</channel></rss>`
	atom    = `<?xml version="1.0"?><feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><link href="https://example.com/"/>`
)

// items makes n good RSS items.
func items(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "<item><title>Post %d</title><link>/p/%d</link><guid>g%d</guid><description><![CDATA[<p>x & y</p>]]></description></item>", i, i, i)
	}
	return b.String()
}

func read(t testing.TB, body string) feed.Document {
	t.Helper()
	doc, err := feedread.Read([]byte(body), feedread.Source{URL: "https://example.org/feed"})
	if err != nil {
		t.Fatalf("reading %.80q: %v", body, err)
	}
	account(t, doc)
	return doc
}

var lossWords = regexp.MustCompile(`(\d+) (?:more )?items (?:are lost|are empty|behind the first)|item \d+ is lost|only the first (\d+) of (\d+) items`)

// account holds a document to the promise that no item is lost silently: all are counted, and the warnings own up to each that is
// not there.
func account(t testing.TB, doc feed.Document) {
	t.Helper()
	if doc.Items != len(doc.Entries)+doc.Lost {
		t.Errorf("%d items, but %d entries and %d lost (%q)", doc.Items, len(doc.Entries), doc.Lost, doc.Warnings)
	}
	owned := 0
	for _, m := range lossWords.FindAllStringSubmatch(strings.Join(doc.Warnings, "\n"), -1) {
		number := func(text string) int { n, _ := strconv.Atoi(text); return n }
		switch {
		case m[3] != "":
			owned += number(m[3]) - number(m[2])
		case m[1] != "":
			owned += number(m[1])
		default:
			owned++
		}
	}
	if owned != doc.Lost {
		t.Errorf("%d items are lost, but the warnings own up to %d: %q", doc.Lost, owned, doc.Warnings)
	}
}

// Each format gives the same words, with addresses made absolute.
func TestFormats(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"rss 2.0": rssHead + `<item><title> A  post </title><link>/p</link><guid isPermaLink="false">1</guid><dc:creator>Ann</dc:creator>
			<pubDate>Mon, 02 Mar 2026 10:00:00 +0100</pubDate><description>short</description><content:encoded><![CDATA[<p>long</p>]]></content:encoded></item>` + rssTail,
		"rss 1.0": `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/">
			<channel><title>T</title><link>https://example.com/</link><items/></channel><item><title>A post</title><link>https://example.com/p</link>
			<dc:creator>Ann</dc:creator><dc:date>2026-03-02T09:00:00Z</dc:date><description>short</description><content:encoded>&lt;p&gt;long&lt;/p&gt;</content:encoded></item></rdf:RDF>`,
		"atom 1.0": atom + `<entry><title>A post</title><link href="https://example.com/p"/><id>1</id><author><name>Ann</name></author>
			<published>2026-03-02T09:00:00Z</published><summary>short</summary><content type="html">&lt;p&gt;long&lt;/p&gt;</content></entry></feed>`,
		"json 1.1": `{"version":"https://jsonfeed.org/version/1.1","title":"T","home_page_url":"https://example.com/","items":[{"id":"1","url":"https://example.com/p",
			"title":"A post","authors":[{"name":"Ann"}],"date_published":"2026-03-02T10:00:00+01:00","summary":"short","content_html":"<p>long</p>"}]}`,
	} {
		doc := read(t, body)
		if !strings.HasPrefix(doc.Type, strings.TrimSuffix(name, " 1.1")) {
			t.Errorf("%s: type %q", name, doc.Type)
		}
		if doc.Title != "T" || doc.SiteURL != "https://example.com/" || len(doc.Entries) != 1 || len(doc.Warnings) > 0 {
			t.Errorf("%s: %+v", name, doc)
			continue
		}
		e := doc.Entries[0]
		if e.Title != "A post" || e.URL != "https://example.com/p" || e.Author != "Ann" || e.Summary != "short" || e.Content != "<p>long</p>" ||
			!e.Published.Equal(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// What people write into XML is read as they meant it, and costs no entry.
func TestRepairs(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"control character":       {"a\x18b", "ab"},
		"control reference":       {"a&#x1a;&#29;b", "ab"},
		"reference beyond":        {"a&#1114112;&#99999999999;b", "ab"},
		"html entity":             {"a&mdash;b&rsquo;c&nbsp;d", "a—b’c d"},
		"bare ampersand":          {"a & b &c; AT&T", "a & b &c; AT&T"},
		"bare less-than":          {"a < b <3", "a < b <3"},
		"cdata end in text":       {"a ]]> b", "a ]]> b"},
		"cdata keeps its mark-up": {"<![CDATA[a &nbsp; b]]>", "a &nbsp; b"},
		"bad byte":                {"a\xff éüö b", "a\uFFFD éüö b"},
		"escaped once":            {"&amp;lt;b&amp;gt;", "&lt;b&gt;"},
	} {
		doc := read(t, rssHead+"<item><title>"+c.in+"</title><guid>x</guid></item>"+items(1, 2)+rssTail)
		if len(doc.Entries) != 3 || doc.Entries[0].Title != c.want {
			t.Errorf("%s: %d entries, title %q, want %q (%v)", name, len(doc.Entries), doc.Entries[0].Title, c.want, doc.Warnings)
		}
	}
}

// A broken document costs at most the broken item, and says so.
func TestNothingIsLostSilently(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body    string
		entries int
		warning string
	}{
		"whole":                {rssHead + items(1, 30) + rssTail, 30, ""},
		"wrong end tag":        {rssHead + items(1, 4) + "<item><title>bad</titel><link>/b</link><guid>b</guid></item>" + items(5, 30) + rssTail, 31, "broken|only"},
		"wrong end tag at end": {rssHead + items(1, 4) + "<item><title>bad</titel><guid>b</guid></item>" + rssTail, 5, "repaired"},
		"stray end tag":        {rssHead + items(1, 4) + "<item><title>bad</title></p></div><guid>b</guid></item>" + items(5, 30) + rssTail, 31, "broken|only"},
		"one broken of thirty": {rssHead + items(1, 14) + "<item><guid>d</guid>" + strings.Repeat("<x:a>", 100_000) + "</item>" + items(15, 29) + rssTail, 29, "item 15 is lost"},
		"unclosed comment":     {rssHead + items(1, 2) + "<item><guid>b</guid><title>a <!-- b</title></item>" + items(3, 5) + rssTail, 6, ""},
		"root closed early":    {rssHead + items(1, 2) + rssTail + items(3, 5) + rssTail, 5, "only"},
		"too many":             {rssHead + items(1, feedread.MaxEntries+3) + rssTail, feedread.MaxEntries, "only the first"},
		"too many and broken":  {rssHead + items(1, feedread.MaxEntries+3), feedread.MaxEntries, "3 items behind the first"},
		"thirty broken":        {rssHead + items(1, 5) + strings.Repeat("<item><guid>d</guid>"+strings.Repeat("<x:a>", 3000)+"</item>", 30) + rssTail, 5, "10 more items are lost"},
		"unclosed p":           {atom + `<entry><id>1</id><content type="xhtml"><div><p>x</div></content></entry><entry><id>2</id></entry></feed>`, 2, "repaired"},
		"truncated":            {rssHead + items(1, 30) + "<item><title>half", 30, "item 31 is lost"},
		"truncated in a tag":   {rssHead + items(1, 30) + "<item><title>half</title><li", 30, "item 31 is lost"},
		"no closing root":      {rssHead + items(1, 30), 30, "broken"},
		"unclosed item":        {rssHead + items(1, 2) + "<item><title>bad</title><guid>b</guid>" + items(3, 4) + rssTail, 5, "broken|only"},
		"unclosed cdata":       {rssHead + "<item><title><![CDATA[bad</title><guid>b</guid></item>" + items(1, 4) + rssTail, 5, ""},
		"php warning":          {"<br />\n<b>Warning</b>: mysql in /x.php on line 3<br />\n" + rssHead + items(1, 3) + rssTail, 3, ""},
		"text before":          {"Warning: something\n\n" + rssHead + items(1, 3) + rssTail, 3, "skipped"},
		"long comment before":  {"<?xml version=\"1.0\"?><!--" + strings.Repeat(" <rss> x", 2000) + "-->" + rssHead + items(1, 3) + rssTail, 3, ""},
		"empty item":           {rssHead + items(1, 3) + "<item/><item></item>" + rssTail, 3, "2 items are empty"},
		"item inside cdata":    {rssHead + "<item><guid>a</guid><description><![CDATA[use <item> here]]></description></item>" + rssTail, 1, ""},
		"broken json item":     {`{"version":"https://jsonfeed.org/version/1","title":"T","items":[{"id":"1","title":"a"},{"id":"2","title":["b"],"authors":7},{"id":"3"}]}`, 2, "|item 2"},
		"deeply nested item":   {rssHead + items(1, 3) + "<item><guid>d</guid><x:y>" + strings.Repeat("<x:a>", 100_000) + "</item>" + rssTail, 3, "nested"},
		"no items":             {rssHead + rssTail, 0, ""},
		"declared as utf-16":   {strings.Replace(rssHead, `"1.0"?`, `"1.0" encoding="utf-16"?`, 1) + items(1, 3) + rssTail, 3, ""},
		"doctype with entity":  {`<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY x "<rss>">]>` + "\n" + rssHead[21:] + items(1, 3) + rssTail, 3, ""},
		"foreign default ns":   {`<rss xmlns="http://backend.userland.com/rss2" version="2.0"><channel><title>T</title>` + items(1, 3) + rssTail, 3, ""},
		"prefixed atom":        {`<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:title>T</a:title><a:entry><a:id>1</a:id></a:entry></a:feed>`, 1, ""},
		"upper case":           {`<RSS version="2.0"><CHANNEL><TITLE>T</TITLE><ITEM><TITLE>a</TITLE></ITEM></CHANNEL></RSS>`, 1, ""},
		"attribute with angle": {rssHead + `<item><guid>a</guid><enclosure url="http://e/x>y" type="a/b"/></item>` + items(1, 2) + rssTail, 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc := read(t, c.body)
			warnings := strings.Join(doc.Warnings, "; ")
			if len(doc.Entries) != c.entries {
				t.Errorf("%d entries, want %d (%s)", len(doc.Entries), c.entries, warnings)
			}
			found := false
			for part := range strings.SplitSeq(c.warning, "|") {
				found = found || strings.Contains(warnings, part)
			}
			if !found {
				t.Errorf("warnings %q, want %q", warnings, c.warning)
			}
		})
	}
}

// An item that was repaired has its parts in their places.
func TestSalvagedParts(t *testing.T) {
	t.Parallel()
	doc := read(t, rssHead+"<item><title>bad</titel><link>/b</link><guid>b</guid></item>"+items(1, 3)+rssTail)
	last := read(t, rssHead+items(1, 3)+"<item><title>bad</titel><link>/b</link><guid>b</guid></item>"+rssTail)
	if e := last.Entries[3]; e.Title != "bad" || e.GUID != "b" || e.URL != "https://example.com/b" {
		t.Errorf("at the end of the document: %+v", e)
	}
	if e := doc.Entries[0]; e.Title != "bad" || e.GUID != "b" || e.URL != "https://example.com/b" || doc.Title != "T" {
		t.Errorf("got %+v of %q", e, doc.Title)
	}
}

// What is no feed is named.
func TestNotAFeed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body string
		kind fault.Kind
		want string
	}{
		"empty":     {"  \n", fault.Unreadable, "empty"},
		"page":      {"<!DOCTYPE html><html><head><title>My &amp; site</title></head></html>", fault.WrongContent, `web page ("My & site")`},
		"login":     {"<html><title>Hi</title><form><input name=p type=password></form>", fault.WrongContent, "login page"},
		"feed page": {"<html><body><pre><rss><channel></channel></rss>", fault.WrongContent, "web page"},
		"opml":      {`<?xml version="1.0"?><opml version="2.0"><body/></opml>`, fault.WrongContent, "<opml>"},
		"text":      {"hello", fault.WrongContent, "hello"},
		"json":      {`{"error":"no"}`, fault.WrongContent, "not a JSON Feed"},
		"json list": {`[1]`, fault.WrongContent, "not a feed"},
		"cut json":  {`{"version":"https://jsonfeed.org/version/1","items":[`, fault.Unreadable, "JSON"},
	} {
		_, err := feedread.Read([]byte(c.body), feedread.Source{})
		var f *fault.Fault
		if !errors.As(err, &f) || f.Kind != c.kind || !strings.Contains(f.Message, c.want) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.kind, c.want)
		}
	}
}

// Input made to be slow is read in a time that grows with its size only.
func TestNoQuadraticTime(t *testing.T) {
	t.Parallel()
	const many, fewer = 100_000, 2_000 // each thing that looks like an item is read by itself, which takes its time
	for part, n := range map[string]int{
		"<![CDATA[": many, "<![CDATA[</b>": many, "<!-- <!": many, "</item>": many, "&": many, "]]>": many, "<a>": many, "<a b='": many,
		"<![CDATA[</item>": fewer, "<item ": fewer, `<item "`: fewer, "<item>": fewer, `<item><a b="`: fewer,
	} {
		start := time.Now()
		_, err := feedread.Read([]byte(rssHead+strings.Repeat(part, n)), feedread.Source{})
		if took := time.Since(start); took > 60*time.Second {
			t.Errorf("%q took %v (%v)", part, took, err)
		}
	}
}

// A date is read in every spelling seen in the wild, and half a date is none.
func TestParseDate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Mon, May 25 2020 04:45:26 +0000":         "2020-05-25T04:45:26Z",
		"2020-05-25T04:45:26.123Z":                "2020-05-25T04:45:26Z",
		"2020-05-25T04:45:26.123+02:00":           "2020-05-25T02:45:26Z",
		"Mon, 25 May 2020 04:45:26 +02:00":        "2020-05-25T02:45:26Z",
		"WED,23 MAY 2012 02:23:01":                "2012-05-23T02:23:01Z",
		"2018-05-23 10:31:04.07 +0900 JST m=+0.1": "2018-05-23T01:31:04Z",
		"25.May.2020":                             "2020-05-25T00:00:00Z",
		"Monday, 25th May 2020, 4:45 PM EST":      "2020-05-25T21:45:00Z",
		"Mon, 25 May 20 12:45 am PDT":             "2020-05-25T07:45:00Z",
		"2020/05/25":                              "2020-05-25T00:00:00Z",
		"25 May 2020 04:45:26 GMT+3":              "2020-05-25T01:45:26Z",
		"T00:00:00Z":                              "",
		"":                                        "",
		"yesterday":                               "",
		"2020-02-31":                              "",
		"Mon, 00 May 2020 00:00:00":               "",
		"0000-00-00 00:00:00":                     "",
	} {
		got, ok := feedread.ParseDate(text)
		if ok != (want != "") || ok && got.Format(time.RFC3339) != want {
			t.Errorf("%q gives %v (%v), want %q", text, got.Format(time.RFC3339), ok, want)
		}
	}
}

// Reading never panics, gives valid text only, and fails with a fault.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		rssHead + items(1, 2) + rssTail, atom + "<entry><id>1</id><content type=\"xhtml\"><div><p>x</div></content></entry></feed>",
		`{"version":"https://jsonfeed.org/version/1","items":[{"id":1}]}`, rssHead + "<item><title>bad</titel></item><item><![CDATA[",
		"<rdf:RDF><item/></rdf:RDF>", "<!-- <rss", "<feed><entry a='", "&#x1a;<rss>&nbsp;]]>",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		doc, err := feedread.Read(body, feedread.Source{URL: "https://example.org/feed"})
		var known *fault.Fault
		if err != nil && !errors.As(err, &known) {
			t.Fatalf("not a fault: %v", err)
		}
		account(t, doc)
		for _, e := range doc.Entries {
			if !utf8.ValidString(e.Title + e.Content + e.GUID) {
				t.Fatalf("not utf-8: %+q", e)
			}
		}
	})
}

// Whatever one item of thirty holds, the other twenty-nine are there, or the report owns up to them.
func FuzzLoss(f *testing.F) {
	for _, junk := range []string{
		"x", "</item>", "<item>", "<!--", "-->", "<![CDATA[", "]]>", "</channel></rss>", "<a b='", "<a b=\"", "<?x", "<!DOCTYPE x [", "&#x1a;", "\x00", "\xff\xfe", "</title></titel>",
		"<title>", "<rss>", "</rss>", "<html>", "<channel>", "<x:item>", "<!--<item>", "<![CDATA[</item>", "<item/>", "<link", "<guid>g7</guid>",
	} {
		f.Add(junk, uint8(14))
		f.Add(junk, uint8(29))
	}
	f.Fuzz(func(t *testing.T, junk string, where uint8) {
		k := 1 + int(where)%30
		body := rssHead + items(1, k-1) + "<item><title>t" + junk + "</title><guid>broken</guid></item>" + items(k+1, 30) + rssTail
		doc, err := feedread.Read([]byte(body), feedread.Source{URL: "https://example.org/feed"})
		if err != nil {
			return // refused as a whole, with an error: not silent
		}
		account(t, doc)
		there := make(map[string]bool)
		for _, e := range doc.Entries {
			there[e.GUID] = true
		}
		missing := 0
		for i := 1; i <= 30; i++ {
			if i != k && !there[fmt.Sprintf("g%d", i)] {
				missing++
			}
		}
		commented := strings.Contains(junk, "<!--") || strings.Contains(junk, "CDATA[") || strings.Contains(junk, "<!")
		if missing > doc.Lost && !commented {
			t.Errorf("%q in item %d: %d of the others are missing, %d are reported lost: %q", junk, k, missing, doc.Lost, doc.Warnings)
		}
	})
}

// Dates of any shape never panic and stay within what a store can hold.
func FuzzParseDate(f *testing.F) {
	f.Add("Mon, 25 May 2020 04:45:26 +02:00")
	f.Fuzz(func(t *testing.T, text string) {
		if got, ok := feedread.ParseDate(text); ok && (got.Year() < 1969 || got.Year() > 3000) {
			t.Fatalf("%q gives %v", text, got)
		}
	})
}
