package feed

import (
	"fmt"
	"time"
)

// Status is how a pull ended.
type Status string

// The ways in which a pull ends.
const (
	StatusNew       Status = "new"       // the feed was read for the first time
	StatusUpdated   Status = "updated"   // entries came or changed
	StatusUnchanged Status = "unchanged" // a 304, the same body, or nothing new in it
	StatusMoved     Status = "moved"     // the feed has a new address
	StatusGone      Status = "gone"      // the server says 410
	StatusFailed    Status = "failed"
)

// Answer is what came of asking.
type Answer int

// The answers.
const (
	Read        Answer = iota + 1 // a document was read
	NotModified                   // the server said 304
	SameBody                      // the body was the one that had been read before
	GoneAnswer                    // 410
	Failed                        // anything else
)

// Pull is what one pull brings home for the store.
type Pull struct {
	// Feed names the feed; one that is named by its address is created when it is not known.
	Feed Ref
	// At is when the pull began, Took how long it was under way.
	At     time.Time
	Took   time.Duration
	Answer Answer
	// HTTPStatus is 0 when there was no answer.
	HTTPStatus int
	// Unconditional is true when the request carried no validators.
	Unconditional bool
	// ETag and LastModified are what the answer carried. They are stored after Read, SameBody and NotModified; a 304 without
	// a validator leaves the old one, for it says that nothing has changed.
	ETag, LastModified string
	BodyHash           Hash
	// MovedTo is where nothing but permanent redirects led, or "".
	MovedTo string
	// Document is set after Read.
	Document *Document
	// ErrorKind, ErrorText and RetryAfter say why it failed; RetryAfter is the server's wish, 0 for none.
	ErrorKind, ErrorText string
	RetryAfter           time.Duration
	Warnings             []string
}

// Saved is what became of a Pull in the store.
type Saved struct {
	// Feed is the feed afterwards.
	Feed           Feed
	Status         Status
	NewEntries     int
	UpdatedEntries int
	// Items is how many items the document had, Lost how many of them could not be read, Repeated how many were there twice. All
	// others are stored; the warnings own up to the lost and the repeated.
	Items, Lost, Repeated int
	// Entries is how many entries of the feed are stored.
	Entries  int
	Warnings []string
}

// Policy holds the settings that decide when a feed is asked again.
type Policy struct {
	// Interval is the pause after a good pull.
	Interval time.Duration
	// FirstPenalty is the pause after the first failure. It doubles with each further one, up to MaxPenalty; equal values
	// make it flat.
	FirstPenalty, MaxPenalty time.Duration
	// MoveAfter is how long permanent redirects have to hold before the feed gets its new address.
	MoveAfter time.Duration
}

// DefaultPolicy is the policy without any setting.
func DefaultPolicy() Policy {
	return Policy{Interval: time.Hour, FirstPenalty: 30 * time.Minute, MaxPenalty: 24 * time.Hour, MoveAfter: 3 * 24 * time.Hour}
}

// Penalty is the pause after so many failures in a row; never shorter than what the server asked for.
func (p Policy) Penalty(failures int, retryAfter time.Duration) time.Duration {
	pause := p.FirstPenalty
	for range min(max(failures, 1)-1, 40) {
		if pause >= p.MaxPenalty/2 {
			pause = p.MaxPenalty
			break
		}
		pause *= 2
	}
	return max(min(pause, p.MaxPenalty), retryAfter)
}

// Stale is true for a pull that began before one that has already been stored: it may bring entries, but it does not know
// better than the store.
func (f *Feed) Stale(p *Pull) bool { return p.At.Before(f.CheckedAt) }

// First is true for a feed that has never been read.
func (f *Feed) First() bool { return f.ReadAt.IsZero() }

// Apply takes over what a pull says about the feed itself. A feed that is to move keeps its address; Apply returns the new one,
// for only the store knows whether another feed has it. Entries are not its part, and a stale pull changes nothing.
func (f *Feed) Apply(p *Pull, policy Policy) (moveTo string) {
	if f.Stale(p) {
		return ""
	}
	f.CheckedAt = p.At
	if p.Unconditional && p.Answer != Failed || p.Answer == Read || p.Answer == SameBody {
		f.FullAt = p.At // a body that came in spite of conditions proves as much as one that came without
	}
	switch p.Answer {
	case Failed:
		f.Failures++
		f.PenaltyUntil = p.At.Add(policy.Penalty(f.Failures, p.RetryAfter))
		f.NextFetch = f.PenaltyUntil
		f.ErrorKind, f.ErrorText = p.ErrorKind, p.ErrorText
		return ""
	case GoneAnswer:
		f.State, f.NextFetch = Gone, time.Time{}
		f.ErrorKind, f.ErrorText = p.ErrorKind, p.ErrorText
		return ""
	case Read, NotModified, SameBody:
	}
	f.State, f.ReadAt, f.NextFetch = Active, p.At, p.At.Add(policy.Interval)
	f.Failures, f.PenaltyUntil, f.ErrorKind, f.ErrorText = 0, time.Time{}, "", ""
	f.validators(p)
	if d := p.Document; d != nil {
		f.Type, f.Title, f.Description = d.Type, d.Title, d.Description
		f.SiteURL, f.IconURL, f.Language = d.SiteURL, d.IconURL, d.Language
	}
	return f.moving(p, policy)
}

func (f *Feed) validators(p *Pull) {
	if p.Answer != NotModified {
		f.ETag, f.LastModified, f.BodyHash = p.ETag, p.LastModified, p.BodyHash
		return
	}
	if p.ETag != "" {
		f.ETag = p.ETag
	}
	if p.LastModified != "" {
		f.LastModified = p.LastModified
	}
}

// moving keeps the record of permanent redirects: only one that leads to the same place for days moves a feed.
func (f *Feed) moving(p *Pull, policy Policy) string {
	switch {
	case p.MovedTo == "" || p.MovedTo == f.URL:
		f.MovedTo, f.MovedSince = "", time.Time{}
	case p.MovedTo != f.MovedTo:
		f.MovedTo, f.MovedSince = p.MovedTo, p.At
	case p.At.Sub(f.MovedSince) >= policy.MoveAfter:
		return f.MovedTo
	}
	return ""
}

// EffectiveDate is the date to sort an entry by: never in the future of when it was seen, and that time when there is none.
func EffectiveDate(published, seen time.Time) time.Time {
	if published.IsZero() || published.After(seen) {
		return seen
	}
	return published
}

// StatusOf names the end of a pull.
func StatusOf(p *Pull, first, moved bool, fresh, edited int) Status {
	switch {
	case p.Answer == Failed:
		return StatusFailed
	case p.Answer == GoneAnswer:
		return StatusGone
	case first:
		return StatusNew
	case moved:
		return StatusMoved
	case fresh > 0 || edited > 0:
		return StatusUpdated
	}
	return StatusUnchanged
}

// MoveTaken is the warning about a move that cannot be made.
func MoveTaken(address string, other int64) string {
	return fmt.Sprintf("the feed has moved to %s, but that is feed %d already", address, other)
}
