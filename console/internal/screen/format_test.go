package screen_test

import (
	"math"
	"testing"
	"time"

	"github.com/drover-jobs/drover/console/internal/screen"
)

// Lengths of time and sizes are short and never claim more than there is.
func TestFormats(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{
		"0 ms":    screen.Duration(-time.Second),
		"0.01 ms": screen.Short(1),
		"0.34 ms": screen.Short(340 * time.Microsecond),
		"3.1 ms":  screen.Short(3120 * time.Microsecond),
		"45 ms":   screen.Short(45 * time.Millisecond),
		"1.2 s":   screen.Short(1200 * time.Millisecond),
		"340 ms":  screen.Duration(340 * time.Millisecond),
		"999 ms":  screen.Duration(time.Second - 1),
		"59.9 s":  screen.Duration(time.Minute - 1),
		"2m05s":   screen.Duration(125 * time.Second),
		"59m59s":  screen.Duration(time.Hour - 1),
		"3h12m":   screen.Duration(3*time.Hour + 12*time.Minute),
		"4d03h":   screen.Duration(99 * time.Hour),
		"0 B":     screen.Bytes(-1),
		"1023 B":  screen.Bytes(1023),
		"1.0 KiB": screen.Bytes(1024),
		"8.0 EiB": screen.Bytes(math.MaxInt64),
		"?":       screen.Count(-1),
		"1 cat":   screen.Things(1, "cat"),
		"0 cats":  screen.Things(0, "cat"),
		"12":      screen.Count(12),
		"":        screen.Time(time.Time{}, time.UTC),
		"[##--]":  screen.Bar(1, 2, 6),
		"[####]":  screen.Bar(9, 2, 6),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if bar := screen.Bar(1, 0, 6) + screen.Bar(1, 2, 2); bar != "" {
		t.Errorf("a bar without a total or without room is %q", bar)
	}
	if bar := screen.Bar(math.MaxUint64, math.MaxUint64, 6); bar != "[####]" {
		t.Errorf("a full bar is %q", bar)
	}
}
