package pull

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

	"github.com/drover-jobs/drover/plugins/internal/feed"
	"github.com/drover-jobs/drover/plugins/internal/feedstore"
	"github.com/drover-jobs/drover/plugins/internal/fetch"
)

// options is what the configuration of the plugin comes to.
type options struct {
	store  string
	fetch  fetch.Config
	policy feed.Policy
	// icons is whether the icons of feeds are looked for.
	icons bool
}

// setters says what each option does with its value: the one list of what is allowed.
func (o *options) setters() map[string]func(json.RawMessage) error {
	return map[string]func(json.RawMessage) error{
		"store":          func(v json.RawMessage) error { return text(v, &o.store) },
		"allow_networks": func(v json.RawMessage) error { return list(v, &o.fetch.AllowNetworks) },
		"user_agent":     func(v json.RawMessage) error { return text(v, &o.fetch.UserAgent) },
		"timeout":        func(v json.RawMessage) error { return duration(v, &o.fetch.Timeout) },
		"max_bytes": func(v json.RawMessage) error {
			err := size(v, &o.fetch.MaxBody)
			o.fetch.MaxWire = o.fetch.MaxBody
			return err
		},
		"interval":      func(v json.RawMessage) error { return duration(v, &o.policy.Interval) },
		"penalty_first": func(v json.RawMessage) error { return duration(v, &o.policy.FirstPenalty) },
		"penalty_max":   func(v json.RawMessage) error { return duration(v, &o.policy.MaxPenalty) },
		"icons":         func(v json.RawMessage) error { return yes(v, &o.icons) },
		"move_after":    func(v json.RawMessage) error { return duration(v, &o.policy.MoveAfter) },
	}
}

// parseOptions reads the plugin's options strictly: every mistake is named, with what is allowed.
func parseOptions(raw json.RawMessage) (options, error) {
	o := options{store: feedstore.DefaultAddress, policy: feed.DefaultPolicy(), icons: true}
	if len(bytes.TrimSpace(raw)) == 0 {
		return o, nil
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return o, fmt.Errorf("the options of feed-pull are not a JSON object: %w", err)
	}
	setters := o.setters()
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
	if len(problems) == 0 && o.policy.MaxPenalty < o.policy.FirstPenalty {
		problems = append(problems, fmt.Errorf("option penalty_max: %v is shorter than penalty_first, %v", o.policy.MaxPenalty, o.policy.FirstPenalty))
	}
	return o, errors.Join(problems...)
}

func text(raw json.RawMessage, to *string) error {
	if err := json.Unmarshal(raw, to); err != nil || strings.TrimSpace(*to) == "" {
		return fmt.Errorf("%s is not a text", raw)
	}
	if strings.ContainsAny(*to, "\r\n") {
		return errors.New("a text of one line is wanted")
	}
	return nil
}

func yes(raw json.RawMessage, to *bool) error {
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("%s is neither true nor false", raw)
	}
	return nil
}

func list(raw json.RawMessage, to *[]string) error {
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("%s is not a list of texts, such as [\"10.0.0.0/8\"]", raw)
	}
	return nil
}

func duration(raw json.RawMessage, to *time.Duration) error {
	var value string
	err := json.Unmarshal(raw, &value)
	if err == nil {
		if days, ok := strings.CutSuffix(value, "d"); ok {
			var n uint64
			n, err = strconv.ParseUint(days, 10, 12)
			*to = time.Duration(n) * 24 * time.Hour //nolint:gosec // 12 bits
		} else {
			*to, err = time.ParseDuration(value)
		}
	}
	if err != nil || *to <= 0 {
		return fmt.Errorf("%s is not a duration, such as \"30s\", \"5m\" or \"1d\"", raw)
	}
	return nil
}

// size reads a number of bytes, bare or with a unit.
func size(raw json.RawMessage, to *int64) error {
	value := strings.Trim(strings.TrimSpace(string(raw)), `"`)
	unit := int64(1)
	for suffix, factor := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		if digits, ok := strings.CutSuffix(value, suffix); ok {
			value, unit = strings.TrimSpace(digits), factor
		}
	}
	n, err := strconv.ParseInt(value, 10, 64)
	const least, most = 1 << 10, 1 << 30
	if err != nil || n <= 0 || n > most/unit || n*unit < least {
		return fmt.Errorf("%s is not a size between 1KiB and 1GiB, such as \"16MiB\"", raw)
	}
	*to = n * unit
	return nil
}
