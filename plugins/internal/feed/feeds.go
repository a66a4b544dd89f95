package feed

import (
	"errors"
	"time"
)

// State is whether a feed is polled.
type State string

// The states of a feed.
const (
	Active State = "active"
	// Gone is a feed whose server said 410. Its history is kept; nothing polls it, and one good pull brings it back.
	Gone State = "gone"
)

// Feed is what a store knows of a feed. Zero times mean never.
type Feed struct {
	ID    int64
	URL   string
	State State

	Type, Title, Description, SiteURL, IconURL, Language string

	// ETag and LastModified are the validators of the last answer, exactly as they came.
	ETag, LastModified string
	// BodyHash is the hash of the last body that was read; zero before the first.
	BodyHash Hash

	CreatedAt time.Time
	// CheckedAt is when the latest pull that counts began.
	CheckedAt time.Time
	// ReadAt is when a pull last gave a feed or heard that it had not changed.
	ReadAt time.Time
	// FullAt is when a whole body last came, or was last asked for without conditions.
	FullAt time.Time
	// NextFetch is when the feed is due; zero for a feed that is gone.
	NextFetch time.Time

	// Failures counts the pulls that failed in a row. PenaltyUntil is when the feed may be tried again.
	Failures     int
	PenaltyUntil time.Time
	// ErrorKind and ErrorText say why the last pull failed; empty after a success.
	ErrorKind, ErrorText string

	// MovedTo is where permanent redirects have led since MovedSince; empty when they do not.
	MovedTo    string
	MovedSince time.Time

	// MultiAuthor is true for a feed to which many people write; of those only the one with FullName counts, see Counts.
	MultiAuthor bool
	FullName    string
}

// Ref names a feed by its number or, when that is 0, by its address.
type Ref struct {
	ID  int64
	URL string
}

// Stored is an entry in a store.
type Stored struct {
	ID, FeedID int64
	Entry
	// Date is the effective one: the document's, but never later than the time when it was first seen, and that time when
	// the document has none.
	Date      time.Time
	FirstSeen time.Time
	// EditedAt is when a change of its content was last seen, zero when never; Revision counts these, from 1.
	EditedAt time.Time
	Revision int
}

// LogRow is one line of the status log: what happened to a feed, when, and how long it took.
type LogRow struct {
	At         time.Time
	Took       time.Duration
	Status     Status
	HTTPStatus int
	NewEntries int
	// UpdatedEntries counts the entries whose content had changed.
	UpdatedEntries int
	// ErrorKind and Message are empty unless the pull failed or had warnings.
	ErrorKind, Message string
}

// ErrNotFound says that a store has no such feed.
var ErrNotFound = errors.New("there is no such feed")
