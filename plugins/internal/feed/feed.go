// Package feed holds the words that the feed workers share: what a document says (Document, Entry), what the store knows
// (Feed, Stored, LogRow), and what one pull brings home (Pull, Saved).
//
// Its behaviour is a few pure rules that every store has to agree on: when a feed is due, what a failure costs, when a feed
// moves, which date counts. It imports nothing of ours, so that reader, identity, store and worker need not know each other.
package feed

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"time"
)

// Document is what a reader made of one body.
type Document struct {
	// Type is the format and its version, such as "rss 2.0".
	Type        string
	Title       string
	Description string
	SiteURL     string
	IconURL     string
	Language    string
	// Entries stand in the document's order.
	Entries []Entry
	// Warnings say what was repaired and what was lost.
	Warnings []string
	// Items is how many items the body has, and Lost how many of them are not among Entries; the warnings name them. Always
	// Items = len(Entries) + Lost.
	Items, Lost int
}

// Entry is one item as the document has it. Any field may be empty.
type Entry struct {
	GUID string
	URL  string
	// Title and Author are text, several authors with commas between. They have to be escaped where they are shown.
	Title  string
	Author string
	// Summary and Content are HTML that package sanitise has made safe to show.
	Summary string
	Content string
	// Published and Updated are zero when the document says nothing readable.
	Published  time.Time
	Updated    time.Time
	Categories []string
	Enclosures []Enclosure
	// Extensions passes the elements of other namespaces (dc, media, itunes, georss ...) through as JSON; nil when there are none.
	Extensions json.RawMessage
}

// Enclosure is a file that belongs to an entry.
type Enclosure struct {
	URL  string `json:"url"`
	Type string `json:"type,omitempty"`
	// Length is what the document says, in bytes.
	Length string `json:"length,omitempty"`
}

// Hash is a SHA-256.
type Hash [sha256.Size]byte

// BodyHash returns the hash of a whole body.
func BodyHash(body []byte) Hash { return sha256.Sum256(body) }

// ContentHash changes when a reader of the entry would see a change. Addresses and dates do not take part: they flip.
func (e *Entry) ContentHash() Hash {
	h := sha256.New()
	for _, part := range []string{e.Title, e.Author, e.Summary, e.Content} {
		writePart(h, part)
	}
	for _, c := range e.Categories {
		writePart(h, c)
	}
	for _, enclosure := range e.Enclosures {
		writePart(h, enclosure.Type)
		writePart(h, enclosure.Length)
	}
	var out Hash
	h.Sum(out[:0])
	return out
}

// writePart writes the length first, so that moving text from one field to the next changes the hash.
func writePart(h hash.Hash, part string) {
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(len(part)))
	h.Write(size[:])
	h.Write([]byte(part))
}
