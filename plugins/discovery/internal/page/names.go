package page

import (
	"net/url"
	"regexp"
	"strings"
)

// likeness says how much something looks like a feed.
type likeness int

const (
	no likeness = iota
	perhaps
	sure
)

// feedWord is what feeds are called in addresses.
const feedWord = `(?:rss[\d_.]*|atom[\d_.]*|rdf|feeds?|jsonfeed|xmlfeed|rssfeed|rss-feed|newsfeed|news-feed|backend|syndication)`

var (
	feedType = regexp.MustCompile(`(?i)\b(?:rss|atom|rdf|feed\+json|feed)\b`)
	xmlType  = regexp.MustCompile(`(?i)^\s*(?:text|application)/xml\b`)
	jsonType = regexp.MustCompile(`(?i)^\s*application/json\b`)
	// otherRel are relations whose links are never feeds, whatever they are called.
	otherRel = regexp.MustCompile(`(?i)(?:^|[\s,])(?:stylesheet|(?:[\w-]+-)?icon|mask-icon|preload|modulepreload|prefetch|dns-prefetch|preconnect|canonical|amphtml|search|edituri|wlwmanifest|pingback|webmention|manifest|author|license|shortlink|hub|https://api\.w\.org/)(?:[\s,]|$)`)
	feedRel  = regexp.MustCompile(`(?i)(?:^|[\s,])(?:alternates?|feed|rss|atom)(?:[\s,]|$)`)

	feedEnd    = regexp.MustCompile(`(?i)(?:^|[/._-])` + feedWord + `(?:\.(?:xml|rss|atom|rdf|json|php\d?|aspx?|cfm|cgi|jsp|html?|axd|ashx))?/?$`)
	feedFolder = regexp.MustCompile(`(?i)/(?:feeds?|rss|atom)/`)
	feedSuffix = regexp.MustCompile(`(?i)\.(?:rss|atom|rdf)$`)
	indexName  = regexp.MustCompile(`(?i)/(?:index|blog|news|posts?|podcast)\.xml$`)
	xmlSuffix  = regexp.MustCompile(`(?i)\.xml$`)
	feedQuery  = regexp.MustCompile(`(?i)(?:^|&)(?:feed=|(?:format|alt|type|output|mode|view|fmt|tmpl)=(?:rss|atom|feed|jsonfeed)|(?:rss|atom|feed)(?:[=&\d]|$))`)
	otherName  = regexp.MustCompile(`(?i)(?:sitemap[\w-]*\.xml|opensearch|/osd\.xml|browserconfig\.xml|wlwmanifest|crossdomain\.xml|/xmlrpc\.php|/rsd\.xml|oembed|\.(?:png|jpe?g|gif|svg|webp|avif|ico|css|m?js|pdf|zip|gz|mp3|mp4|m4a|ogg|webm|woff2?|ttf|exe|dmg|docx?|xlsx?|pptx?)$)`)

	feedText  = regexp.MustCompile(`(?i)(?:^|[^\pL\d])(?:rss|atom|rdf|xml|feeds?|json ?feed|web ?feed|news ?feed|syndicat\w*|flux|rss-?лента|фид)(?:[^\pL\d]|$)|订阅|フィード|피드`)
	feedClass = regexp.MustCompile(`(?i)(?:^|[\s_-])(?:rss|feed|atom)(?:[\s_-]|$)`)
	pageText  = regexp.MustCompile(`(?i)(?:^|[^\pL\d])(?:blogs?|weblog|news|newsroom|posts?|articles?|journal|rss|feeds?|subscribe|syndication|podcasts?|updates?|changelog|releases?|press|writing|aktuelles|nachrichten|neuigkeiten|abonnieren|actualit[ée]s?|s'abonner|noticias|suscr\w+|notizie|novidades|not[ií]cias|nieuws|nyheter|новости|блог|ニュース|ブログ|新闻|博客)(?:[^\pL\d]|$)`)
)

// named says whether the path or query of an address is one that feeds have.
func named(u *url.URL) likeness {
	path := u.Path
	switch {
	case otherName.MatchString(path):
		return no
	case feedSuffix.MatchString(path), feedEnd.MatchString(path), indexName.MatchString(path), feedQuery.MatchString(u.RawQuery):
		return sure
	case feedFolder.MatchString(path + "/"), xmlSuffix.MatchString(path):
		return perhaps
	}
	return no
}

// declares says whether a link element or header means a feed. The web leaves out rel or type, misspells both, and puts feeds
// beside the other things that links are for.
func declares(rel, mediaType, target string) likeness {
	u, err := url.Parse(strings.TrimSpace(target))
	if err != nil {
		u = &url.URL{Path: target}
	}
	if otherRel.MatchString(rel) || otherName.MatchString(u.Path) {
		return no
	}
	alternate := feedRel.MatchString(rel) || rel == ""
	switch name := named(u); {
	case feedType.MatchString(mediaType):
		return sure
	case strings.Contains(strings.ToLower(mediaType), "oembed"):
		return no
	case jsonType.MatchString(mediaType):
		if alternate && name == sure {
			return sure
		}
		return no // the same page for programs
	case xmlType.MatchString(mediaType) && alternate:
		return sure
	case strings.Contains(strings.ToLower(rel), "feed"):
		return sure
	case alternate && (mediaType == "" || !strings.Contains(strings.ToLower(mediaType), "html")):
		return name
	}
	return no
}
