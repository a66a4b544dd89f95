package line_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/console/internal/line"
)

// A line becomes the commands and the words that it says; JSON may stand in it as it is.
func TestSplit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                 `[]`,
		" ; ;; ":                           `[]`,
		"status":                           `[["status"]]`,
		"queues;workers feed ; # rest":     `[["queues"] ["workers" "feed"]]`,
		"a\nb # c\nd\r\n":                  `[["a"] ["b"] ["d"]]`,
		`submit q 'a b' "c \" \\ \n d"`:    `[["submit" "q" "a b" "c \" \\ \\n d"]]`,
		`a '' b`:                           `[["a" "" "b"]]`,
		`a\ b \; \# \'`:                    `[["a b" ";" "#" "'"]]`,
		`a b#c`:                            `[["a" "b#c"]]`,
		`submit q {"a": "x; }", "b":[1]}`:  `[["submit" "q" "{\"a\": \"x; }\", \"b\":[1]}"]]`,
		`submit q a={"b": "\"}"} c=[1, 2]`: `[["submit" "q" "a={\"b\": \"\\\"}\"}" "c=[1, 2]"]]`,
		`wait $(x) a{b}`:                   `[["wait" "$(x)" "a{b}"]]`,
		`x=日本\語`:                           `[["x=日本語"]]`,
		`'open`:                            `! a quote is not closed`,
		`"open\"`:                          `! a quote is not closed`,
		`{"a":1`:                           `! a { or [ is not closed`,
		`{"a`:                              `! a { or [ is not closed`,
		`a\`:                               `! a backslash at the end`,
	} {
		commands, err := line.Split(text)
		got := fmt.Sprintf("%q", commands)
		if err != nil {
			got = "! " + err.Error()
		}
		if got != want && (err == nil || !strings.HasPrefix(got, want)) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// What is being typed is completed in the command in which it stands, and only when it is written as it is meant.
func TestUnfinished(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                `[""] true`,
		"st":              `["st"] true`,
		"status ":         `["status" ""] true`,
		"status; que":     `["que"] true`,
		"status;":         `[""] true`,
		"set a.b=":        `["set" "a.b="] true`,
		"a # b":           `[] false`,
		"a 'b":            `[] false`,
		"a 'b'":           `["a" "b"] false`,
		`a b\ c`:          `["a" "b c"] false`,
		`a 'x' b`:         `["a" "x" "b"] true`,
		`submit q {"a":1`: `[] false`,
	} {
		words, plain := line.Unfinished(text)
		if got := fmt.Sprintf("%q %v", words, plain); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// No line makes it panic; words that it returned are read again as the same when they are quoted.
func FuzzSplit(f *testing.F) {
	for _, seed := range []string{"a b; c", `submit q {"a":"}"} x=[1]`, `a 'b" c' "d\"" \e`, "# x\ny", `\`, "{[", "a=\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line.Unfinished(text)
		commands, err := line.Split(text)
		if err != nil {
			return
		}
		var again []string
		for _, words := range commands {
			var quoted []string
			for _, word := range words {
				quoted = append(quoted, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
			}
			again = append(again, strings.Join(quoted, " "))
		}
		second, err := line.Split(strings.Join(again, ";"))
		if err != nil || fmt.Sprintf("%q", second) != fmt.Sprintf("%q", commands) {
			t.Errorf("%q: %q, then %q, %v", text, commands, second, err)
		}
	})
}
