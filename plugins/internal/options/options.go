// Package options reads the options of a worker strictly: every mistake is named, all at once, with what is allowed.
//
// It owns the words and the ranges of the common kinds of values, so that a duration is written the same way for every worker.
// It does not know any worker: each brings its own list of names with what to do with their values. Its functions are pure;
// callers are the workers, when they are configured.
package options

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Setter takes the value of one option, as JSON. Its error says what is wrong with the value, without the option's name.
type Setter func(value json.RawMessage) error

// Read gives each option in raw, a JSON object or nothing, to its setter. The error joins all mistakes; an option that has no
// setter is one.
func Read(worker string, raw json.RawMessage, setters map[string]Setter) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return fmt.Errorf("the options of %s are not a JSON object: %w", worker, err)
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		set, ok := setters[name]
		if !ok {
			problems = append(problems, fmt.Errorf("unknown option %q: allowed are %s", name, strings.Join(slices.Sorted(maps.Keys(setters)), ", ")))
			continue
		}
		if err := set(given[name]); err != nil {
			problems = append(problems, fmt.Errorf("option %s: %w", name, err))
		}
	}
	return errors.Join(problems...)
}

// Text takes one line that is not empty.
func Text(to *string) Setter {
	return func(value json.RawMessage) error {
		var text string
		if err := json.Unmarshal(value, &text); err != nil || strings.TrimSpace(text) == "" {
			return fmt.Errorf("%s is not a text", value)
		}
		if strings.ContainsAny(text, "\r\n") {
			return errors.New("a text of one line is wanted")
		}
		*to = text
		return nil
	}
}

// List takes a list of texts.
func List(to *[]string) Setter {
	return func(value json.RawMessage) error {
		var list []string
		if err := json.Unmarshal(value, &list); err != nil {
			return fmt.Errorf("%s is not a list of texts, such as [\"10.0.0.0/8\"]", value)
		}
		*to = list
		return nil
	}
}

// Duration takes a length of time between least and most, such as "30s", "5m" or "1d".
func Duration(to *time.Duration, least, most time.Duration) Setter {
	return func(value json.RawMessage) error {
		var text string
		var d time.Duration
		err := json.Unmarshal(value, &text)
		if err == nil {
			if days, ok := strings.CutSuffix(text, "d"); ok {
				var n uint64
				n, err = strconv.ParseUint(days, 10, 12)
				d = time.Duration(n) * 24 * time.Hour //nolint:gosec // 12 bits
			} else {
				d, err = time.ParseDuration(text)
			}
		}
		if err != nil {
			return fmt.Errorf("%s is not a duration, such as \"30s\", \"5m\" or \"1d\"", value)
		}
		if d < least || d > most {
			return fmt.Errorf("%s is out of range: allowed is %v to %v", value, least, most)
		}
		*to = d
		return nil
	}
}

// Size takes a number of bytes between 1 KiB and 1 GiB, bare or with a unit, such as "16MiB".
func Size(to *int64) Setter {
	return func(value json.RawMessage) error {
		text := strings.Trim(strings.TrimSpace(string(value)), `"`)
		unit := int64(1)
		for suffix, factor := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
			if digits, ok := strings.CutSuffix(text, suffix); ok {
				text, unit = strings.TrimSpace(digits), factor
			}
		}
		const least, most = 1 << 10, 1 << 30
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 || n > most/unit || n*unit < least {
			return fmt.Errorf("%s is not a size between 1KiB and 1GiB, such as \"16MiB\"", value)
		}
		*to = n * unit
		return nil
	}
}
