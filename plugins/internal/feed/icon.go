package feed

import (
	"bytes"
	"strings"
	"time"
)

// Icon is the picture by which people recognise a feed.
type Icon struct {
	// URL is where it came from, a data: address when it came with the mark-up.
	URL string
	// Type is the media type that its content has, whatever was said about it. Data is empty when none was found.
	Type string
	Data []byte
	// Width and Height are in pixels, 0 for one that has no size of its own (SVG).
	Width, Height int
	// Rank says how trustworthy the place is where it was named; 1 is the best.
	Rank int
	// FoundAt is when this one was fetched first, CheckedAt when an icon was last looked for.
	FoundAt, CheckedAt time.Time
}

// IconEvery is how often a feed's icon is looked for.
const IconEvery = 7 * 24 * time.Hour

// Due is true when it is time to look for an icon again.
func (i *Icon) Due(now time.Time) bool { return now.Sub(i.CheckedAt) >= IconEvery }

// After is what to keep after a look that found the icon next, or none when its Data is empty. What is kept stays until a better
// one is proven: an icon from a worse place replaces it only when the better place has had its chances, which is when it was
// missing at each look for four times IconEvery.
func (i Icon) After(next Icon, now time.Time) Icon {
	const patience = 4 * IconEvery
	same := bytes.Equal(i.Data, next.Data)
	switch {
	case len(next.Data) == 0, len(i.Data) > 0 && !same && next.Rank > i.Rank && now.Sub(i.FoundAt) < patience:
		i.CheckedAt = now
		return i
	}
	next.FoundAt, next.CheckedAt = now, now
	return next
}

// Counts is true when an entry by that author is one of the person whose feed it is: always, unless the feed has many authors
// and a full name. Case, spaces and further authors of the entry do not matter.
func (f *Feed) Counts(author string) bool {
	if !f.MultiAuthor || f.FullName == "" {
		return true
	}
	plain := func(name string) string { return strings.ToLower(strings.Join(strings.Fields(name), " ")) }
	for name := range strings.SplitSeq(author, ",") {
		if plain(name) == plain(f.FullName) {
			return true
		}
	}
	return plain(author) == plain(f.FullName)
}
