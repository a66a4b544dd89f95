// Package rank decides which of the feeds of a site is the one that a person means, and which of them are the same.
//
// It owns two pure decisions: Score, from what is known of one feed, and Unite, which makes one of the RSS, Atom and JSON
// twins by comparing their entries. It fetches nothing. The caller is the worker, after it has read every candidate.
package rank

import (
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/drover-jobs/drover/plugins/discovery/internal/address"
)

// Origin is how a feed was found.
type Origin int

// The origins, the surest first.
const (
	// Given is the address that was asked about.
	Given Origin = iota + 1
	// Declared is a Link header or a link element.
	Declared
	// Channel is a rule for a well-known service.
	Channel
	// Anchor is a link in the text of the page.
	Anchor
	// Guessed is one of the addresses that feeds usually have, or one found in a script.
	Guessed
)

// String is the origin's name in results.
func (o Origin) String() string {
	return map[Origin]string{Given: "given", Declared: "declared", Channel: "channel", Anchor: "anchor", Guessed: "guessed"}[o]
}

// Role is what part of a site a feed is about.
type Role int

// The roles.
const (
	// Main is the whole site, as far as can be seen.
	Main Role = iota
	// Part is a tag, a category, an author or a search.
	Part
	// Comments are comments.
	Comments
)

var (
	commentPath  = regexp.MustCompile(`(?i)(?:^|[/._-])comments?(?:[/._-]|$)`)
	commentQuery = regexp.MustCompile(`(?i)(?:^|&)(?:feed=comments|withcomments=|\w+=comments)`)
	commentTitle = regexp.MustCompile(`(?i)^\s*comments? (?:on|for|by)\b|\bcomments? feed\b|^\s*(?:kommentare? (?:zu|für)|commentaires (?:sur|pour)|comentarios? (?:en|a|sobre|de)|comentários (?:em|sobre|para)|commenti (?:a|su|per)|reacties op|комментарии)|kommentar-feed`)
	partPath     = regexp.MustCompile(`(?i)/(?:tags?|tagged|categor(?:y|ies)|kategorie|topics?|labels?|authors?|search|archives?|-)/[^/]`)
	partQuery    = regexp.MustCompile(`(?i)(?:^|&)(?:tags?|cat|category|category_name|author|s|q|search|label)=`)
	partTitle    = regexp.MustCompile(`(?i)\b(?:category|tag|label|author|search results?) ?(?:archives?|feed|[:»])|»\s*[^»]*(?:category|tag|author|kategorie|schlagwort) feed`)
)

// RoleOf tells the role of a feed from its address and its titles, such as the feed's own and the one that the page gives it.
func RoleOf(u *url.URL, titles ...string) Role {
	role := Main
	if partPath.MatchString(u.Path) || partQuery.MatchString(u.RawQuery) {
		role = Part
	}
	if commentPath.MatchString(u.Path) || commentQuery.MatchString(u.RawQuery) {
		return Comments
	}
	for _, title := range titles {
		switch {
		case commentTitle.MatchString(title):
			return Comments
		case partTitle.MatchString(title):
			role = Part
		}
	}
	return role
}

// Facts is what Score looks at.
type Facts struct {
	Origin Origin
	Role   Role
	// Position is how many feeds of the same origin the page names before this one.
	Position int
	// Under is true for a feed that lies in the folder of the page that was asked about, when that is not the root.
	Under bool
	// SameSite is true for a feed on the site that was asked about.
	SameSite bool
	// Entries is how many entries it has, Age how old the newest one is; Age is negative when no entry has a date.
	Entries int
	Age     time.Duration
}

// The points of a score.
const (
	pointsGiven    = 100
	pointsDeclared = 60
	pointsChannel  = 60
	pointsAnchor   = 50
	pointsGuessed  = 45

	pointsComments = -45
	pointsPart     = -25
	pointsEmpty    = -20
	pointsDead     = -10 // nothing for deadAfter
	pointsLively   = 10  // something within livelyFor
	pointsUnder    = 10
	pointsSameSite = 5
	mostPosition   = 5 // one point less for each feed before it, up to this

	livelyFor = 90 * 24 * time.Hour
	deadAfter = 3 * 365 * 24 * time.Hour
)

// Enough is the score from which on a feed is likely to be what a person means, so that no addresses need be guessed.
const Enough = 45

// Score says how likely the feed is what a person means who named the page, from 0 to 100. The address that was asked about is
// itself the answer. The rest begins with the points of its origin; a part of a site loses less than comments do, and nothing
// when the page that was asked about is that part.
func Score(f Facts) int {
	points := map[Origin]int{
		Given: pointsGiven, Declared: pointsDeclared, Channel: pointsChannel, Anchor: pointsAnchor, Guessed: pointsGuessed,
	}[f.Origin]
	if f.Origin == Given {
		return points
	}
	switch {
	case f.Role == Comments:
		points += pointsComments
	case f.Role == Part && !f.Under:
		points += pointsPart
	}
	if f.Under && f.Role != Comments {
		points += pointsUnder
	}
	if f.SameSite {
		points += pointsSameSite
	}
	switch {
	case f.Entries == 0:
		points += pointsEmpty
	case f.Age < 0:
	case f.Age <= livelyFor:
		points += pointsLively
	case f.Age > deadAfter:
		points += pointsDead
	}
	points -= min(f.Position, mostPosition)
	return min(max(points, 0), pointsGiven-1)
}

// Under is true when the feed lies in the folder of the page and that is not the root: /blog/feed.xml for /blog/ and
// /blog/post.html, /tag/go/feed for /tag/go.
func Under(page, feed *url.URL) bool {
	if page.Host != feed.Host {
		return false
	}
	folder := strings.TrimSuffix(page.Path, "/")
	if strings.Contains(folder[strings.LastIndexByte(folder, '/')+1:], ".") {
		folder = folder[:strings.LastIndexByte(folder, '/')]
	}
	return folder != "" && strings.HasPrefix(feed.Path, folder+"/")
}

// SameSite is true when one owner has registered both hosts.
func SameSite(page, feed *url.URL) bool { return address.Site(page) == address.Site(feed) }
