package rank

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/drover-jobs/drover/plugins/discovery/internal/address"
)

// compared is how many of the newest entries of a feed are compared.
const compared = 50

// Feed is a candidate that has been read.
type Feed struct {
	URL                            *url.URL
	Title, Description, Type, Icon string
	SiteURL                        string
	LastPost                       time.Time
	Facts                          Facts
	// Entries are the newest first, as far as they have dates.
	Entries []Entry
	// Alternates are the addresses of the same feed in other formats or spellings.
	Alternates []*url.URL
}

// Entry is what tells one entry from another in any format: its address and its title.
type Entry struct {
	URL, Title string
	Date       time.Time
}

// Sort puts the feeds into the order in which a person should see them: by score, then by the order in which they were found.
func Sort(feeds []Feed) {
	slices.SortStableFunc(feeds, func(a, b Feed) int { return cmp.Compare(Score(b.Facts), Score(a.Facts)) })
}

// Unite makes one feed of those that are the same: one address in two spellings, and twins in RSS, Atom and JSON, which are
// told by their entries. The best of them stays, its alternates behind it. The order stays.
func Unite(feeds []Feed) []Feed {
	var out []Feed
	for _, f := range feeds {
		at := slices.IndexFunc(out, func(other Feed) bool { return Same(&f, &other) })
		if at < 0 {
			out = append(out, f)
			continue
		}
		out[at] = merge(out[at], f)
	}
	return out
}

// merge keeps the better of two feeds that are the same.
func merge(a, b Feed) Feed {
	if better(&b, &a) {
		a, b = b, a
	}
	a.Facts.Origin = min(a.Facts.Origin, b.Facts.Origin)
	a.Facts.Position = min(a.Facts.Position, b.Facts.Position)
	a.Facts.Under = a.Facts.Under || b.Facts.Under
	for _, u := range append([]*url.URL{b.URL}, b.Alternates...) {
		known := func(other *url.URL) bool { return other.String() == u.String() }
		if !known(a.URL) && !slices.ContainsFunc(a.Alternates, known) {
			a.Alternates = append(a.Alternates, u)
		}
	}
	return a
}

// better is true when a is to be preferred: a surer origin, more entries, https, then the format that says most.
func better(a, b *Feed) bool {
	return cmp.Or(
		cmp.Compare(b.Facts.Origin, a.Facts.Origin),
		cmp.Compare(len(a.Entries), len(b.Entries)),
		cmp.Compare(a.URL.Scheme, b.URL.Scheme), // "https" is the greater one
		cmp.Compare(formatRank(a.Type), formatRank(b.Type)),
	) > 0
}

func formatRank(format string) int {
	return slices.Index([]string{"json", "rss", "atom"}, family(format))
}

func family(format string) string {
	name, _, _ := strings.Cut(format, " ")
	return name
}

// Same is true for two feeds that bring a person the same entries.
func Same(a, b *Feed) bool {
	if address.Key(a.URL) == address.Key(b.URL) {
		return true
	}
	if a.Facts.Role != b.Facts.Role {
		return false
	}
	few, many := a, b
	if len(few.Entries) > len(many.Entries) {
		few, many = many, few
	}
	n := min(len(few.Entries), compared)
	if n == 0 {
		return len(many.Entries) == 0 && family(a.Type) != family(b.Type) && a.URL.Host == b.URL.Host && a.Title != "" && a.Title == b.Title
	}
	if family(a.Type) == family(b.Type) && len(many.Entries) >= 2*n && len(many.Entries) < compared {
		return false // the newest posts may all be of one category, whose feed this is
	}
	return overlap(few.Entries[:n], many.Entries, func(e Entry) string { return e.URL }) ||
		overlap(few.Entries[:n], many.Entries, func(e Entry) string { return e.Title })
}

// overlap is true when nearly all of few are among as many of the others, and a bit: one side may have been read a moment
// later. What most entries lack, or share, does not tell them apart.
func overlap(few, many []Entry, key func(Entry) string) bool {
	const slack = 2
	keys := func(entries []Entry) map[string]bool {
		out := make(map[string]bool, len(entries))
		for _, e := range entries {
			if k := key(e); k != "" {
				out[k] = true
			}
		}
		return out
	}
	mine, theirs := keys(few), keys(many[:min(len(many), len(few)+slack)])
	if len(mine)*5 < len(few)*4 {
		return false
	}
	common := 0
	for k := range mine {
		if theirs[k] {
			common++
		}
	}
	return common*5 >= len(mine)*4
}
