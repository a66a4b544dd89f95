package ledger

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// changeDead walks through the dead letters from the oldest to the latest.
func (l *Ledger) changeDead(ctx context.Context, queue string, died fault.Kind, how move) (int, []Change, error) {
	began := time.Now().Unix()
	from := source{key: task.KeysOf(queue).Archived(), how: "up", state: task.AsynqArchived}
	var refused []Change
	changed := 0
	at := token{}
	for {
		seen, more, err := l.lookAt(ctx, queue, from, at, changeBatch)
		if err != nil {
			return changed, refused, fmt.Errorf("after %d tasks: %w", changed, err)
		}
		var chosen []sighting
		late := false
		staying := at // the last one seen that stays: what is behind it has not been looked at
		for _, s := range seen {
			if score, err := strconv.ParseFloat(s.score, 64); err == nil && score > float64(began) {
				late = true
				break
			}
			t := l.taskOf(s)
			if s.stored.State != task.AsynqArchived || t == nil || died != fault.None && faultOf(t) != died {
				staying.after, staying.score = s.key, s.score
				continue
			}
			chosen = append(chosen, s)
		}
		done, err := how(ctx, queue, chosen)
		if err != nil {
			return changed, refused, fmt.Errorf("after %d tasks: %w", changed, err)
		}
		for i, c := range done {
			switch {
			case c.Refused != "":
				refused = append(refused, c)
				if behind(seen, chosen[i].key, staying.after) {
					staying.after, staying.score = chosen[i].key, chosen[i].score
				}
			case !c.ID.IsZero():
				changed++
			}
		}
		at = staying
		if late || !more && len(chosen) == 0 || len(seen) == 0 {
			return changed, refused, nil
		}
	}
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
