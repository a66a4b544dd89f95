package channel

import (
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
)

// hint finds in the page of a service what its feed's address is made of.
type hint struct {
	host    *regexp.Regexp
	pattern *regexp.Regexp
	feed    string
}

// hints are tried in order; of each the first match counts, and the first hint of a host that matches ends the search. In a
// page of YouTube other channels are named too: what describes the page itself comes before what merely occurs in it.
//
//nolint:gochecknoglobals // a table of compiled patterns; never written
var hints = []hint{
	{hosts(`(?:m\.|music\.)?youtube\.com`), regexp.MustCompile(`<link[^>]+rel="canonical"[^>]+href="https://www\.youtube\.com/channel/(UC[\w-]{22})`), youtubeFeed},
	{hosts(`(?:m\.|music\.)?youtube\.com`), regexp.MustCompile(`<meta[^>]+itemprop="(?:identifier|channelId)"[^>]+content="(UC[\w-]{22})"`), youtubeFeed},
	{hosts(`(?:m\.|music\.)?youtube\.com`), regexp.MustCompile(`"externalId"\s*:\s*"(UC[\w-]{22})"`), youtubeFeed},
	{hosts(`(?:m\.|music\.)?youtube\.com`), regexp.MustCompile(`"externalChannelId"\s*:\s*"(UC[\w-]{22})"`), youtubeFeed},
	{hosts(`(?:m\.|music\.)?youtube\.com`), regexp.MustCompile(`"browseId"\s*:\s*"(UC[\w-]{22})"`), youtubeFeed},
	{hosts(`(?:m\.|music\.)?youtube\.com`), regexp.MustCompile(`"channelId"\s*:\s*"(UC[\w-]{22})"`), youtubeFeed},
	{hosts(`(?:m\.)?soundcloud\.com`), regexp.MustCompile(`soundcloud://users:(\d+)`), "https://feeds.soundcloud.com/users/soundcloud:users:$1/sounds.rss"},
	{hosts(`flickr\.com`), regexp.MustCompile(`"nsid"\s*:\s*"(\d+@N\d+)"`), "https://www.flickr.com/services/feeds/photos_public.gne?id=$1"},
}

const youtubeFeed = "https://www.youtube.com/feeds/videos.xml?channel_id=$1"

// mostListed is how many feeds of a directory's answer are believed.
const mostListed = 5

// windowBytes is how much of a page is searched.
const windowBytes = 4 << 20

// InPage says which feeds the page of a service is about, by what stands in it.
func InPage(u *url.URL, body []byte) []Guess {
	host := strings.TrimPrefix(u.Host, "www.")
	body = body[:min(len(body), windowBytes)]
	for _, h := range hints {
		if !h.host.MatchString(host) {
			continue
		}
		if m := h.pattern.FindSubmatch(body); m != nil {
			if feed, err := url.Parse(strings.Replace(h.feed, "$1", string(m[1]), 1)); err == nil {
				return []Guess{{URL: feed}}
			}
		}
	}
	return nil
}

// InLookup reads the answer of a directory of podcasts that ByURL has pointed to: the feeds that it lists.
func InLookup(u *url.URL, body []byte) []Guess {
	if u.Host != "itunes.apple.com" || u.Path != "/lookup" {
		return nil
	}
	var answer struct {
		Results []struct {
			FeedURL        string `json:"feedUrl"`
			CollectionName string `json:"collectionName"`
		} `json:"results"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return nil
	}
	var out []Guess
	for _, r := range answer.Results {
		if feed, err := url.Parse(r.FeedURL); err == nil && feed.Host != "" && (feed.Scheme == "http" || feed.Scheme == "https") {
			out = append(out, Guess{URL: feed, Title: r.CollectionName})
		}
	}
	return out[:min(len(out), mostListed)]
}
