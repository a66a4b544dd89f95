package task_test

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drover-jobs/drover/protocol/task"
)

// Two ways of writing one payload have one canonical form, and it says the same.
func TestCanonical(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		`{}`:                                     `{}`,
		" {\n\"b\" : 1,\t\"a\" : [ 1 , 2 ] } ":   `{"a":[1,2],"b":1}`,
		`{"a":{"z":null,"y":{"d":true,"c":[]}}}`: `{"a":{"y":{"c":[],"d":true},"z":null}}`,
		`{"a":1,"a":2}`:                          `{"a":2}`,
		`{"a":{"x":1},"a":{"y":2}}`:              `{"a":{"y":2}}`,
		`{"u":"\u00e4\/\u0041\n"}`:               `{"u":"ä/A\n"}`,
		`{"u":"<a href='x'>&"}`:                  `{"u":"<a href='x'>&"}`,
		`{"\u0061":1}`:                           `{"a":1}`,
		`{"e":"\ud83d\ude00"}`:                   `{"e":"😀"}`,
		`{"n":1.0}`:                              `{"n":1}`,
		`{"n":1e2}`:                              `{"n":100}`,
		`{"n":-0}`:                               `{"n":0}`,
		`{"n":0.0e5}`:                            `{"n":0}`,
		`{"n":12345678901234567890123}`:          `{"n":1.2345678901234567890123e22}`,
		`{"n":123456789012345678901}`:            `{"n":123456789012345678901}`,
		`{"n":9007199254740993}`:                 `{"n":9007199254740993}`,
		`{"n":0.1}`:                              `{"n":0.1}`,
		`{"n":1E-1}`:                             `{"n":0.1}`,
		`{"n":-150.50}`:                          `{"n":-150.5}`,
		`{"n":0.00000001}`:                       `{"n":1e-8}`,
		`{"n":12e-9}`:                            `{"n":1.2e-8}`,
		`{"n":1e99999999999}`:                    `{"n":1e99999999999}`,
		`{"n":[1.50,{"m":2.0}]}`:                 `{"n":[1.5,{"m":2}]}`,
	} {
		got, err := task.Canonical([]byte(payload))
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v; want %s", payload, got, err, want)
		}
	}
}

// What is not one JSON object is refused, with what it is.
func TestCanonicalRefuses(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		``: "not a JSON object", `null`: "it is null", `[1]`: "it is a JSON array", `"x"`: "it is a JSON string", `1`: "it is a JSON number",
		`{} {}`: "more than one", `{}x`: "more than one", `{"a":}`: "invalid character", `{"a":01}`: "invalid character", `{"a":NaN}`: "invalid character",
		`{"a":"` + strings.Repeat("x", task.MaxPayload) + `"}`:                    "at most",
		`{"a":` + strings.Repeat(`[`, 20_000) + strings.Repeat(`]`, 20_000) + `}`: "depth",
		`{"a":[` + strings.Repeat("1e20,", 800_000) + `1]}`:                       "written out",
	} {
		if got, err := task.Canonical([]byte(payload)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got %.40s, %v; want %q", payload, got, err, want)
		}
	}
}

// FuzzCanonical: a canonical form is one object of valid text, is its own canonical form, and keeps the value of every number.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{`{"a":[1.0,-0,1e2,0.1e-7]}`, `{"a":{"b":"\u2028<\ud800"}}`, "{\"\xff\":1,\"a\":1,\"a\":2}", `{"n":12345678901234567890.0}`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		once, err := task.Canonical(payload)
		if err != nil {
			return
		}
		twice, err := task.Canonical(once)
		if err != nil || string(twice) != string(once) || !utf8.Valid(once) {
			t.Errorf("%q becomes %q and then %q, %v", payload, once, twice, err)
		}
	})
}

// FuzzCanonicalNumber: the value of a number stays, to the last digit.
func FuzzCanonicalNumber(f *testing.F) {
	for _, seed := range []string{"0", "-0.0", "1e2", "100", "12.50e-3", "123456789012345678901234567890", "1e-300", "-9.99E+20"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 || !json.Valid([]byte(text)) || strings.Trim(text, "-+.eE0123456789") != "" {
			return
		}
		if _, exponent, ok := strings.Cut(strings.ToLower(text), "e"); ok && len(strings.TrimLeft(exponent, "-+0")) > 4 {
			return // big.Rat would take for ever
		}
		got, err := task.Canonical([]byte(`{"n":` + text + `}`))
		if err != nil {
			t.Fatal(err)
		}
		want, _ := new(big.Rat).SetString(text)
		have, ok := new(big.Rat).SetString(strings.TrimSuffix(strings.TrimPrefix(string(got), `{"n":`), `}`))
		if !ok || want.Cmp(have) != 0 {
			t.Errorf("%s becomes %s", text, got)
		}
	})
}
