package page

import (
	"bytes"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html"

	"github.com/drover-jobs/drover/plugins/discovery/internal/address"
)

const (
	longestText   = 300     // bytes of an anchor's text that are looked at
	scriptWindow  = 1 << 20 // bytes of all scripts that are searched
	shellText     = 300     // visible characters below which a page with scripts is a shell
	shellLinks    = 5       // and links
	maxLinks      = 5000    // links of a page that are looked at
	longestDelay  = 30      // seconds after which a refresh is a reload and no redirect
	smallestIcon  = 16
	mostTokens    = 1_000_000
	maxScriptRefs = 10_000
)

// reader goes through the tokens once and collects; addresses are resolved at the end, since the base element may come late.
type reader struct {
	page *Page
	// base is the page's address until a base element says otherwise.
	base    *url.URL
	hasBase bool

	links   []element
	anchors []element
	frames  []string
	refresh string
	icon    string
	size    int
	scripts bytes.Buffer
	visible int
	hasCode bool

	open   *element // the anchor that has not ended
	tokens int
}

// element is a link or an anchor with what matters of it.
type element struct {
	href, rel, mediaType, title, class, text string
}

// read goes through text. noscript is true for the inside of a noscript element, which the tokenizer does not look into.
func (r *reader) read(text []byte, noscript bool) {
	z := html.NewTokenizer(bytes.NewReader(text))
	raw := ""
	for r.tokens < mostTokens {
		r.tokens++
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.TextToken:
			r.text(z.Text(), raw, noscript)
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			raw = rawName(token.Data)
			r.start(&token, noscript)
		case html.EndTagToken:
			name, _ := z.TagName()
			raw = ""
			if string(name) == "a" {
				r.endAnchor()
			}
		case html.CommentToken, html.DoctypeToken:
		}
	}
}

// rawName returns the name of an element whose inside is text for the tokenizer, or "".
func rawName(name string) string {
	switch name {
	case "script", "style", "title", "noscript", "noframes", "textarea", "iframe", "noembed", "xmp":
		return name
	}
	return ""
}

func (r *reader) text(text []byte, raw string, noscript bool) {
	switch raw {
	case "script":
		if room := scriptWindow - r.scripts.Len(); room > 0 {
			r.scripts.Write(text[:min(len(text), room)])
			r.scripts.WriteByte('\n')
		}
	case "title":
		if r.page.Title == "" {
			r.page.Title = oneLine(html.UnescapeString(string(text)))
		}
	case "noscript", "noframes":
		if !noscript {
			r.read(bytes.Clone(text), true)
		}
	case "":
		text = bytes.TrimSpace(text)
		if len(text) == 0 {
			return
		}
		if !noscript {
			r.visible += utf8.RuneCount(text)
		}
		if r.open != nil && len(r.open.text) < longestText {
			r.open.text += " " + html.UnescapeString(string(text[:min(len(text), longestText)]))
		}
	}
}

func (r *reader) start(token *html.Token, noscript bool) {
	a := attributes(token.Attr)
	switch token.Data {
	case "base":
		if u, ok := address.Resolve(r.page.URL, a["href"]); ok && !r.hasBase {
			r.base, r.hasBase = u, true
		}
	case "link":
		if len(r.links) < maxLinks {
			r.links = append(r.links, element{href: a["href"], rel: a["rel"], mediaType: a["type"], title: a["title"]})
		}
		r.linked(a)
	case "meta":
		r.meta(a, noscript)
	case "a", "area":
		r.endAnchor()
		if href, ok := a["href"]; ok && len(r.anchors) < maxLinks {
			r.open = &element{href: href, rel: a["rel"], mediaType: a["type"], title: a["title"] + " " + a["aria-label"], class: a["class"] + " " + a["id"]}
			if token.Data == "area" {
				r.open.text = a["alt"]
				r.endAnchor()
			}
		}
	case "frame":
		if len(r.frames) < maxPages {
			r.frames = append(r.frames, a["src"])
		}
	case "script":
		r.hasCode = true
	case "body", "html", "p", "br", "b", "em", "strong":
	default:
		if r.open != nil && len(r.open.class) < longestText { // the icon inside of an anchor
			r.open.class += " " + a["class"]
			r.open.title += " " + a["alt"] + " " + a["title"]
		}
	}
}

// attributes keeps the first of each name, as browsers do.
func attributes(list []html.Attribute) map[string]string {
	out := make(map[string]string, len(list))
	for _, a := range list {
		if _, ok := out[a.Key]; !ok {
			out[a.Key] = a.Val
		}
	}
	return out
}

func (r *reader) endAnchor() {
	if r.open != nil {
		r.anchors = append(r.anchors, *r.open)
		r.open = nil
	}
}

// linked takes icon and manifest of link elements.
func (r *reader) linked(a map[string]string) {
	for rel := range strings.FieldsSeq(strings.ToLower(a["rel"])) {
		switch rel {
		case "manifest":
			if r.page.Manifest == "" {
				r.page.Manifest = a["href"] // resolved at the end
			}
		case "icon", "apple-touch-icon", "apple-touch-icon-precomposed":
			width, _, _ := strings.Cut(strings.ToLower(a["sizes"]), "x")
			size, err := strconv.Atoi(strings.TrimSpace(width))
			if err != nil {
				size = smallestIcon
			}
			if href := strings.TrimSpace(a["href"]); href != "" && size > r.size && !strings.HasPrefix(href, "data:") {
				r.icon, r.size = href, size
			}
		}
	}
}

var (
	refreshPattern = regexp.MustCompile(`(?s)^\s*(\d*)(?:\.\d*)?\s*(?:[;,]|\s)\s*(.+)$`)
	refreshName    = regexp.MustCompile(`(?i)^url\s*=\s*`)
)

// refreshTarget reads the content of a refresh; "" for one that only loads the page again, or much later.
func refreshTarget(content string) string {
	m := refreshPattern.FindStringSubmatch(content)
	if m == nil {
		return ""
	}
	if delay, err := strconv.Atoi(m[1]); m[1] != "" && (err != nil || delay > longestDelay) {
		return ""
	}
	target := strings.TrimLeft(refreshName.ReplaceAllString(m[2], ""), `"'`)
	target, _, _ = strings.Cut(target, `"`)
	target, _, _ = strings.Cut(target, "'")
	return target
}

func (r *reader) meta(a map[string]string, noscript bool) {
	switch {
	case strings.EqualFold(a["name"], "description"), strings.EqualFold(a["property"], "og:description") && r.page.Description == "":
		r.page.Description = oneLine(a["content"])
	case strings.EqualFold(a["name"], "generator"):
		r.page.Generator = strings.ToLower(oneLine(a["content"]))
	case strings.EqualFold(a["property"], "og:site_name") && r.page.Title == "":
		r.page.Title = oneLine(a["content"])
	case strings.EqualFold(a["http-equiv"], "refresh") && !noscript && r.refresh == "":
		r.refresh = refreshTarget(a["content"])
	}
}

// finish resolves what was collected and sorts it into the page.
func (r *reader) finish() {
	r.endAnchor()
	p := r.page
	resolve := func(ref string) string {
		if u, ok := address.Resolve(r.base, ref); ok {
			return u.String()
		}
		return ""
	}
	p.Icon, p.Manifest = resolve(r.icon), resolve(p.Manifest)
	if u, ok := address.Resolve(r.base, r.refresh); ok && u.String() != p.URL.String() {
		p.Refresh = u
	}
	for _, l := range r.links {
		if kind := declares(l.rel, l.mediaType, l.href); kind != no {
			p.Declared = add(p.Declared, r.base, l.href, l.title, kind == sure, maxDeclared)
		}
	}
	for _, ref := range r.frames {
		p.Pages = add(p.Pages, r.base, ref, "", false, maxPages)
	}
	for _, a := range r.anchors {
		r.sort(&a)
	}
	p.Shell = r.hasCode && r.visible < shellText && len(r.anchors) < shellLinks && len(p.Declared) == 0
	r.mentions()
}

// sort decides what an anchor is good for.
func (r *reader) sort(a *element) {
	p := r.page
	u, ok := address.Resolve(r.base, a.href)
	if !ok {
		return
	}
	if inner, ok := subscribed(u); ok {
		p.Anchors = add(p.Anchors, r.base, inner, "", true, maxAnchors)
		return
	}
	text := oneLine(a.text)
	name := named(u)
	switch {
	case feedType.MatchString(a.mediaType), name == sure:
		p.Anchors = add(p.Anchors, r.base, a.href, text, true, maxAnchors)
	case otherName.MatchString(u.Path):
	case name == perhaps, feedText.MatchString(text), feedText.MatchString(a.title), feedClass.MatchString(a.class), xmlType.MatchString(a.mediaType):
		p.Anchors = add(p.Anchors, r.base, a.href, text, false, maxAnchors)
	case address.Site(u) == address.Site(p.URL) && (pageText.MatchString(text) || pageText.MatchString(strings.ReplaceAll(u.Host+u.Path, "/", " "))):
		if u.String() != p.URL.String() {
			p.Pages = add(p.Pages, r.base, a.href, text, false, maxPages)
		}
	}
}

// subscribed finds the feed in the link of a "subscribe" button, which leads to somebody's reader.
func subscribed(u *url.URL) (string, bool) {
	host := strings.TrimPrefix(u.Host, "www.")
	switch host {
	case "feedly.com", "cloud.feedly.com", "add.my.yahoo.com", "netvibes.com", "inoreader.com", "newsblur.com", "theoldreader.com", "subtome.com",
		"bazqux.com", "bloglines.com", "fusion.google.com", "reader.google.com", "google.com", "subscribe.getpodcast.reviews", "validator.w3.org", "rss.app":
	default:
		return "", false
	}
	for _, name := range []string{"url", "feed", "feedurl", "rss", "add_feed", "feeds"} {
		if value := u.Query().Get(name); strings.HasPrefix(value, "http") {
			return value, true
		}
	}
	if at := strings.Index(u.Path, "/feed/http"); at >= 0 {
		return u.Path[at+len("/feed/"):], true
	}
	return "", false
}

var quoted = regexp.MustCompile(`["']([^"'\s<>]{1,300})["']`)

// mentions finds feeds in what scripts carry.
func (r *reader) mentions() {
	text := strings.NewReplacer(`\/`, "/", `\u002F`, "/", `\u002f`, "/").Replace(r.scripts.String())
	for _, m := range quoted.FindAllStringSubmatch(text, maxScriptRefs) {
		ref := m[1]
		if !strings.HasPrefix(ref, "/") && !strings.HasPrefix(ref, "http://") && !strings.HasPrefix(ref, "https://") || strings.ContainsAny(ref, `\{}$`) {
			continue
		}
		if u, ok := address.Resolve(r.base, ref); ok && named(u) == sure {
			r.page.Mentions = add(r.page.Mentions, r.base, ref, "", true, maxMentions)
		}
	}
}
