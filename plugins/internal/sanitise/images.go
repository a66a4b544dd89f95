package sanitise

import (
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// Where scripts of lazy images keep the address that they put into src later.
func lazySources() []string {
	return []string{"data-src", "data-lazy-src", "data-original", "data-lazy", "data-actualsrc", "data-echo", "data-img-src", "data-orig-src", "data-url", "nitro-lazy-src"}
}

func lazySets() []string {
	return []string{"data-srcset", "data-lazy-srcset", "data-original-set", "data-src-set", "nitro-lazy-srcset"}
}

// firstOf returns the first attribute that holds an address on the web.
func (w *walker) firstOf(n *html.Node, keys ...string) string {
	for _, key := range keys {
		if value := attribute(n, key); value != "" {
			if address := w.webAddress(value); address != "" {
				return address
			}
		}
	}
	return ""
}

// image gives an image its real source and keeps it when it has one and is there to be seen.
func (w *walker) image(n *html.Node) fate {
	if lazy := w.firstOf(n, lazySources()...); lazy != "" {
		set(n, "src", lazy)
	}
	w.resolve(n, "src", w.imageAddress)
	w.sourceSet(n)
	src, srcset := attribute(n, "src"), attribute(n, "srcset")
	if src != "" && placeholder(src) && srcset != "" {
		remove(n, "src")
		src = ""
	}
	if src == "" && srcset == "" || tracker(n, src) {
		return drop
	}
	for _, key := range []string{"width", "height"} {
		if value, ok := lookup(n, key); ok {
			set(n, key, strings.TrimSuffix(strings.TrimSpace(value), "px"))
		}
	}
	return keep
}

// sourceSet takes the real set of a lazy image and makes its addresses absolute.
func (w *walker) sourceSet(n *html.Node) {
	for _, key := range append(lazySets(), "srcset") {
		if clean := w.candidates(attribute(n, key)); clean != "" {
			set(n, "srcset", clean)
			return
		}
	}
	remove(n, "srcset")
}

var descriptor = regexp.MustCompile(`^\d{1,6}(?:\.\d{1,4})?[wxh]$`)

// candidates reads a srcset as the HTML standard says ("parse a srcset attribute"), where commas may be part of addresses, and
// writes it again.
func (w *walker) candidates(text string) string {
	const most = 32
	const space = " \t\n\f\r"
	var out []string
	for len(out) < most {
		text = strings.TrimLeft(text, space+",")
		if text == "" {
			break
		}
		end := strings.IndexAny(text, space)
		if end < 0 {
			end = len(text)
		}
		address, rest := text[:end], text[end:]
		description := ""
		if trimmed := strings.TrimRight(address, ","); trimmed != address {
			address = trimmed
		} else {
			description, rest = descriptors(rest)
		}
		text = rest
		if address = w.webAddress(address); address == "" || placeholder(address) {
			continue
		}
		address = strings.TrimRight(address, ",") // else the next reader takes it for the end of the candidate
		if description = strings.Join(strings.Fields(description), " "); descriptor.MatchString(description) {
			address += " " + description
		} else if description != "" {
			continue
		}
		out = append(out, address)
	}
	return strings.Join(out, ", ")
}

// descriptors returns what stands before the next comma outside of parentheses.
func descriptors(text string) (description, rest string) {
	depth := 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth <= 0 {
				return text[:i], text[i+1:]
			}
		}
	}
	return text, ""
}

var placeholderName = regexp.MustCompile(`(?i)/(?:[\w-]*[_-])?(?:blank|spacer|placeholder|pixel|transparent|lazy|loading|loader|grey|gray|1x1|trans)(?:[_-][\w-]*)?\.(?:gif|png|svg|jpe?g|webp)(?:[?#]|$)`)

// placeholder is true for an image that stands there until the real one is loaded.
func placeholder(src string) bool {
	return strings.HasPrefix(src, "data:") || placeholderName.MatchString(src)
}

var smallStyle = regexp.MustCompile(`(?i)(?:^|;)\s*(?:max-)?(?:width|height)\s*:\s*[01](?:px)?\s*(?:!important\s*)?(?:;|$)`)

// trackerSites lists where pictures that count readers come from: a host, its subdomains included, and what the path begins with.
func trackerSites() [][2]string {
	return [][2]string{
		{"feeds.feedburner.com", "/~"}, {"feedproxy.google.com", "/~"}, {"feeds.wordpress.com", "/1.0/"}, {"pixel.wp.com", "/"}, {"stats.wp.com", "/"}, {"stats.wordpress.com", "/"},
		{"doubleclick.net", "/"}, {"google-analytics.com", "/"}, {"scorecardresearch.com", "/"}, {"pixel.quantserve.com", "/"}, {"feedsportal.com", "/"},
		{"tracking.feedpress.it", "/"}, {"medium.com", "/_/stat"}, {"list-manage.com", "/track/"}, {"api.follow.it", "/track"}, {"rss.buysellads.com", "/"},
		{"facebook.com", "/tr"}, {"pheedo.com", "/"},
	}
}

func trackerPlace(src string) bool {
	_, rest, _ := strings.Cut(src, "://")
	host, path, _ := strings.Cut(strings.ToLower(rest), "/")
	for _, site := range trackerSites() {
		if inside, ok := strings.CutSuffix(host, site[0]); ok && (inside == "" || inside[len(inside)-1] == '.') && strings.HasPrefix("/"+path, site[1]) {
			return true
		}
	}
	path, _, _ = strings.Cut(path, "?")
	return strings.HasSuffix(path, "matomo.php") || strings.HasSuffix(path, "piwik.php")
}

// tracker is true for an image that nobody is meant to see.
func tracker(n *html.Node, src string) bool {
	if trackerPlace(src) {
		return true
	}
	width, wide := pixels(n, "width")
	height, high := pixels(n, "height")
	if wide && width <= 1 && (!high || height <= 1) || high && height <= 1 && !wide {
		return true
	}
	return len(smallStyle.FindAllString(strings.ReplaceAll(attribute(n, "style"), ";", ";;"), -1)) > 1
}

func pixels(n *html.Node, key string) (int, bool) {
	text := strings.TrimSuffix(strings.TrimSpace(attribute(n, key)), "px")
	value, err := strconv.Atoi(text)
	return value, err == nil && value >= 0
}

// unite puts the image that stands in a noscript into the place of the lazy one beside it, so that there is one of the two.
func unite(root *html.Node) {
	var twins []*html.Node
	for n := range root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "noscript" {
			twins = append(twins, n)
		}
	}
	for _, n := range twins {
		inside := images(n)
		if len(inside) != 1 || n.Parent == nil {
			continue
		}
		for _, beside := range []*html.Node{neighbour(n, before), neighbour(n, after)} {
			if beside == nil {
				continue
			}
			if lazy := images(beside); len(lazy) == 1 && twin(lazy[0], inside[0]) {
				there := inside[0]
				there.Parent.RemoveChild(there)
				lazy[0].Parent.InsertBefore(there, lazy[0])
				lazy[0].Parent.RemoveChild(lazy[0])
				n.Parent.RemoveChild(n)
				break
			}
		}
	}
}

// twin is true when the first image is only there until the second one takes its place.
func twin(lazy, whole *html.Node) bool {
	src := strings.TrimSpace(attribute(lazy, "src"))
	if src == "" || placeholder(src) || src == strings.TrimSpace(attribute(whole, "src")) {
		return true
	}
	for _, key := range append(lazySources(), lazySets()...) {
		if attribute(lazy, key) != "" {
			return true
		}
	}
	return false
}

// images lists the images of a tree, of which n may be the root.
func images(n *html.Node) (out []*html.Node) {
	if n.Type == html.ElementNode && n.Data == "img" {
		return []*html.Node{n}
	}
	for d := range n.Descendants() {
		if d.Type == html.ElementNode && d.Data == "img" {
			out = append(out, d)
		}
	}
	return out
}

func before(n *html.Node) *html.Node { return n.PrevSibling }
func after(n *html.Node) *html.Node  { return n.NextSibling }

// neighbour returns the element beside n, if nothing but space stands between.
func neighbour(n *html.Node, step func(*html.Node) *html.Node) *html.Node {
	for n = step(n); n != nil; n = step(n) {
		switch {
		case n.Type == html.ElementNode:
			return n
		case n.Type == html.TextNode && strings.TrimSpace(n.Data) != "":
			return nil
		}
	}
	return nil
}
