package page_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/discovery/internal/page"
)

const at = "https://example.com/blog/index.html"

func read(t testing.TB, body string, header http.Header) *page.Page {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	return page.Read([]byte(body), u, header)
}

func list(links []page.Link) string {
	texts := make([]string, len(links))
	for i, l := range links {
		texts[i] = l.URL.String()
	}
	return strings.Join(texts, " ")
}

// Link elements are understood however the web writes them, and what is no feed is left out (FEED-BUGS 86 to 90, 93, 94, 96).
func TestDeclared(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`<link rel="alternate" type="application/rss+xml" href="/feed">`:                                      "https://example.com/feed",
		`<LINK REL=Alternate TYPE=application/atom+xml HREF=atom.xml>`:                                        "https://example.com/blog/atom.xml",
		`<link rel=alternate type=application/rss+xml href=rss.xml>`:                                          "https://example.com/blog/rss.xml",
		`<link rel="alternate" type="application/rss+xml" href="./feed.xml"/>`:                                "https://example.com/blog/feed.xml",
		`<link rel='alternate' type='application/rss+xml' href='http:/blog/feed'>`:                            "https://example.com/blog/feed",
		`<base href="../"><link rel="alternate" type="application/rss+xml" href="feed.xml">`:                  "https://example.com/feed.xml",
		`<link rel="alternate" type="application/rss+xml" href="feed.xml"><base href="https://b.example/x/">`: "https://b.example/x/feed.xml",
		`<base href="/a/"><base href="/b/"><link type="application/rss+xml" href="feed.xml">`:                 "https://example.com/a/feed.xml",
		`<base target="_blank"><link type="application/rss+xml" href="feed.xml">`:                             "https://example.com/blog/feed.xml",
		`<base href="https://b.example/"><link type="text/rss" href="https://c.example/f">`:                   "https://c.example/f",
		`<link href="/rss.xml">`: "https://example.com/rss.xml",
		`<link type="application/rss+xml" href="/a"><link rel="feed" href="/b"><link rel="alternative alternate" type="rss" href="/c">`:                                                   "https://example.com/a https://example.com/b https://example.com/c",
		`<link rel="alternate" type="application/rdf+xml" href="/x"><link rel="alternate" type="application/atom+xml" href="/x">`:                                                         "https://example.com/x",
		`<link rel="alternate" type="application/rss+xml" href="/x"><link rel="alternate" type="application/rss+xml" href="/x#top">`:                                                      "https://example.com/x",
		`<link rel="alternate" type="application/rss+xml; charset=utf-8" href="/x">`:                                                                                                      "https://example.com/x",
		`<link rel="alternate" type="text/xml" href="/x"><link rel="alternate" type="application/xml" href="/y">`:                                                                         "https://example.com/x https://example.com/y",
		`<link rel="alternate" type="application/feed+json" href="/x.json"><link rel="alternate" type="application/json" href="/feed.json">`:                                              "https://example.com/x.json https://example.com/feed.json",
		`<link rel="alternate" type="application/rss+xml" href="feed://example.org/f">`:                                                                                                   "http://example.org/f",
		`<body><p><link rel="alternate" type="application/rss+xml" href="/late">`:                                                                                                         "https://example.com/late",
		`<noscript><link rel="alternate" type="application/rss+xml" href="/ns"></noscript>`:                                                                                               "https://example.com/ns",
		`<!-- <link rel="alternate" type="application/rss+xml" href="/comment"> --><script>"<link rel=alternate type=rss href=/s>"</script>`:                                              "",
		`<link rel="stylesheet" type="text/css" href="/rss.css"><link rel="icon" href="/feed.png"><link rel="shortcut icon" href="/rss/x">`:                                               "",
		`<link rel="alternate" hreflang="de" href="/de/"><link rel="alternate" type="text/html" href="/feed">`:                                                                            "",
		`<link rel="alternate" type="application/json+oembed" href="/oembed?format=json"><link rel="alternate" type="text/xml+oembed" href="/oembed?format=xml">`:                         "",
		`<link rel="alternate" type="application/json" href="/wp-json/wp/v2/posts/1"><link rel="EditURI" type="application/rsd+xml" href="/xmlrpc.php?rsd">`:                              "",
		`<link rel="search" type="application/opensearchdescription+xml" href="/feed/opensearch.xml"><link rel="sitemap" type="application/xml" href="/sitemap.xml"><link rel=alternate>`: "",
		`<link rel="alternate" type="application/rss+xml" href="">`:                                                                                                                       "", `<link rel="alternate" type="application/rss+xml" href="javascript:x">`: "",
	} {
		if got := list(read(t, "<html><head>"+body, nil).Declared); got != want {
			t.Errorf("%s\n got %s\nwant %s", body, got, want)
		}
	}
}

// Link headers count, with parameters in any order, quoted or not, several in a line, resolved against the page (FEED-BUGS 91).
func TestLinkHeaders(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		`</feed>; rel="alternate"; type="application/rss+xml"`:                                               "https://example.com/feed",
		`<feed.xml>;type=application/atom+xml ; rel=alternate`:                                               "https://example.com/blog/feed.xml",
		`</a>; rel=prev, </b,c;d>; title="x, \"y\"; z"; REL="Alternate"; type="application/rss+xml", </c>`:   "https://example.com/b,c;d",
		`<https://example.com/wp-json/>; rel="https://api.w.org/"`:                                           "",
		`</style.css>; rel=preload; as=style`:                                                                "",
		`</rss.xml>`:                                                                                         "https://example.com/rss.xml",
		`</x>; rel="alternate"; type="application/feed+json", </y>; rel=alternate; type="text/html"; nopush`: "https://example.com/x",
		`<`: "", `<>`: "", `</f`: "", `</rss>; rel="alternate`: "https://example.com/rss", `nonsense`: "", `</feed>; rel`: "https://example.com/feed",
	} {
		p := read(t, `<base href="https://elsewhere.example/">`, http.Header{"Link": {value}})
		if got := list(p.Declared); got != want {
			t.Errorf("%s: got %s, want %s", value, got, want)
		}
	}
	p := read(t, "", http.Header{"Link": {`</a>; rel=alternate; type=rss; title="The A"`, `</b>; rel=alternate; type=rss`}})
	if got := list(p.Declared); got != "https://example.com/a https://example.com/b" || p.Declared[0].Title != "The A" {
		t.Errorf("got %+v", p.Declared)
	}
}

// Anchors are found by type, text, class, extension and name; reader buttons give the feed inside; other links of the same site
// that may know more are kept as pages (FEED-BUGS 92).
func TestAnchors(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`<a href="/x" type="application/rss+xml">follow</a>`:                                                                   "/x! | ",
		`<a href="/x">RSS</a>`:                                                                                                 "/x | ",
		`<a href="/x"><b>Subscribe</b> via <i>RSS feed</i></a>`:                                                                "/x | ",
		`<a href="/x"><img src="i.gif" alt="RSS 2.0"></a>`:                                                                     "/x | ",
		`<a href="/x"><i class="fa fa-rss"></i></a>`:                                                                           "/x | ",
		`<a href="/x" class="icon-feed"></a>`:                                                                                  "/x | ",
		`<a href="/x" title="Atom feed"><svg class="i"></svg></a>`:                                                             "/x | ",
		`<a href=/posts.rss>all<a href=/posts.atom>all`:                                                                        "/posts.rss! /posts.atom! | ",
		`<a href="/?feed=rss2">x</a><a href="/?format=atom">x</a>`:                                                             "/?feed=rss2! /?format=atom! | ",
		`<a href="/export.xml">x</a>`:                                                                                          "/export.xml | ",
		`<a href="/t">Подписаться на RSS-ленту</a><a href="/u">RSS订阅</a>`:                                                      "/t /u | ",
		`<area href="/x" alt="RSS">`:                                                                                           "/x | ",
		`<a href="https://feedly.com/i/subscription/feed/https://example.com/r">+</a>`:                                         "/r! | ",
		`<a href="https://www.inoreader.com/?add_feed=https%3A%2F%2Fexample.com%2Fr">+</a>`:                                    "/r! | ",
		`<a href="/sitemap.xml">XML</a><a href="/rss.png">RSS</a><a href="/feedback">Feedback</a><a href="/about">Atomic</a>`:  " | ",
		`<a href="/blog/">Our Blog</a><a href="https://blog.example.com/">x</a><a href="https://other.example/blog">Blog</a>`:  " | /blog/ https://blog.example.com/",
		`<a href="/a">Neuigkeiten</a><a href="/news/2026/">x</a><a href="/shop">Shop</a><a href="mailto:x@y.example">News</a>`: " | /a /news/2026/",
		`<frameset><frame src="main.html"></frameset>`:                                                                         " | /blog/main.html",
	} {
		p := read(t, body, nil)
		var anchors []string
		for _, l := range p.Anchors {
			text := l.URL.String()
			if l.Sure {
				text += "!"
			}
			anchors = append(anchors, text)
		}
		got := strings.ReplaceAll(strings.Join(anchors, " ")+" | "+list(p.Pages), "https://example.com", "")
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", body, got, want)
		}
	}
}

// The title is read in the page's own encoding, wherever it is declared and whatever the header says (FEED-BUGS 16 to 26).
func TestCharsets(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("<!-- a comment that fills the first kilobyte -->", 60)
	for name, c := range map[string]struct{ contentType, body, want string }{
		"nothing said, ASCII first":   {"", long + "<title>Grüße</title>", "Grüße"},
		"gb2312 in meta":              {"text/html", `<meta charset="gb2312"><title>` + "\xc4\xe3\xba\xc3" + `</title>`, "你好"},
		"meta beyond 1024 bytes":      {"text/html", long + `<meta http-equiv="Content-Type" content="text/html; charset=windows-1251"><title>` + "\xcf\xf0\xe8\xe2\xe5\xf2" + `</title>`, "Привет"},
		"header alone":                {"text/html; charset=windows-1251", "<title>\xcf\xf0\xe8\xe2\xe5\xf2</title>", "Привет"},
		"header says it twice":        {"text/html; charset=utf-8; charset=utf-8", "<title>é</title>", "é"},
		"latin-1 in header and page":  {"text/html; charset=ISO-8859-1", "<meta charset=iso-8859-1><title>caf\xe9</title>", "café"},
		"utf-8 label, windows-1252":   {"text/html; charset=utf-8", "<title>caf\xe9 \x96 bar</title>", "café – bar"},
		"windows-1256":                {"text/html; charset=windows-1256", "<title>\xc7\xe1\xd3\xe1\xc7\xe3</title>", "السلام"},
		"label lies, text is utf-8":   {"text/html; charset=iso-8859-1", "<title>naïve</title>", "naïve"},
		"mark":                        {"", "\xef\xbb\xbf<title>é</title>", "é"},
		"entities":                    {"", "<title>A &amp; B &mdash; C&nbsp;D</title>", "A & B — C D"},
		"XHTML with XML declaration":  {"application/xhtml+xml", `<?xml version="1.0" encoding="windows-1251"?><html><title>` + "\xcf\xf0\xe8\xe2\xe5\xf2" + `</title>`, "Привет"},
		"unknown label, bytes decide": {"text/html; charset=x-none", "<title>Grüße</title>", "Grüße"},
	} {
		if got := read(t, c.body, http.Header{"Content-Type": {c.contentType}}).Title; got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// A meta refresh says where to go, unless it is a reload or only for readers without scripts.
func TestRefresh(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"0; url=/blog/": "https://example.com/blog/", "0;URL='https://b.example/'": "https://b.example/", "3, /x": "https://example.com/x", "0 url = \"/y\"": "https://example.com/y",
		"5": "", "600; url=/x": "", "": "", "0; url=": "", "0; url=javascript:x": "", "0; url=" + at: "",
	} {
		got := ""
		if u := read(t, `<meta http-equiv="Refresh" content='`+strings.ReplaceAll(content, "'", "&#39;")+`'>`, nil).Refresh; u != nil {
			got = u.String()
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", content, got, want)
		}
	}
	if u := read(t, `<noscript><meta http-equiv="refresh" content="0; url=/nojs"></noscript>`, nil).Refresh; u != nil {
		t.Errorf("without scripts: %v", u)
	}
}

// Icon, manifest, description and generator are taken along; the largest icon wins.
func TestExtras(t *testing.T) {
	t.Parallel()
	p := read(t, `<meta name="Description" content=" What it
		is "><meta name=generator content="WordPress 6.9"><link rel="shortcut icon" href="/f.ico"><link rel=icon sizes=192x192 href=big.png>
		<link rel="icon" href="data:image/png;base64,xx" sizes="999x999"><link rel="manifest" href="/m.json">`, nil)
	if p.Description != "What it is" || p.Generator != "wordpress 6.9" || p.Icon != "https://example.com/blog/big.png" || p.Manifest != "https://example.com/m.json" {
		t.Errorf("got %+v", p)
	}
}

// A page that only scripts fill is seen as a shell, and addresses of feeds in its scripts are found (FEED-BUGS 98).
func TestShell(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`<div id="root"></div><script src="/a.js"></script><noscript>You need to enable JavaScript to run this app.</noscript>`: true,
		`<script>x</script><p>` + strings.Repeat("words ", 100):                                                                 false,
		`<p>short`: false,
		`<script>x</script><link rel="alternate" type="application/rss+xml" href="/f"><div id=app></div>`: false,
	} {
		if got := read(t, body, nil).Shell; got != want {
			t.Errorf("%s: %v", body, got)
		}
	}
	p := read(t, `<div id=app></div><script>window.S={"feed":"https:\/\/example.com\/posts\/rss.xml","u":"\u002Fatom.xml","v":"/app.js","w":"/${x}/feed"}</script>`, nil)
	if got := list(p.Mentions); got != "https://example.com/posts/rss.xml https://example.com/atom.xml" {
		t.Errorf("got %s", got)
	}
}

// A page made to be slow or endless is read in time, and its lists stay short.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"nested":       strings.Repeat("<div>", 500_000),
		"links":        strings.Repeat(`<link rel=alternate type=application/rss+xml href=x><a href=y>rss</a>`, 30_000),
		"other links":  "<a href=" + strings.Repeat(`/rss/1.xml><a href=`, 50_000),
		"attributes":   "<a " + strings.Repeat("a=b ", 500_000) + ">",
		"unclosed":     "<a href='" + strings.Repeat("x", 2_000_000),
		"one anchor":   "<a href=/rss>" + strings.Repeat("<i class=rss>feed</i>", 100_000),
		"noscripts":    strings.Repeat("<noscript>", 200_000),
		"scripts":      "<script>" + strings.Repeat(`"/rss"`, 300_000),
		"less-than":    strings.Repeat("<", 2_000_000),
		"comments":     strings.Repeat("<!--", 500_000),
		"link headers": "",
	} {
		header := http.Header{}
		if name == "link headers" {
			header.Set("Link", strings.Repeat(`</rss>;title="`, 10_000)+strings.Repeat("<", 10_000)+strings.Repeat("</x>;rel=alternate;type=rss,", 10_000))
		}
		begun := time.Now()
		p := read(t, body, header)
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
		if len(p.Declared) > 60 || len(p.Anchors) > 40 || len(p.Pages) > 20 || len(p.Mentions) > 20 {
			t.Errorf("%s: %d, %d, %d and %d links", name, len(p.Declared), len(p.Anchors), len(p.Pages), len(p.Mentions))
		}
	}
}

// Whatever the bytes are, reading ends, and every address found can be asked for.
func FuzzPage(f *testing.F) {
	for _, seed := range []string{
		`<base href=../><link rel=alternate type=application/rss+xml href=feed.xml title="a"><a href=/rss>RSS</a>`, `<noscript><noscript><a href=x>feed`,
		`<meta http-equiv=refresh content="0;url=//x"><script>"/rss"</script><title>` + "\xff\xfe", `<frame src=http:x><area href=\x alt=rss>`,
	} {
		f.Add([]byte(seed), "text/html; charset=gbk", `</f>; rel=alternate; type="application/rss+xml"`)
	}
	u, err := url.Parse(at)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte, contentType, link string) {
		p := page.Read(body, u, http.Header{"Content-Type": {contentType}, "Link": {link}})
		for _, links := range [][]page.Link{p.Declared, p.Anchors, p.Pages, p.Mentions} {
			for _, l := range links {
				if l.URL.Hostname() == "" || l.URL.Scheme != "http" && l.URL.Scheme != "https" {
					t.Fatalf("found %q", l.URL)
				}
			}
		}
	})
}
