package sanitise

import (
	"net/url"
	"strings"

	"golang.org/x/net/html"
)

// What a player may do: run its own scripts on its own site, and nothing to the page around it.
const (
	sandbox  = "allow-scripts allow-same-origin allow-presentation allow-popups"
	referrer = "strict-origin-when-cross-origin"
)

// player is a place from which a film or sound may be shown.
type player struct{ host, path string }

// players lists hosts without "www." and what the path must begin with.
func players() []player {
	return []player{
		{"youtube.com", "/embed/"}, {"youtube-nocookie.com", "/embed/"}, {"player.vimeo.com", "/video/"}, {"dailymotion.com", "/embed/video/"},
		{"geo.dailymotion.com", "/player"}, {"player.twitch.tv", "/"}, {"clips.twitch.tv", "/embed"}, {"bandcamp.com", "/EmbeddedPlayer/"},
		{"w.soundcloud.com", "/player/"}, {"open.spotify.com", "/embed/"}, {"archive.org", "/embed/"}, {"player.bilibili.com", "/player.html"},
		{"embed.ted.com", "/talks/"}, {"framatube.org", "/videos/embed/"}, {"media.ccc.de", "/v/"}, {"tube.switch.ch", "/embed/"}, {"rumble.com", "/embed/"},
		{"odysee.com", "/$/embed/"}, {"invidious.io", "/embed/"}, {"play.libsyn.com", "/embed/"}, {"embed.podcasts.apple.com", "/"}, {"players.brightcove.net", "/"},
	}
}

// playerAddress returns the https address of a known player, and "" for everything else.
func playerAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host != u.Hostname() || u.User != nil || strings.Contains(u.EscapedPath(), "..") {
		return ""
	}
	host := strings.TrimPrefix(strings.ToLower(u.Host), "www.")
	for _, p := range players() {
		if host == p.host && strings.HasPrefix(u.Path, p.path) {
			u.Scheme = "https"
			return u.String()
		}
	}
	return ""
}

// frame keeps a known player, on https and behind a sandbox. Any other frame goes with what is in it.
func (w *walker) frame(n *html.Node) fate {
	src := ""
	for _, key := range append([]string{"src"}, lazySources()...) {
		if value := attribute(n, key); value != "" && src == "" {
			src = playerAddress(w.webAddress(value))
		}
	}
	if src == "" {
		return drop
	}
	for n.FirstChild != nil { // raw text to a parser, and shown by nobody
		n.RemoveChild(n.FirstChild)
	}
	set(n, "src", src)
	set(n, "sandbox", sandbox)
	set(n, "referrerpolicy", referrer)
	set(n, "loading", "lazy")
	return keep
}
