package sanitise

import (
	"bytes"
	"net/url"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// rounds is how often a fragment may change before it is taken for one that never comes to rest. Honest mark-up needs one or two.
const rounds = 6

// HTML returns the safe form of a fragment of HTML. Addresses in it become absolute against base, which may be nil; then
// relative ones go. The outcome is a fixed point: HTML of it is itself.
func HTML(fragment string, base *url.URL) string {
	fragment = strings.ToValidUTF8(fragment, "\uFFFD")
	if !strings.ContainsAny(fragment, "<>&\"'\r\x00") {
		return fragment
	}
	out := once(fragment, base)
	for range rounds {
		again := once(out, base)
		if again == out {
			return out
		}
		out = again
	}
	return FromText(Text(out))
}

// FromText returns the HTML that shows text as it is.
func FromText(text string) string {
	return html.EscapeString(strings.ReplaceAll(strings.ReplaceAll(text, "\x00", ""), "\r", "\n"))
}

// Text returns what a reader of the fragment would see, on one line: no mark-up, references decoded once.
func Text(fragment string) string {
	fragment = strings.ToValidUTF8(fragment, "\uFFFD")
	if !strings.ContainsAny(fragment, "<&") {
		return oneLine(fragment)
	}
	var b strings.Builder
	skip := ""
	for z := html.NewTokenizer(strings.NewReader(fragment)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return oneLine(b.String())
		case html.TextToken:
			if skip == "" {
				b.WriteString(string(z.Text()))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			name, _ := z.TagName()
			switch n := string(name); {
			case skip == "" && (n == "script" || n == "style"):
				skip = n
			case !inline(n):
				b.WriteByte(' ')
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if n := string(name); n == skip {
				skip = ""
			} else if !inline(n) {
				b.WriteByte(' ')
			}
		case html.CommentToken, html.DoctypeToken:
		}
	}
}

func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(text, "\x00", "")), " ")
}

// once is one way through both passes.
func once(fragment string, base *url.URL) string {
	body := &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body}
	// Without scripting, what stands in noscript is mark-up like any other, and is judged like it.
	nodes, err := html.ParseFragmentWithOptions(strings.NewReader(fragment), body, html.ParseOptionEnableScripting(false))
	if err != nil { // nested deeper than a parser should follow
		return FromText(Text(fragment))
	}
	for _, n := range nodes {
		body.AppendChild(n)
	}
	unite(body)
	w := walker{base: base}
	if strings.Contains(fragment, xmlBase) {
		w.rebase(body)
	}
	w.children(body)
	var b bytes.Buffer
	for n := body.FirstChild; n != nil; n = n.NextSibling {
		if err := html.Render(&b, n); err != nil {
			return FromText(Text(fragment))
		}
	}
	return strings.TrimSpace(policy().Sanitize(b.String()))
}
