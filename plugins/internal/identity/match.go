package identity

import (
	"strings"
	"time"
	"unicode"

	"github.com/drover-jobs/drover/plugins/internal/feed"
)

// Known is an entry of the store that shares a key with an entry of the document.
type Known struct {
	// ID is the store's number of the entry.
	ID int64
	// GUID, Title and Date are the entry's as last seen; Date is the document's date, not the clamped one, zero for none.
	GUID, Title string
	Date        time.Time
	ContentHash feed.Hash
	// HasURL is true when the entry has an address of any kind.
	HasURL bool
	// Keys are all keys that the entry ever had.
	Keys []Key
}

// Decision says what to do with one entry of the document.
type Decision struct {
	// Entry is its index in the document.
	Entry int
	// Known is the store's number of the entry that it is, and 0 for a new one.
	Known int64
	// Level is what decided; 0 for a new entry.
	Level Level
	// Identity is a key that no other entry of the feed has; only for a new entry.
	Identity Key
	// Keys are the keys to keep with the entry.
	Keys Keys
}

// Plan is the decision about a whole document.
type Plan struct {
	Decisions []Decision
	// Repeated is how many entries were the same as an earlier one of the same document and were left out.
	Repeated int
	// Remapped is how many entries were found again by title and date alone, because the site had changed everything else.
	Remapped int
}

// matcher is the state of one Match.
type matcher struct {
	entries []feed.Entry
	keys    []Keys
	known   []Known
	inDoc   map[Key]int   // how many entries of the document have the key
	inStore map[Key][]int // which known entries have it
	found   []int         // for each entry the known one that it is, or -1
	level   []Level
	used    []bool         // for each known entry whether it has been found
	shared  map[string]int // how many known entries have the guid
}

// Match decides for every entry of a document. known must hold every entry of the feed that shares any key with any entry.
func Match(entries []feed.Entry, known []Known) Plan {
	m := &matcher{
		known: known, inDoc: make(map[Key]int), inStore: make(map[Key][]int), used: make([]bool, len(known)),
		shared: make(map[string]int),
	}
	var plan Plan
	origin := m.distinct(entries)
	plan.Repeated = len(entries) - len(origin)
	for i := range known {
		m.shared[known[i].GUID]++
		seen := make(map[Key]bool, len(known[i].Keys))
		for _, key := range known[i].Keys {
			if !seen[key] {
				seen[key] = true
				m.inStore[key] = append(m.inStore[key], i)
			}
		}
	}
	for level := GuidURLTitle; level <= Text; level++ {
		m.try(level)
	}
	if left := m.unmatched(); 2*left > len(m.entries) {
		m.try(TitleDate)
		plan.Remapped = left - m.unmatched()
	}
	taken := make(map[Key]bool)
	for i := range m.entries {
		d := Decision{Entry: origin[i], Keys: m.keys[i], Level: m.level[i]}
		if m.found[i] >= 0 {
			d.Known = known[m.found[i]].ID
		} else if d.Identity = m.identity(i, taken); d.Identity == "" {
			plan.Repeated++
			continue
		}
		plan.Decisions = append(plan.Decisions, d)
	}
	return plan
}

// distinct takes the entries over, leaving out exact repetitions, and returns where each stood.
func (m *matcher) distinct(entries []feed.Entry) (origin []int) {
	seen := make(map[Key]bool, len(entries))
	for i := range entries {
		keys := KeysOf(&entries[i])
		first := keys[Whole]
		if keys[GuidURLTitle] != "" {
			first = keys[GuidURLTitle]
		}
		if seen[first] {
			continue
		}
		seen[first] = true
		m.entries, m.keys, origin = append(m.entries, entries[i]), append(m.keys, keys), append(origin, i)
		m.found, m.level = append(m.found, -1), append(m.level, 0)
		for _, key := range keys.All() {
			m.inDoc[key]++
		}
	}
	return origin
}

func (m *matcher) unmatched() (n int) {
	for _, f := range m.found {
		if f < 0 {
			n++
		}
	}
	return n
}

// try matches what one level can.
func (m *matcher) try(level Level) {
	for i := range m.entries {
		key := m.keys[i][level]
		if m.found[i] >= 0 || key == "" || m.inDoc[key] != 1 || len(m.inStore[key]) != 1 {
			continue
		}
		candidate := m.inStore[key][0]
		if !m.used[candidate] && m.witness(level, i, &m.known[candidate]) {
			m.found[i], m.level[i], m.used[candidate] = candidate, level, true
		}
	}
}

// witness asks what a level needs besides its key. A guid that several entries share tells nothing about any of them.
func (m *matcher) witness(level Level, i int, k *Known) bool {
	e := &m.entries[i]
	guid := strings.TrimSpace(e.GUID)
	twoGuids := guid != "" && k.GUID != "" && guid != k.GUID && m.inDoc[m.keys[i][Guid]] == 1 && m.shared[k.GUID] == 1
	sameTitle := e.Title != "" && e.Title == k.Title
	sameDate := !e.Published.IsZero() && e.Published.Unix() == k.Date.Unix()
	noDates := e.Published.IsZero() && k.Date.IsZero()
	switch level {
	case URLTitle:
		return !twoGuids || sameDate || noDates && e.ContentHash() == k.ContentHash
	case URL:
		return !twoGuids || sameDate || noDates && headlineGuid(guid, e.Title) && headlineGuid(k.GUID, k.Title)
	case GuidAnyHost:
		return sameTitle || sameDate
	case URLAnyHost:
		return !twoGuids && (sameTitle || sameDate)
	case Text:
		return guid == "" && k.GUID == "" && addressOf(e) == "" && !k.HasURL
	default:
		return true
	}
}

// headlineGuid is true when the guid is made of the title.
func headlineGuid(guid, title string) bool {
	letters := func(text string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, text)
	}
	t := letters(title)
	return t != "" && strings.Contains(letters(guid), t)
}

// identity picks the plainest key that nobody else in the feed has, and "" when there is none: then the entry is there already.
func (m *matcher) identity(i int, taken map[Key]bool) Key {
	for _, level := range []Level{Guid, GuidURL, GuidURLTitle, URL, URLTitle, Whole} {
		key := m.keys[i][level]
		if key == "" || taken[key] || len(m.inStore[key]) > 0 || level != Whole && m.inDoc[key] > 1 {
			continue
		}
		taken[key] = true
		return key
	}
	return ""
}
