package feedread

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	numericDate = regexp.MustCompile(`(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})`)
	namedDate   = regexp.MustCompile(`(?i)\b(\d{1,2})(?:st|nd|rd|th)?[\s.,-]*(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[\s.,-]*(\d{4}|\d{2})\b`)
	usDate      = regexp.MustCompile(`(?i)\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[\s.]*(\d{1,2})(?:st|nd|rd|th)?,?\s+(\d{4})\b`)
	clock       = regexp.MustCompile(`(?i)(\d{1,2}):(\d{2})(?::(\d{2}))?(?:[.,]\d+)?\s*([ap]\.?m\.?)?`)
	offset      = regexp.MustCompile(`^\s*(?:[A-Z]{1,5})?\s*([+-])(\d{1,2}):?(\d{2})?`)
	zoneName    = regexp.MustCompile(`^\s*([A-Z]{1,5})\b`)
)

// zones holds the names that feeds use, in minutes east of UTC. RFC 822 names the American ones; the others are customary.
var zones = map[string]int{ //nolint:gochecknoglobals // a table; never written
	"EST": -300, "EDT": -240, "CST": -360, "CDT": -300, "MST": -420, "MDT": -360, "PST": -480, "PDT": -420,
	"AKST": -540, "AKDT": -480, "HST": -600, "BST": 60, "IST": 330, "WET": 0, "WEST": 60, "CET": 60, "CEST": 120, "MEZ": 60,
	"MESZ": 120, "EET": 120, "EEST": 180, "MSK": 180, "MSD": 240, "JST": 540, "KST": 540, "AEST": 600, "AEDT": 660, "NZST": 720, "NZDT": 780,
}

// ParseDate reads a date in any of the spellings that feeds use, by looking for its parts instead of trying layouts. A missing
// time is midnight, a missing or unknown zone UTC. It answers false when there is no whole date.
func ParseDate(text string) (time.Time, bool) {
	text = strings.TrimSpace(text)
	if len(text) > 100 {
		return time.Time{}, false
	}
	year, month, day, ok := dayOf(text)
	if !ok {
		return time.Time{}, false
	}
	hour, minute, second, zone := 0, 0, 0, 0
	if m := clock.FindStringSubmatchIndex(text); m != nil {
		part := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return text[m[2*i]:m[2*i+1]]
		}
		hour, minute, second = atoi(part(1)), atoi(part(2)), atoi(part(3))
		switch half := strings.ToLower(strings.ReplaceAll(part(4), ".", "")); {
		case half == "pm" && hour < 12:
			hour += 12
		case half == "am" && hour == 12:
			hour = 0
		}
		zone = zoneOf(text[m[1]:])
	}
	if hour > 24 || minute > 59 || second > 60 {
		return time.Time{}, false
	}
	t := time.Date(year, month, day, hour, minute, second, 0, time.UTC)
	if t.Day() != day && hour < 24 || !plausible(t) { // the 31st of February
		return time.Time{}, false
	}
	return t.Add(-time.Duration(zone) * time.Minute), true
}

func dayOf(text string) (year int, month time.Month, day int, ok bool) {
	switch {
	case numericDate.MatchString(text):
		m := numericDate.FindStringSubmatch(text)
		year, month, day = atoi(m[1]), time.Month(atoi(m[2])), atoi(m[3])
	case namedDate.MatchString(text):
		m := namedDate.FindStringSubmatch(text)
		year, month, day = atoi(m[3]), monthOf(m[2]), atoi(m[1])
		if len(m[3]) == 2 { // RFC 822
			year += 2000
			if year >= 2070 {
				year -= 100
			}
		}
	case usDate.MatchString(text):
		m := usDate.FindStringSubmatch(text)
		year, month, day = atoi(m[3]), monthOf(m[1]), atoi(m[2])
	default:
		return 0, 0, 0, false
	}
	return year, month, day, month >= 1 && month <= 12 && day >= 1 && day <= 31
}

func monthOf(name string) time.Month {
	return time.Month(strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", strings.ToLower(name))/3 + 1)
}

// zoneOf reads what stands behind the time, in minutes east of UTC.
func zoneOf(text string) int {
	if m := offset.FindStringSubmatch(text); m != nil {
		minutes := atoi(m[2])*60 + atoi(m[3])
		if minutes > 14*60 {
			return 0
		}
		if m[1] == "-" {
			return -minutes
		}
		return minutes
	}
	if m := zoneName.FindStringSubmatch(text); m != nil {
		return zones[m[1]]
	}
	return 0
}

// plausible keeps out the year zero and what overflows a store.
func plausible(t time.Time) bool { return t.Year() >= 1970 && t.Year() < 3000 }

func atoi(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
