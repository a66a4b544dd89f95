package settings

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rate is a number of tasks in a period. The zero value is no limit.
type Rate struct {
	// Tasks may begin in each period; more than 0 unless there is no limit.
	Tasks int
	// Per is the period: a second, a minute or an hour.
	Per time.Duration
}

// maxRateTasks keeps the arithmetic of rates exact.
const maxRateTasks = 1_000_000_000

// ParseRate reads a rate as a person writes it: "10/s", "600/m", "5/h", or "off" and "0" for no limit.
// The error reads on after the value: "is too large".
func ParseRate(text string) (Rate, error) {
	if text == "off" || text == "0" {
		return Rate{}, nil
	}
	number, unit, found := strings.Cut(text, "/")
	if !found || !isDigits(number) {
		return Rate{}, errors.New("is not a rate")
	}
	var per time.Duration
	switch unit {
	case "s":
		per = time.Second
	case "m":
		per = time.Minute
	case "h":
		per = time.Hour
	default:
		return Rate{}, fmt.Errorf("has the period %q, which is not known; periods are s, m and h", unit)
	}
	n, err := strconv.Atoi(number)
	if err != nil || n > maxRateTasks {
		return Rate{}, errors.New("is too large")
	}
	if n == 0 {
		return Rate{}, nil
	}
	return Rate{Tasks: n, Per: per}, nil
}

// Off reports whether there is no limit.
func (r Rate) Off() bool { return r.Tasks <= 0 || r.Per <= 0 }

// PerSecond is the rate in tasks a second; 0 when there is no limit.
func (r Rate) PerSecond() float64 {
	if r.Off() {
		return 0
	}
	return float64(r.Tasks) / r.Per.Seconds()
}

// String writes the rate as ParseRate reads it.
func (r Rate) String() string {
	if r.Off() {
		return "off"
	}
	var unit string
	switch r.Per {
	case time.Second:
		unit = "s"
	case time.Minute:
		unit = "m"
	default:
		unit = "h"
	}
	return fmt.Sprintf("%d/%s", r.Tasks, unit)
}

func compareRates(a, b Rate) int { return cmp.Compare(a.PerSecond(), b.PerSecond()) }
