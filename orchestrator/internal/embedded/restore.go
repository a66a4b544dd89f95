package embedded

import (
	"fmt"
	"slices"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// restored is a server that is not listening yet and what is in it.
type restored struct {
	redis        *miniredis.Miniredis
	keys         int
	fieldsExpire bool // some field of a hash has a time to live
}

// restore decodes a body into a new server. What ended before now is left out.
func restore(body []byte, now time.Time) (restored, error) {
	out := restored{redis: miniredis.NewMiniRedis()}
	d := decoder{rest: body}
	for {
		r, ok := d.next()
		if !ok {
			return out, d.err
		}
		left := time.Duration(0)
		if r.expireAt > 0 {
			if left = until(r.expireAt, now); left <= 0 {
				continue
			}
		}
		db := out.redis.DB(r.db)
		if err := put(db, r, now); err != nil {
			return restored{}, fmt.Errorf("%w: key %q: %w", errDamaged, r.key, err)
		}
		if !db.Exists(r.key) {
			continue
		}
		if left > 0 {
			db.SetTTL(r.key, left)
		}
		out.keys++
		out.fieldsExpire = out.fieldsExpire || slices.ContainsFunc(r.numbers, func(end int64) bool { return end > 0 })
	}
}

// until caps what is left at a hundred years: a Duration holds less than three hundred.
func until(end int64, now time.Time) time.Duration {
	const century = 100 * 365 * 24 * time.Hour
	return time.Duration(min(end-now.UnixMilli(), century.Milliseconds())) * time.Millisecond
}

func put(db *miniredis.RedisDB, r record, now time.Time) error {
	switch r.kind {
	case kindString:
		return db.Set(r.key, r.texts[0])
	case kindHash:
		putHash(db, r, now)
	case kindList:
		if len(r.texts) > 0 {
			_, err := db.Push(r.key, r.texts...)
			return err
		}
	case kindSet:
		if len(r.texts) > 0 {
			_, err := db.SetAdd(r.key, r.texts...)
			return err
		}
	case kindZSet:
		for i, member := range r.texts {
			if _, err := db.ZAdd(r.key, r.scores[i], member); err != nil {
				return err
			}
		}
	case kindStream:
		for _, e := range r.entries {
			if _, err := db.XAdd(r.key, e.id, e.values); err != nil {
				return err
			}
		}
	}
	return nil
}

func putHash(db *miniredis.RedisDB, r record, now time.Time) {
	for i, end := range r.numbers {
		field, value := r.texts[2*i], r.texts[2*i+1]
		if end == 0 {
			db.HSet(r.key, field, value)
		} else if left := until(end, now); left > 0 {
			db.HSetEX(r.key, left, field, value)
		}
	}
}
