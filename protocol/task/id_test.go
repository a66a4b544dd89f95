package task_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/protocol/task"
)

// Names of queues, plugins and kinds are what is safe in a file name, a Redis key and a command line.
func TestCheckName(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"feed-pull": true, "a": true, "9x": true, "a.b_c-d": true, strings.Repeat("x", 64): true,
		"": false, "-a": false, ".a": false, "_a": false, "A": false, "a b": false, "a:b": false, "a{b}": false, "ä": false, "a\n": false,
		strings.Repeat("x", 65): false, "a/b": false,
	} {
		if err := task.CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// An ID reads back from its text, also with the keys that foreign clients make, and unsound ones are refused.
func TestParseID(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"feed-pull:abc": true, "q:6ba7b810-9dad-11d1-80b4-00c04fd430c8": true, "q:a:b:c": true, "q:ä/ö?": true,
		"q:" + strings.Repeat("k", task.MaxKey): true,
		"":                                      false, "q": false, "q:": false, ":k": false, "Q:k": false, "q k:x": false, "q:a b": false, "q:a{b}": false, "q:a\tb": false,
		"q:a\x1b[31m": false, "q:a\x00": false, "q:\xff": false, "q:a\u00a0b": false, "q:a\u2028b": false,
		"q:" + strings.Repeat("k", task.MaxKey+1): false,
	} {
		id, err := task.ParseID(text)
		if (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
		if err == nil && id.String() != text {
			t.Errorf("%q reads back as %q", text, id)
		}
		if err != nil && !id.IsZero() {
			t.Errorf("%q: %v besides the error", text, id)
		}
	}
}

// An ID in JSON is its text, as a value and as a key of an object.
func TestIDInJSON(t *testing.T) {
	t.Parallel()
	id := task.RandomID("q")
	text, err := json.Marshal(map[task.ID]task.ID{id: id})
	if err != nil || string(text) != `{"`+id.String()+`":"`+id.String()+`"}` {
		t.Errorf("got %s, %v", text, err)
	}
	var back map[task.ID]task.ID
	if err := json.Unmarshal(text, &back); err != nil || back[id] != id {
		t.Errorf("got %v, %v", back, err)
	}
	var unsound task.ID
	if err := json.Unmarshal([]byte(`"nothing"`), &unsound); err == nil {
		t.Error("an unsound ID was read")
	}
}

// The ID of work depends on its kind and content alone, and never changes between releases: tasks in Redis have it.
func TestContentID(t *testing.T) {
	t.Parallel()
	id := task.ContentID("q", "feed-pull", []byte(`{"url":"x"}`))
	if want := "q:zon35z4w2gl4euqi7itucdc4z4"; id.String() != want {
		t.Errorf("got %s, want %s", id, want)
	}
	if other := task.ContentID("other", "feed-pull", []byte(`{"url":"x"}`)); other.Key != id.Key {
		t.Error("the key depends on the queue")
	}
	for _, other := range []task.ID{
		task.ContentID("q", "feed-pul", []byte(`l{"url":"x"}`)), task.ContentID("q", "feed-pull", []byte(`{"url":"y"}`)), task.RandomID("q"), task.RandomID("q"),
	} {
		if other == id {
			t.Errorf("%v is the ID of other work", id)
		}
	}
	if parsed, err := task.ParseID(id.String()); err != nil || parsed != id {
		t.Errorf("got %v, %v", parsed, err)
	}
}

// FuzzParseID reads whatever text: what it accepts reads back the same.
func FuzzParseID(f *testing.F) {
	for _, seed := range []string{"q:k", "feed-pull:a:b", "", "q:\xff", "q:{"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if id, err := task.ParseID(text); err == nil && id.String() != text {
			t.Errorf("%q reads back as %q", text, id)
		}
	})
}
