package screen_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/drover-jobs/drover/console/internal/screen"
)

// What strangers wrote is shown, never obeyed; what is harmless stays as it is.
func TestClean(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"plain":            {"feed-pull", "feed-pull"},
		"wide and emoji":   {"日本 👩‍🚒 é", "日本 👩‍🚒 é"},
		"escape sequence":  {"a\x1b[2Jb", `a\x1b[2Jb`},
		"one-byte CSI":     {"a\u009b2Jb", `a\u009b2Jb`},
		"line ends":        {"a\r\nb\tc", `a\r\nb\tc`},
		"delete and null":  {"a\x7f\x00", `a\x7f\x00`},
		"not UTF-8":        {"a\xff\xc3", `a\xff\xc3`},
		"direction":        {"a\u202eb\u2066c", `a\u202eb\u2066c`},
		"line separator":   {"a\u2028b", `a\u2028b`},
		"tag characters":   {"a\U000e0041", `a\U000e0041`},
		"replacement rune": {"a\ufffd", "a\ufffd"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := screen.Clean(c.in); got != c.want {
				t.Errorf("Clean(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

// A text of several lines keeps its lines and nothing else that moves the cursor.
func TestCleanLines(t *testing.T) {
	t.Parallel()
	got := strings.Join(screen.CleanLines("one\r\n\ttwo\x1b\nthree\n\n"), "|")
	if want := `one|    two\x1b|three`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// JSON for programs means what it meant, and is as harmless on a terminal as text for people.
func TestWriteJSON(t *testing.T) {
	t.Parallel()
	value := map[string]any{
		"raw": json.RawMessage("{\"x\": \"a\u009b\u202e\U000e0041\x7f<b>\"}"), "text": "\x1b[31m\u2028",
	}
	var out bytes.Buffer
	if err := screen.WriteJSON(&out, value); err != nil {
		t.Fatal(err)
	}
	want := `{"raw":{"x":"a\u009b\u202e\udb40\udc41\u007f<b>"},"text":"\u001b[31m\u2028"}` + "\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
}

// Whatever the bytes, cleaned text is valid, shows no hostile character, and cleaning it again changes nothing.
func FuzzClean(f *testing.F) {
	for _, seed := range []string{"", "a\x1b[0m", "\u009b", "\xff", "e\u0301\u202e", "\U000e0041", `\x1b`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = s[:min(len(s), 4096)]
		got := screen.Clean(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("Clean(%q) = %q", s, got)
		}
		if again := screen.Clean(got); again != got {
			t.Errorf("cleaned twice: %q, then %q", got, again)
		}
		if width := screen.Width(screen.Cut(got, 10)); width > 10 {
			t.Errorf("Cut(%q, 10) takes %d columns", got, width)
		}
	})
}

// Cleaned JSON of any sound document is sound, harmless, and has the same strings.
func FuzzCleanJSON(f *testing.F) {
	for _, seed := range []string{`{}`, "{\"a\":\"\u009b\U000e0041\"}", `["é", 1e400, null]`, "\"\xff\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var before any
		if json.Unmarshal(data, &before) != nil {
			return
		}
		cleaned := screen.CleanJSON(data)
		var after any
		if err := json.Unmarshal(cleaned, &after); err != nil {
			t.Fatalf("CleanJSON(%q) = %q: %v", data, cleaned, err)
		}
		a, _ := json.Marshal(before)
		b, _ := json.Marshal(after)
		if !bytes.Equal(a, b) {
			t.Errorf("CleanJSON(%q) means %s, not %s", data, b, a)
		}
	})
}
