package feedread_test

import (
	"strings"
	"testing"

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/feedread"
)

// Kinds of feed that readers were reported to stumble over, and that no other test here holds.
func TestSeenInTheWild(t *testing.T) {
	t.Parallel()
	first := func(check func(feed.Entry) bool) func(feed.Document) bool {
		return func(d feed.Document) bool { return len(d.Entries) > 0 && check(d.Entries[0]) }
	}
	for name, c := range map[string]struct {
		body  string
		check func(feed.Document) bool
	}{
		"RSS 0.91 with a DTD that names entities": {
			`<?xml version="1.0"?><!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://my.netscape.com/publish/formats/rss-0.91.dtd"><rss version="0.91"><channel><title>T</title>` +
				`<item><title>a &mdash; b</title><link>http://a.example/</link></item></channel></rss>`,
			first(func(e feed.Entry) bool { return e.Title == "a — b" }),
		},
		"a backslash in an entity of the DOCTYPE": {
			`<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY % a "\x"><!ENTITY b '\'>]>` + "\n" + rssHead[21:] + items(1, 2) + rssTail,
			func(d feed.Document) bool { return len(d.Entries) == 2 },
		},
		"an odd srsName": {
			strings.Replace(rssHead, "<rss", `<rss xmlns:georss="http://www.georss.org/georss" xmlns:gml="http://www.opengis.net/gml"`, 1) +
				`<item><title>a</title><georss:where><gml:Point srsName="&#x0;\"><gml:pos>x y</gml:pos></gml:Point></georss:where></item>` + rssTail,
			func(d feed.Document) bool { return len(d.Entries) == 1 },
		},
		"georss, media and itunes pass through": {
			strings.Replace(rssHead, "<rss", `<rss xmlns:georss="http://www.georss.org/georss" xmlns:media="http://search.yahoo.com/mrss/"`, 1) +
				`<item><title>a</title><georss:point>45.2 -71.9</georss:point><media:thumbnail url="http://a.example/t.png"/></item>` + rssTail,
			first(func(e feed.Entry) bool {
				return strings.Contains(string(e.Extensions), "45.2 -71.9") && strings.Contains(string(e.Extensions), "t.png")
			}),
		},
		"isPermaLink in every spelling": {
			rssHead + `<item><guid isPermaLink="FALSE">1</guid></item><item><guid isPermaLink=" true ">http://a.example/2</guid></item><item><guid isPermaLink="">3</guid></item><item><guid ispermalink=no>4</guid></item>` + rssTail,
			func(d feed.Document) bool { return len(d.Entries) == 4 && d.Entries[1].URL == "http://a.example/2" },
		},
		"an Atom link in RSS does not take the place of the site's": {
			`<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>T</title><atom:link rel="alternate" href="http://wrong.example/"/><link>http://right.example/</link>` +
				`<atom:link rel="self" href="http://feed.example/f"/><item><title>a</title><link>/p</link></item></channel></rss>`,
			func(d feed.Document) bool {
				return d.SiteURL == "http://right.example/" && d.Entries[0].URL == "http://right.example/p"
			},
		},
		"no absolute address anywhere": {
			`<rss version="2.0"><channel><title>T</title><item><title>a</title><link>p/1</link></item></channel></rss>`,
			first(func(e feed.Entry) bool { return e.URL == "https://example.org/p/1" }),
		},
		"Atom 0.3": {
			`<feed version="0.3" xmlns="http://purl.org/atom/ns#"><title>T</title><tagline>x</tagline><entry><title>a</title><link rel="alternate" type="text/html" href="http://a.example/1"/><id>1</id>` +
				`<modified>2026-03-02T09:00:00Z</modified><content type="text/html" mode="escaped">&lt;p&gt;b&lt;/p&gt;</content></entry></feed>`,
			first(func(e feed.Entry) bool {
				return e.URL == "http://a.example/1" && strings.Contains(e.Content, "b") && !e.Published.IsZero()
			}),
		},
		"RSS 0.90": {
			`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://my.netscape.com/rdf/simple/0.9/"><channel><title>T</title></channel><item><title>a</title><link>http://a.example/1</link></item></rdf:RDF>`,
			first(func(e feed.Entry) bool { return e.Title == "a" && e.URL == "http://a.example/1" }),
		},
		"a time without a date": {
			rssHead + `<item><title>a</title><pubDate>T00:00:00Z</pubDate></item>` + rssTail,
			first(func(e feed.Entry) bool { return e.Published.IsZero() }),
		},
		"a time as Go prints it": {
			rssHead + `<item><title>a</title><pubDate>2017-06-20 11:13:14.5 +0000 UTC</pubDate></item>` + rssTail,
			first(func(e feed.Entry) bool { return e.Published.Year() == 2017 && e.Published.Hour() == 11 }),
		},
		"JSON Feed with numbers for identities": {
			`{"version":"https://jsonfeed.org/version/1","title":"T","items":[{"id":7,"content_text":"a"},{"id":"8","content_text":"b"}]}`,
			func(d feed.Document) bool { return d.Items == 2 && len(d.Entries)+d.Lost == 2 },
		},
		"a blank author and title": {
			rssHead + `<item><guid>1</guid><title> </title><author></author></item>` + rssTail,
			first(func(e feed.Entry) bool { return e.Title == "" && e.Author == "" }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			doc, err := feedread.Read([]byte(c.body), feedread.Source{URL: "https://example.org/feed", ContentType: "text/html"})
			if err != nil {
				t.Fatal(err)
			}
			account(t, doc)
			if !c.check(doc) {
				t.Errorf("%+v", doc)
			}
		})
	}
}
