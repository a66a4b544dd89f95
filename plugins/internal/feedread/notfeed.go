package feedread

import (
	"bytes"
	"html"
	"regexp"
	"strings"

	"github.com/drover-jobs/drover/protocol/fault"
)

var (
	titlePattern = regexp.MustCompile(`(?is)<title[^>]*>(.{0,500}?)</title>`)
	loginPattern = regexp.MustCompile(`(?i)<input[^>]{1,300}type\s*=\s*["']?password`)
	tagPattern   = regexp.MustCompile(`<([a-zA-Z][\w:.-]*)[\s/>]`)
)

// notAFeed names what came instead of a feed. Challenge pages are told by their headers too, so that is the fetcher's part.
func notAFeed(text []byte) error {
	visible := blank(text)
	if !htmlPattern.Match(visible) && !bytes.Contains(bytes.ToLower(visible), []byte("<title")) {
		if m := tagPattern.FindSubmatch(visible); m != nil {
			return fault.New(fault.WrongContent, "the answer is an XML document of type <%s>, not a feed", m[1])
		}
		return fault.New(fault.WrongContent, "the answer is not a feed; it begins with %q", clip(string(text), 60))
	}
	what := "a web page"
	if loginPattern.Match(text) {
		what = "a login page"
	}
	if m := titlePattern.FindSubmatch(text); m != nil {
		if title := strings.Join(strings.Fields(html.UnescapeString(string(m[1]))), " "); title != "" {
			return fault.New(fault.WrongContent, "the answer is %s (%q), not a feed", what, clip(title, 100))
		}
	}
	return fault.New(fault.WrongContent, "the answer is %s, not a feed", what)
}

// clip shortens text to n characters.
func clip(text string, n int) string {
	runes := []rune(text)
	if len(runes) <= n {
		return text
	}
	return string(runes[:n]) + "…"
}
