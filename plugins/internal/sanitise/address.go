package sanitise

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/html"
)

// linkSchemes lists what a link may lead to. Everything that runs, shows or reads something by itself is missing.
func linkSchemes() []string {
	return []string{"http", "https", "mailto", "tel", "ftp", "gemini", "magnet", "xmpp"}
}

// EntrySchemes lists what an entry, its site and the files that belong to it may have for an address.
func EntrySchemes() []string {
	return []string{"http", "https", "ftp", "gemini", "gopher", "magnet", "mailto", "xmpp", "news", "nntp", "irc", "ircs"}
}

func (w *walker) linkAddress(text string) string { return Address(text, w.base, linkSchemes()...) }
func (w *walker) webAddress(text string) string  { return Address(text, w.base, "http", "https") }

// imageAddress allows raster images in the address itself, too.
func (w *walker) imageAddress(text string) string {
	if data := rasterImage(text); data != "" {
		return data
	}
	return w.webAddress(text)
}

// Address returns what a browser would make of text in a document at base, when its scheme is one of those given, and else "".
// Control characters go before the scheme is looked at, for browsers ignore some of them.
func Address(text string, base *url.URL, schemes ...string) string {
	text = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "")))
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	if err != nil {
		if u, err = url.Parse(barePercent.ReplaceAllString(text, "%25$1")); err != nil {
			return ""
		}
	}
	if base != nil {
		u = base.ResolveReference(u)
	}
	if !slices.Contains(schemes, u.Scheme) {
		return ""
	}
	if (u.Scheme == "http" || u.Scheme == "https") && (u.Host == "" || u.Opaque != "") {
		return ""
	}
	out := escapes.Replace(u.String())
	if again, err := url.Parse(out); err != nil || again.String() != out && escapes.Replace(again.String()) != out {
		return ""
	}
	return out
}

// xmlBase is the attribute by which XHTML in a feed says what the addresses below it are relative to.
const xmlBase = "xml:base"

// rebase makes absolute what stands below an element with a base of its own.
func (w *walker) rebase(n *html.Node) {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if c.Type != html.ElementNode {
			continue
		}
		inner := *w
		if text, ok := lookup(c, xmlBase); ok {
			if base, err := url.Parse(Address(text, w.base, "http", "https")); err == nil && base.Host != "" {
				inner.base = base
			}
		}
		if inner.base != w.base || w.scoped {
			inner.scoped = true
			for i := range c.Attr {
				switch c.Attr[i].Key {
				case "href", "src", "poster", "cite", "data-src":
					if address := inner.linkAddress(c.Attr[i].Val); address != "" {
						c.Attr[i].Val = address
					}
				case "srcset":
					c.Attr[i].Val = inner.candidates(c.Attr[i].Val)
				}
			}
		}
		inner.rebase(c)
	}
}

var (
	barePercent = regexp.MustCompile(`%([^0-9a-fA-F]|[0-9a-fA-F][^0-9a-fA-F]|[0-9a-fA-F]?$)`)
	//nolint:gochecknoglobals // a table; never written
	escapes = strings.NewReplacer(" ", "%20", "<", "%3C", ">", "%3E", `"`, "%22", "`", "%60", "\u00a0", "%C2%A0", "\u2028", "%E2%80%A8", "\u2029", "%E2%80%A9")
)

var dataImage = regexp.MustCompile(`^(?i:data:image/(png|gif|jpeg|jpg|webp|avif|bmp)(?:;charset=[\w-]+)?;base64),([A-Za-z0-9+/]+=*)$`)

// rasterImage returns an image that is its own address, cleanly spelt, and "" for anything else: SVG can hold scripts.
func rasterImage(text string) string {
	if len(text) < 5 || !strings.Contains(strings.ToLower(text[:min(len(text), 64)]), "data:") {
		return ""
	}
	text = strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text)
	m := dataImage.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	digits := strings.TrimRight(m[2], "=")
	if _, err := base64.RawStdEncoding.DecodeString(digits); err != nil {
		return ""
	}
	if rest := len(digits) % 4; rest > 0 {
		digits += "===="[rest:]
	}
	return "data:image/" + strings.ToLower(m[1]) + ";base64," + digits
}
