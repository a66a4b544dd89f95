package lock_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/drover-jobs/drover/orchestrator/internal/lock"
)

// Two payloads have the same lock exactly when they agree in the named fields, however they are written; a field that is
// missing takes no part.
func TestKey(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, kindA, a, kindB, b string
		fieldsA, fieldsB         []string
		same                     bool
	}{
		{"other fields differ", "pull", `{"url":"x","force":true}`, "pull", `{"url":"x"}`, []string{"url"}, []string{"url"}, true},
		{"values differ", "pull", `{"url":"x"}`, "pull", `{"url":"y"}`, []string{"url"}, []string{"url"}, false},
		{"kinds differ", "pull", `{"url":"x"}`, "push", `{"url":"x"}`, []string{"url"}, []string{"url"}, false},
		{"order of fields", "pull", `{"a":1,"b":"2"}`, "pull", ` { "b" : "2", "a":1 }`, []string{"a", "b"}, []string{"b", "a"}, true},
		{"escapes", "pull", `{"url":"a\u002fb"}`, "pull", `{"url":"a/b"}`, []string{"url"}, []string{"url"}, true},
		{"objects", "pull", `{"o":{"x":1,"y":2}}`, "pull", `{"o":{"y":2, "x":1}}`, []string{"o"}, []string{"o"}, true},
		{"missing and null", "pull", `{"a":1,"b":null}`, "pull", `{"a":1}`, []string{"a", "b"}, []string{"a", "b"}, true},
		{"swapped values", "pull", `{"a":"1","b":"2"}`, "pull", `{"a":"2","b":"1"}`, []string{"a", "b"}, []string{"a", "b"}, false},
		{"which field is missing", "pull", `{"a":"1"}`, "pull", `{"b":"1"}`, []string{"a", "b"}, []string{"a", "b"}, false},
		{"number and text", "pull", `{"a":1}`, "pull", `{"a":"1"}`, []string{"a"}, []string{"a"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a, errA := lock.NewKey(tt.kindA, tt.fieldsA, []byte(tt.a))
			b, errB := lock.NewKey(tt.kindB, tt.fieldsB, []byte(tt.b))
			if errA != nil || errB != nil {
				t.Fatal(errA, errB)
			}
			if a.IsZero() || b.IsZero() || (a == b) != tt.same {
				t.Errorf("%s and %s: the same is %v, want %v", a, b, a == b, tt.same)
			}
		})
	}
}

// No named field, or none in the payload, is no lock; a payload that is no object is an error.
func TestNoKey(t *testing.T) {
	t.Parallel()
	for _, fields := range [][]string{nil, {"url"}} {
		if k, err := lock.NewKey("pull", fields, []byte(`{"other":1}`)); err != nil || !k.IsZero() {
			t.Errorf("fields %q: %s, %v", fields, k, err)
		}
	}
	for _, payload := range []string{``, `1`, `[]`, `{"url":`, `{"url":"x"} {}`} {
		if _, err := lock.NewKey("pull", []string{"url"}, []byte(payload)); err == nil {
			t.Errorf("payload %q: no error", payload)
		}
	}
}

// Whatever a payload holds, making a key of it neither fails in another way than by an error nor gives text that cannot be shown.
func FuzzKey(f *testing.F) {
	f.Add("pull", "url", []byte(`{"url":"https://example.org/feed"}`))
	f.Add("pull", "ü", []byte(`{"ü":"`+strings.Repeat("ü", 300)+`"}`))
	f.Fuzz(func(t *testing.T, kind, field string, payload []byte) {
		k, err := lock.NewKey(kind, []string{field}, payload)
		if err == nil && !k.IsZero() && utf8.ValidString(kind) && (!utf8.ValidString(k.String()) || len(k.String()) > 300) {
			t.Errorf("%q", k)
		}
	})
}
