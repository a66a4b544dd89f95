package page

import "strings"

// headerLink is one link of a Link header (RFC 8288).
type headerLink struct {
	target, rel, mediaType, title string
}

// parseLinks reads Link headers as servers write them: parameters in any order and case, quoted or not, commas and semicolons
// inside of addresses and quotes. What cannot be read is left out. The libraries for it split at every comma.
func parseLinks(values []string) []headerLink {
	var out []headerLink
	for _, value := range values {
		for len(value) > 0 && len(out) < maxDeclared {
			open := strings.IndexByte(value, '<')
			if open < 0 {
				break
			}
			end := strings.IndexByte(value[open:], '>')
			if end < 0 {
				break
			}
			link := headerLink{target: value[open+1 : open+end]}
			value = link.parameters(value[open+end+1:])
			out = append(out, link)
		}
	}
	return out
}

// parameters reads up to the comma that ends the link and returns what follows it.
func (l *headerLink) parameters(text string) string {
	for {
		text = strings.TrimLeft(text, " \t;")
		if text == "" || text[0] == ',' {
			return strings.TrimPrefix(text, ",")
		}
		end := strings.IndexAny(text, "=;,")
		if end < 0 {
			return ""
		}
		name := strings.ToLower(strings.TrimSpace(text[:end]))
		if text[end] != '=' {
			text = text[end:]
			continue
		}
		var value string
		value, text = parameterValue(strings.TrimLeft(text[end+1:], " \t"))
		switch {
		case name == "rel" && l.rel == "": // the first one counts
			l.rel = value
		case name == "type" && l.mediaType == "":
			l.mediaType = value
		case name == "title":
			l.title = value
		}
	}
}

// parameterValue reads a quoted string or a token.
func parameterValue(text string) (value, rest string) {
	if !strings.HasPrefix(text, `"`) {
		end := strings.IndexAny(text, ";,")
		if end < 0 {
			end = len(text)
		}
		return strings.TrimSpace(text[:end]), text[end:]
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case c == '"':
			return b.String(), text[i+1:]
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), ""
}
