package screen

import (
	"fmt"
	"strconv"
	"time"
)

// Duration is d for a person: "0 ms", "340 ms", "1.2 s", "2m05s", "3h12m", "4d03h". A negative one is shown as zero.
func Duration(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(0, d)
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%02dh", d/day, d%day/time.Hour)
	}
}

// Short is d as Duration shows it, but also what is much less than a second: "0.34 ms", "3.1 ms". Anything above nothing is at least
// "0.01 ms".
func Short(d time.Duration) string {
	const oneDigit, twoDigits, least = 10 * time.Millisecond, time.Millisecond, 10 * time.Microsecond
	ms := float64(max(d, least)) / float64(time.Millisecond)
	switch {
	case d <= 0 || d >= oneDigit:
		return Duration(d)
	case d >= twoDigits:
		return fmt.Sprintf("%.1f ms", ms)
	default:
		return fmt.Sprintf("%.2f ms", ms)
	}
}

// Bytes is a size for a person, in steps of 1024: "812 B", "14.2 MiB".
func Bytes(n int64) string {
	const step = 1024
	if n < step {
		return fmt.Sprintf("%d B", max(0, n))
	}
	units := []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	size, unit := float64(n)/step, 0
	for size >= step && unit < len(units)-1 {
		size /= step
		unit++
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}

// Count is a number of things; "?" when it is negative, that is, not known now.
func Count(n int64) string {
	if n < 0 {
		return "?"
	}
	return strconv.FormatInt(n, 10)
}

// Things is so many of a thing, as in "1 worker" and "2 workers".
func Things(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Count(n) + " " + thing + "s"
}

// Time is a moment in the reader's own zone; empty when there is none.
func Time(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return ""
	}
	return t.In(zone).Format("2006-01-02 15:04:05.000 MST")
}
