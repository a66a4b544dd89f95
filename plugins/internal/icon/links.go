package icon

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/html"

	"github.com/drover-jobs/drover/plugins/internal/sanitise"
)

// link is an icon that a page names; a smaller order is more suitable.
type link struct {
	address string
	order   int
}

// named is what a page names.
type named struct {
	icons     []link
	manifests []string
}

// links reads the elements of a page that name icons and manifests.
func links(page []byte, base *url.URL) named {
	var out named
	for z := html.NewTokenizer(bytes.NewReader(page)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return out
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			a := make(map[string]string, len(token.Attr))
			for _, attribute := range token.Attr {
				if _, ok := a[attribute.Key]; !ok {
					a[attribute.Key] = strings.TrimSpace(attribute.Val)
				}
			}
			switch token.Data {
			case "base":
				if u, err := url.Parse(sanitise.Address(a["href"], base, "http", "https")); err == nil && u.Host != "" {
					base = u
				}
			case "link":
				out.link(a, base)
			case "meta":
				out.meta(a, base)
			}
		default:
		}
	}
}

func (n *named) link(a map[string]string, base *url.URL) {
	rel := " " + strings.ToLower(strings.Join(strings.Fields(a["rel"]), " ")) + " "
	address := absolute(a["href"], base)
	switch {
	case address == "":
	case strings.Contains(rel, " manifest "):
		n.manifests = append(n.manifests, address)
	case strings.Contains(rel, " icon "):
		n.icons = append(n.icons, link{address, suitable(a["sizes"], a["type"])})
	case strings.Contains(rel, " apple-touch-icon"), strings.Contains(rel, " fluid-icon "):
		n.icons = append(n.icons, link{address, 2})
	}
}

func (n *named) meta(a map[string]string, base *url.URL) {
	address := absolute(a["content"], base)
	switch name := strings.ToLower(a["name"]); {
	case address == "":
	case name == "msapplication-tileimage":
		n.icons = append(n.icons, link{address, 5})
	case name == "msapplication-config":
		n.manifests = append(n.manifests, address)
	}
}

// absolute allows what may hold an icon.
func absolute(text string, base *url.URL) string {
	if _, ok := cutPrefixFold(strings.TrimSpace(text), "data:"); ok {
		return strings.TrimSpace(text)
	}
	return sanitise.Address(text, base, "http", "https")
}

// suitable orders icons by what is said about them: those that look sharp and are no wallpaper come first.
func suitable(sizes, mediaType string) int {
	width, _, _ := strings.Cut(strings.ToLower(sizes), "x")
	n, err := strconv.Atoi(strings.TrimSpace(width))
	switch {
	case err == nil && n >= 32 && n <= 256:
		return 1
	case strings.Contains(mediaType, "svg") || sizes == "any":
		return 3
	case err == nil && n > 256:
		return 4
	case err == nil:
		return 6
	}
	return 4
}

var tile = regexp.MustCompile(`(?i)<(?:square|TileImage)[\w]*\s[^>]*src\s*=\s*["']([^"']+)["']`)

// manifest returns the icons that a manifest.json or a browserconfig.xml names.
func (s *search) manifest(ctx context.Context, address string) (icons []string) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || ctx.Err() != nil {
		return nil
	}
	body := bytes.TrimSpace(s.get(ctx, address, "application/manifest+json,application/json,*/*;q=0.5"))
	if bytes.HasPrefix(body, []byte("<")) {
		for _, m := range tile.FindAllSubmatch(body, perPlace) {
			icons = append(icons, absolute(html.UnescapeString(string(m[1])), base))
		}
		return icons
	}
	var manifest struct {
		Icons []struct {
			Src   string `json:"src"`
			Sizes string `json:"sizes"`
			Type  string `json:"type"`
		} `json:"icons"`
	}
	if err := json.Unmarshal(body, &manifest); err != nil {
		return nil
	}
	for order := 1; order <= 6; order++ {
		for _, icon := range manifest.Icons {
			if suitable(icon.Sizes, icon.Type) == order {
				icons = append(icons, absolute(icon.Src, base))
			}
		}
	}
	return icons
}

// decodeBase64 reads base64 of either alphabet, with or without padding and with spaces in it.
func decodeBase64(text string) []byte {
	text = strings.NewReplacer("-", "+", "_", "/", " ", "", "\n", "", "\r", "", "\t", "", "=", "").Replace(text)
	data, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return []byte{}
	}
	return data
}
