package channel_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/plugins/discovery/internal/channel"
)

const id = "UCabcdefghijklmnopqrstuv"

func join(guesses []channel.Guess) string {
	texts := make([]string, len(guesses))
	for i, g := range guesses {
		texts[i] = g.URL.String()
	}
	return strings.Join(texts, " ")
}

// Channel pages without a feed link give the feed by their address, also in other spellings of it (FEED-BUGS 85).
func TestByURL(t *testing.T) {
	t.Parallel()
	videos := "https://www.youtube.com/feeds/videos.xml?"
	for text, want := range map[string]string{
		"https://www.youtube.com/channel/" + id:                       videos + "channel_id=" + id,
		"https://m.youtube.com/channel/" + id + "/videos?x=1":         videos + "channel_id=" + id,
		"https://www.youtube.com/playlist?list=PLx_1-2":               videos + "playlist_id=PLx_1-2",
		"https://www.youtube.com/watch?v=1&list=PLx":                  videos + "playlist_id=PLx",
		"https://www.youtube.com/watch?v=1":                           "", // its page says the channel
		"https://www.youtube.com/user/ada/":                           videos + "user=ada",
		"https://www.youtube.com/@ada":                                "", // its page says the channel
		"https://github.com/ada/engine":                               "https://github.com/ada/engine/releases.atom https://github.com/ada/engine/commits.atom https://github.com/ada/engine/tags.atom",
		"https://github.com/ada/engine.git":                           "https://github.com/ada/engine/releases.atom https://github.com/ada/engine/commits.atom https://github.com/ada/engine/tags.atom",
		"https://github.com/ada/engine/releases":                      "https://github.com/ada/engine/releases.atom https://github.com/ada/engine/commits.atom https://github.com/ada/engine/tags.atom",
		"https://github.com/ada/engine/tree/next/sub":                 "https://github.com/ada/engine/commits/next/sub.atom https://github.com/ada/engine/releases.atom",
		"https://github.com/ada/engine/tags":                          "https://github.com/ada/engine/tags.atom https://github.com/ada/engine/releases.atom",
		"https://github.com/ada":                                      "https://github.com/ada.atom",
		"https://github.com/topics/go":                                "",
		"https://gitlab.com/g/sub/p/-/issues":                         "https://gitlab.com/g/sub/p/-/releases.atom https://gitlab.com/g/sub/p/-/tags?format=atom https://gitlab.com/g/sub/p.atom",
		"https://codeberg.org/ada/engine":                             "https://codeberg.org/ada/engine/releases.rss https://codeberg.org/ada/engine.rss",
		"https://codeberg.org/ada":                                    "https://codeberg.org/ada.rss",
		"https://www.reddit.com/":                                     "https://www.reddit.com/.rss",
		"https://old.reddit.com/r/golang/":                            "https://www.reddit.com/r/golang/.rss",
		"https://reddit.com/r/golang/new":                             "https://www.reddit.com/r/golang/new/.rss",
		"https://www.reddit.com/u/ada":                                "https://www.reddit.com/u/ada/.rss",
		"https://www.reddit.com/r/golang/comments/1a2b3c/some_title/": "https://www.reddit.com/r/golang/comments/1a2b3c/some_title/.rss",
		"https://news.ycombinator.com/":                               "https://news.ycombinator.com/rss",
		"https://stackoverflow.com/questions/tagged/go":               "https://stackoverflow.com/feeds/tag/go",
		"https://unix.stackexchange.com/questions/12/title":           "https://unix.stackexchange.com/feeds/question/12",
		"https://medium.com/@ada.l/a-post-1":                          "https://medium.com/feed/@ada.l",
		"https://medium.com/the-paper":                                "https://medium.com/feed/the-paper",
		"https://ada.medium.com/about":                                "https://ada.medium.com/feed",
		"https://ada.substack.com/p/post":                             "https://ada.substack.com/feed",
		"https://ada.tumblr.com/":                                     "https://ada.tumblr.com/rss",
		"https://www.tumblr.com/ada/123/x":                            "https://ada.tumblr.com/rss",
		"https://ada.wordpress.com/2026/01/01/x/":                     "https://ada.wordpress.com/feed/",
		"https://ada.wordpress.com/tag/go/":                           "https://ada.wordpress.com/tag/go/feed/ https://ada.wordpress.com/feed/",
		"https://ada.blogspot.com/2026/01/x.html":                     "https://ada.blogspot.com/feeds/posts/default",
		"https://ada.blogspot.co.uk/search/label/go":                  "https://ada.blogspot.co.uk/feeds/posts/default/-/go https://ada.blogspot.co.uk/feeds/posts/default",
		"https://ada.livejournal.com/":                                "https://ada.livejournal.com/data/rss",
		"https://dev.to/ada":                                          "https://dev.to/feed/ada",
		"https://bsky.app/profile/ada.bsky.social":                    "https://bsky.app/profile/ada.bsky.social/rss",
		"https://bsky.app/profile/did:plc:abc":                        "https://bsky.app/profile/did:plc:abc/rss",
		"https://vimeo.com/ada":                                       "https://vimeo.com/ada/videos/rss",
		"https://vimeo.com/channels/staffpicks":                       "https://vimeo.com/channels/staffpicks/videos/rss",
		"https://vimeo.com/123456":                                    "",
		"https://podcasts.apple.com/us/podcast/the-engine/id123456":   "https://itunes.apple.com/lookup?entity=podcast&id=123456",
		"https://social.example/@ada":                                 "https://social.example/@ada.rss",
		"http://social.example/users/ada":                             "http://social.example/users/ada.rss http://social.example/users/ada.atom",
		"https://lemmy.example/c/go":                                  "https://lemmy.example/feeds/c/go.xml?sort=New",
		"https://example.com/":                                        "", "https://example.com/blog": "", "https://notgithub.com/ada/engine": "", "https://youtube.com.evil.example/channel/" + id: "",
	} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := join(channel.ByURL(u)); got != want {
			t.Errorf("%s\n got %s\nwant %s", text, got, want)
		}
	}
}

// The page of a handle says which channel it is; the channels that it merely mentions do not count (FEED-BUGS 84).
func TestInPage(t *testing.T) {
	t.Parallel()
	other := "UCzzzzzzzzzzzzzzzzzzzzzz"
	feed := "https://www.youtube.com/feeds/videos.xml?channel_id=" + id
	for _, c := range []struct{ at, body, want string }{
		{"https://www.youtube.com/@ada", `{"channelId":"` + other + `"}<link rel="canonical" href="https://www.youtube.com/channel/` + id + `">`, feed},
		{"https://www.youtube.com/@ada", `{"browseId":"` + other + `"},{"externalId":"` + id + `"}`, feed},
		{"https://www.youtube.com/c/ada", `<meta itemprop="identifier" content="` + id + `">`, feed},
		{"https://m.youtube.com/watch?v=1", `"externalChannelId": "` + id + `"`, feed},
		{"https://www.youtube.com/@ada", `<form action="https://consent.youtube.com/save">`, ""},
		{"https://www.youtube.com/@ada", `"channelId":"UCshort"`, ""},
		{"https://soundcloud.com/ada", `<meta content="soundcloud://users:42">`, "https://feeds.soundcloud.com/users/soundcloud:users:42/sounds.rss"},
		{"https://example.com/@ada", `"channelId":"` + id + `"`, ""},
	} {
		u, err := url.Parse(c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := join(channel.InPage(u, []byte(c.body))); got != c.want {
			t.Errorf("%s in %s: got %s, want %s", c.body, c.at, got, c.want)
		}
	}
}

// A directory's answer is read for its feeds; anything else gives none.
func TestInLookup(t *testing.T) {
	t.Parallel()
	lookup := &url.URL{Scheme: "https", Host: "itunes.apple.com", Path: "/lookup"}
	for body, want := range map[string]string{
		`{"resultCount":1,"results":[{"collectionName":"The Engine","feedUrl":"https://example.com/pod.xml"}]}`: "https://example.com/pod.xml",
		`{"results":[{"feedUrl":"file:///etc/passwd"},{"feedUrl":""},{}]}`:                                      "", `{"results":[]}`: "", `[]`: "", `<html>`: "", ``: "",
	} {
		if got := join(channel.InLookup(lookup, []byte(body))); got != want {
			t.Errorf("%s: got %s, want %s", body, got, want)
		}
	}
	if got := channel.InLookup(&url.URL{Scheme: "https", Host: "example.com", Path: "/lookup"}, []byte(`{"results":[{"feedUrl":"https://a.example/"}]}`)); got != nil {
		t.Errorf("another host: %v", got)
	}
}
