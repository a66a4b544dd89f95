package settings

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// ParseDuration reads a duration as a person writes it: Go's notation without a sign, and days in front of it: "90s",
// "1h30m", "7d", "1d12h", "0". A number without a unit is refused, as nobody can know what was meant.
// The error reads on after the value: "has no unit".
func ParseDuration(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	if text == "" || !isDigit(text[0]) {
		return 0, errors.New("is not a duration")
	}
	if isDigits(text) {
		return 0, fmt.Errorf("has no unit; write %ss, %sm or %sh", text, text, text)
	}
	days, rest, found := strings.Cut(text, "d")
	if !found {
		return parseClock(text)
	}
	n, err := strconv.ParseInt(days, 10, 64)
	if err != nil || !isDigits(days) {
		return 0, errors.New("is not a duration")
	}
	if n > int64(math.MaxInt64/day) {
		return 0, errors.New("is too long")
	}
	whole := time.Duration(n) * day
	if rest == "" {
		return whole, nil
	}
	if !isDigit(rest[0]) {
		return 0, errors.New("is not a duration")
	}
	clock, err := parseClock(rest)
	if err != nil {
		return 0, err
	}
	if clock > math.MaxInt64-whole {
		return 0, errors.New("is too long")
	}
	return whole + clock, nil
}

func parseClock(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errors.New("is not a duration")
	}
	return d, nil
}

// FormatDuration writes a duration of zero or more in the shortest form that ParseDuration reads: "1m30s", "2h", "7d".
func FormatDuration(d time.Duration) string {
	days, rest := d/day, d%day
	text := rest.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	switch {
	case days == 0:
		return text
	case rest == 0:
		return fmt.Sprintf("%dd", days)
	default:
		return fmt.Sprintf("%dd%s", days, text)
	}
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isDigits(text string) bool {
	for i := range len(text) {
		if !isDigit(text[i]) {
			return false
		}
	}
	return text != ""
}
