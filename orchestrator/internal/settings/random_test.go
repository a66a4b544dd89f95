package settings_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// anyValue writes a value for the setting: mostly a good one, often at the edge, sometimes nonsense.
func anyValue(r *rand.Rand, s settings.Setting) string {
	switch r.IntN(10) {
	case 0:
		return []string{"", "-1", "off", "0", "12", "1.5", "9999999999", "10/s", "5m", "1GiB", "system", "\xff", "100d"}[r.IntN(13)]
	case 1:
		return s.Default
	case 2:
		if s.Kind != settings.KindChoice {
			return []string{s.Min, s.Max}[r.IntN(2)]
		}
	}
	switch s.Kind {
	case settings.KindCount:
		return fmt.Sprint(r.IntN(200))
	case settings.KindDuration:
		return settings.FormatDuration(time.Duration(r.Int64N(int64(3 * time.Hour))))
	case settings.KindBytes:
		return settings.Bytes(r.Int64N(int64(4 * settings.GiB))).String()
	case settings.KindRate:
		return settings.Rate{Tasks: r.IntN(2000), Per: []time.Duration{time.Second, time.Minute, time.Hour}[r.IntN(3)]}.String()
	default:
		return s.Choices[r.IntN(len(s.Choices))]
	}
}

// anyChanges makes one to four changes to the queues named, now and then to one that does not exist.
func anyChanges(r *rand.Rand, queues []string) []settings.Change {
	table := settings.Describe()
	changes := make([]settings.Change, 1+r.IntN(4))
	for i := range changes {
		s := table[r.IntN(len(table))]
		c := settings.Change{Name: s.Name, Value: anyValue(r, s), Unset: r.IntN(8) == 0}
		if s.Scope == settings.ScopeQueue {
			c.Queue = queues[r.IntN(len(queues))]
		}
		if r.IntN(40) == 0 {
			c.Queue = "nowhere"
		}
		if r.IntN(40) == 0 {
			c.Name += "x"
		}
		changes[i] = c
	}
	return changes
}
