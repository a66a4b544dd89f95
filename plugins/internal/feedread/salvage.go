package feedread

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/mmcdole/gofeed"
)

// salvage reads a broken document item by item, each in a small document of its own, after balancing its tags, with a warning for
// each item that could not be read.
func (r *reading) salvage(text []byte, root rootTag, items []span, places []place) {
	headEnd := len(text)
	if len(items) > 0 {
		headEnd = items[0].from
	}
	out, err := parse(wrap(root, channelOf(root, text[len(root.open):headEnd])))
	if err != nil {
		out = &gofeed.Feed{FeedType: feedType(root)}
	}
	out.Items = nil
	var lost []string
	beyond := max(len(items)-MaxEntries, 0)
	for i, item := range items[:len(items)-beyond] {
		if !item.closed && i == len(items)-1 {
			// Half an item may have half an address, and would be another entry tomorrow.
			lost = append(lost, fmt.Sprintf("item %d is lost: the document ends in the middle of it", i+1))
			continue
		}
		small, err := parse(wrap(root, inChannel(root, balance(text[item.from:item.to]))))
		switch {
		case err != nil:
			lost = append(lost, fmt.Sprintf("item %d is lost: %s", i+1, firstLine(err.Error())))
		case len(small.Items) == 0:
			lost = append(lost, fmt.Sprintf("item %d is lost: it cannot be read", i+1))
		default:
			out.Items = append(out.Items, small.Items[0])
			r.places[small.Items[0]] = places[i]
		}
	}
	r.feed, r.lost = out, len(lost)+beyond
	r.warnings = append(r.warnings, shorten(lost, beyond)...)
}

// unbalancedItems counts the closed items in which start and end tags do not match.
func unbalancedItems(text []byte, items []span) (n int) {
	for _, item := range items[:min(len(items), MaxEntries)] {
		if part := text[item.from:item.to]; item.closed && !bytes.Equal(balance(part), part) {
			n++
		}
	}
	return n
}

// shorten keeps a document of nothing but broken items from filling the log.
func shorten(lost []string, beyond int) []string {
	const most = 20
	if more := len(lost) - most; more > 0 {
		lost = append(lost[:most:most], fmt.Sprintf("%d more items are lost", more))
	}
	if beyond > 0 {
		lost = append(lost, fmt.Sprintf("%d items behind the first %d were not read", beyond, MaxEntries))
	}
	return lost
}

func feedType(root rootTag) string {
	if root.item == "entry" {
		return "atom"
	}
	return "rss"
}

func wrap(root rootTag, inner []byte) []byte {
	var b bytes.Buffer
	open := bytes.TrimSuffix(bytes.TrimSuffix(root.open, []byte(">")), []byte("/"))
	b.Write(open)
	b.WriteByte('>')
	b.Write(inner)
	b.WriteString("</" + root.name + ">")
	return b.Bytes()
}

// channelOf balances what stands before the first item.
func channelOf(root rootTag, head []byte) []byte {
	return balance(bytes.TrimSuffix(bytes.TrimSpace(head), []byte("</"+root.name+">")))
}

// inChannel puts an item where its format expects it.
func inChannel(root rootTag, item []byte) []byte {
	if local(root.name) != "rss" {
		return item
	}
	return []byte("<channel>" + string(item) + "</channel>")
}

// balance closes what is left open and drops end tags that close nothing. An end tag whose name is not open anywhere is a
// misspelt one and closes the innermost element, unless that is the outermost one.
func balance(text []byte) []byte {
	out := make([]byte, 0, len(text)+64)
	var open []string
	visible := blank(text)
	for i := 0; i < len(text); {
		if visible[i] != '<' { // text, or part of a CDATA section
			out = append(out, text[i])
			i++
			continue
		}
		size := tagEnd(text[i:])
		tag := text[i : i+size]
		i += size
		name := tagName(tag)
		if tag[len(tag)-1] != '>' {
			if i >= len(text) {
				break // the text ends inside a tag
			}
			tag = append(bytes.Clone(tag), '>')
		}
		switch {
		case name == "": // a declaration or an instruction
		case tag[1] == '/':
			out, open = closeTag(out, open, name)
		case tag[len(tag)-2] == '/':
			out = append(out, tag...)
		default:
			out, open = append(out, tag...), append(open, name)
		}
	}
	for len(open) > 0 {
		out, open = closeTag(out, open, open[len(open)-1])
	}
	return out
}

func closeTag(out []byte, open []string, name string) ([]byte, []string) {
	depth := len(open) - 1
	for depth >= 0 && open[depth] != name {
		depth--
	}
	if depth < 0 {
		depth = len(open) - 1
		if depth < 1 {
			return out, open
		}
	}
	for len(open) > depth {
		last := open[len(open)-1]
		out = append(append(append(out, "</"...), last...), '>')
		open = open[:len(open)-1]
	}
	return out, open
}

// tagName returns the name in a start or end tag as written, and "" for <! and <?.
func tagName(tag []byte) string {
	name := strings.TrimPrefix(strings.TrimSuffix(string(tag[1:]), ">"), "/")
	if name == "" || name[0] == '!' || name[0] == '?' {
		return ""
	}
	if i := strings.IndexAny(name, " \t\r\n/"); i >= 0 {
		name = name[:i]
	}
	return name
}
