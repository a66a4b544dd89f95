package ledger

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/drover-jobs/drover/protocol/task"
)

// Selection chooses dead letters of a queue, the oldest first.
type Selection struct {
	Queue  string
	Filter Filter
	// DryRun counts them and changes nothing.
	DryRun bool
	// Limit is after about how many a part ends: at most changeBatch more; from 0, all at once, to MaxLimit.
	Limit int
	// Token is that of the part before; empty for the first.
	Token string
}

// Part is what became of a part of a selection.
type Part struct {
	Changed int // were changed, or would be
	Refused []Change
	// Next is the token of the next part; empty when this is the last.
	Next string
}

// ends reports whether a part is large enough, after so many letters were looked at.
func (s Selection) ends(p Part, looked int) bool {
	return s.Limit > 0 && (p.Changed+len(p.Refused) >= s.Limit || looked >= maxLooked)
}

// passage is how far a walk through the dead letters has come.
type passage struct {
	began int64 // Unix second; who died later is left alone: a letter that was retried may have died again
	at    token // the last one seen that stays: what is behind it has not been looked at
}

func (p passage) String() string { return strconv.FormatInt(p.began, 10) + "." + p.at.String() }

// passageOf begins a walk, or goes on with one.
func passageOf(s Selection) (passage, error) {
	if s.Limit < 0 || s.Limit > MaxLimit {
		return passage{}, invalid("limit: %d is not between 0 and %d; go on with the page token for more", s.Limit, MaxLimit)
	}
	if err := s.Filter.validate(); err != nil {
		return passage{}, err
	}
	if s.Token == "" {
		return passage{began: time.Now().Unix()}, nil
	}
	began, rest, _ := strings.Cut(s.Token, ".")
	second, bad := strconv.ParseInt(began, 10, 64)
	at, err := parseToken(rest, 1)
	if bad != nil || err != nil {
		return passage{}, errToken()
	}
	return passage{began: second, at: at}, nil
}

// changeDead walks through the dead letters from the oldest to the latest.
func (l *Ledger) changeDead(ctx context.Context, s Selection, how move) (Part, error) {
	way, err := passageOf(s)
	if err != nil {
		return Part{}, err
	}
	if s.DryRun {
		how = onlyCount
	}
	var part Part
	from := source{key: task.KeysOf(s.Queue).Archived(), how: "up", state: task.AsynqArchived}
	for looked := 0; ; {
		seen, more, err := l.lookAt(ctx, s.Queue, from, way.at, changeBatch)
		if err != nil {
			return part, fmt.Errorf("after %d tasks: %w", part.Changed, err)
		}
		looked += len(seen)
		chosen, late, staying := l.choose(seen, s.Filter, way)
		done, err := how(ctx, s.Queue, chosen)
		if err != nil {
			return part, fmt.Errorf("after %d tasks: %w", part.Changed, err)
		}
		for i, c := range done {
			switch {
			case c.Refused != "":
				part.Refused = append(part.Refused, c)
			case !c.ID.IsZero():
				part.Changed++
			}
			stays := c.Refused != "" || s.DryRun
			if stays && behind(seen, chosen[i].key, staying.after) {
				staying.after, staying.score = chosen[i].key, chosen[i].score
			}
		}
		way.at = staying
		switch {
		case late || !more && len(chosen) == 0 || len(seen) == 0:
			return part, nil
		case s.ends(part, looked):
			part.Next = way.String()
			return part, nil
		}
	}
}

// choose picks those of seen that fit. late says that the walk is over; staying is the last one that is not chosen.
func (l *Ledger) choose(seen []sighting, f Filter, way passage) (chosen []sighting, late bool, staying token) {
	staying = way.at
	for _, s := range seen {
		if score, err := strconv.ParseFloat(s.score, 64); err == nil && score > float64(way.began) {
			return chosen, true, staying
		}
		t := l.taskOf(s)
		if s.stored.State != task.AsynqArchived || t == nil || !f.fits(t) {
			staying.after, staying.score = s.key, s.score
			continue
		}
		chosen = append(chosen, s)
	}
	return chosen, false, staying
}

// onlyCount is the move of a dry run: nothing becomes of anybody.
func onlyCount(_ context.Context, _ string, seen []sighting) ([]Change, error) {
	changes := make([]Change, len(seen))
	for i, s := range seen {
		changes[i] = Change{ID: s.id, State: task.StateOfAsynq(s.stored.State)}
	}
	return changes, nil
}

// behind reports whether key comes after other in what was seen.
func behind(seen []sighting, key, other string) bool {
	for i := len(seen) - 1; i >= 0; i-- {
		switch seen[i].key {
		case key:
			return true
		case other:
			return false
		}
	}
	return false
}
