package options_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/options"
)

// values is what the options of a worker come to.
type values struct {
	name  string
	nets  []string
	pause time.Duration
	size  int64
}

func read(raw string) (values, error) {
	v := values{name: "default"}
	err := options.Read("thumbs", json.RawMessage(raw), map[string]options.Setter{
		"name": options.Text(&v.name), "nets": options.List(&v.nets),
		"pause": options.Duration(&v.pause, time.Second, 48*time.Hour), "size": options.Size(&v.size),
	})
	return v, err
}

// Sound options arrive, and what is not given keeps its default.
func TestRead(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]values{
		"": {name: "default"}, " {} ": {name: "default"}, `{"pause":"90s"}`: {name: "default", pause: 90 * time.Second},
		`{"name":"x","nets":["a","b"],"pause":"2d","size":"16MiB"}`: {name: "x", nets: []string{"a", "b"}, pause: 48 * time.Hour, size: 16 << 20},
		`{"size":2048}`: {name: "default", size: 2048}, `{"size":"1 GiB"}`: {name: "default", size: 1 << 30},
	} {
		if got, err := read(raw); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, %v; want %+v", raw, got, err, want)
		}
	}
}

// Every mistake is named with its option and what is allowed, all of them at once, and a wrong value changes nothing.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for raw, parts := range map[string][]string{
		`[]`:                                    {"the options of thumbs are not a JSON object"},
		`{"nme":"x","pause":5}`:                 {`unknown option "nme": allowed are name, nets, pause, size`, "option pause: 5 is not a duration"},
		`{"name":""}`:                           {"option name: \"\" is not a text"},
		`{"name":"a\nb"}`:                       {"one line"},
		`{"name":7,"nets":"::1"}`:               {"option name: 7", "option nets: \"::1\" is not a list"},
		`{"pause":"1ms"}`:                       {"allowed is 1s to 48h0m0s"},
		`{"pause":"3d"}`:                        {"out of range"},
		`{"pause":"999999d"}`:                   {"not a duration"},
		`{"size":"5 apples"}`:                   {"between 1KiB and 1GiB"},
		`{"size":"2GiB"}`:                       {"between 1KiB and 1GiB"},
		`{"size":12}`:                           {"between 1KiB and 1GiB"},
		`{"size":"99999999999999999999999999"}`: {"between 1KiB and 1GiB"},
	} {
		got, err := read(raw)
		for _, part := range parts {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %q", raw, err, part)
			}
		}
		if got.name != "default" || got.nets != nil || got.pause != 0 || got.size != 0 {
			t.Errorf("%s: left %+v behind", raw, got)
		}
	}
}
