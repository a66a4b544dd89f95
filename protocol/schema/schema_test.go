package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/schema"
)

// pull is a payload like those of real workers.
type pull struct {
	URL   string          `json:"url" jsonschema:"the address"`
	Limit int             `json:"limit,omitempty"`
	Tags  []string        `json:"tags,omitempty"`
	Extra json.RawMessage `json:"extra,omitempty"`
	Inner struct {
		Age *int `json:"age,omitempty"`
	} `json:"inner,omitzero"`
}

// The schema of a Go type accepts what its JSON decoding accepts, and what it refuses is named by its field.
func TestDerivedSchemaNamesTheField(t *testing.T) {
	t.Parallel()
	text, err := schema.For[pull]()
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for payload, want := range map[string]string{
		`{"url":"x"}`: "",
		`{"url":"x","limit":3,"tags":["a"],"extra":{"any":[1]},"inner":{"age":1}}`: "",
		`{"url":"x","extra":7}`:           "",
		`{}`:                              `url: missing`,
		`{"url":7}`:                       "url: ",
		`{"url":"x","limit":"many"}`:      "limit: ",
		`{"url":"x","limit":1.5}`:         "limit: ",
		`{"url":"x","tags":["a",1]}`:      "tags[]: ",
		`{"url":"x","inner":{"age":"1"}}`: "inner.age: ",
		`{"url":"x","lmit":1}`:            `lmit: no such field`,
		`[]`:                              "not a JSON object",
		`null`:                            "not a JSON object",
		`"x"`:                             "not a JSON object",
		`{`:                               "not JSON",
		``:                                "not JSON",
	} {
		check(t, s, payload, want)
	}
}

func check(t *testing.T, s *schema.Schema, payload, want string) {
	t.Helper()
	err := s.Check([]byte(payload))
	if want == "" && err != nil {
		t.Errorf("%s was refused: %v", payload, err)
	}
	if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("%s: got %v, want %q", payload, err, want)
	}
}

// Schemas written by hand work with the keywords that people use, and name the field through references too.
func TestHandWrittenSchemas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ schema, payload, want string }{
		{``, `{"any":1}`, ""},
		{" \n", `[]`, "not a JSON object"},
		{`true`, `{}`, ""},
		{`false`, `{}`, "not"},
		{`{"properties":{"a":{"enum":["x","y"]}}}`, `{"a":"z"}`, "a: "},
		{`{"properties":{"a/b":{"properties":{"c~d":{"minimum":3}}}}}`, `{"a/b":{"c~d":1}}`, "a/b.c~d: "},
		{`{"$defs":{"u":{"type":"string","pattern":"^h"}},"properties":{"a":{"$ref":"#/$defs/u"}}}`, `{"a":"z"}`, "a: pattern"},
		{`{"$defs":{"u":{"pattern":"^h"}},"properties":{"a":{"items":{"$ref":"#/$defs/u"}}}}`, `{"a":["z"]}`, "a[]: pattern"},
		{`{"properties":{"a":{"additionalProperties":{"type":"string"}}}}`, `{"a":{"z":1}}`, "a.*: "},
		{`{"properties":{"a":{"$ref":"#"}},"additionalProperties":false}`, `{"a":{"a":{}}}`, ""},
		{`{"properties":{"a":{"$ref":"#"}},"additionalProperties":false}`, `{"a":{"a":{"b":1}}}`, `a.a.b: no such field`},
		{`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, `"a"`},
		{`{"$id":"https://example.org/s","properties":{"$id":{"type":"string"}}}`, `{"$id":1}`, "$id: "},
		{`{"properties":{"a":{"maximum":9007199254740993}}}`, `{"a":1}`, ""},
	} {
		s, err := schema.Parse(c.schema)
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		check(t, s, c.payload, c.want)
	}
	var none *schema.Schema
	check(t, none, `{"a":1}`, "")
	check(t, none, `1`, "not a JSON object")
}

// A schema that is not sound is refused with its reason; above all one whose check would not end.
func TestUnsoundSchemas(t *testing.T) {
	t.Parallel()
	wide := `{"$defs":{"a0":{}`
	for i := range 30 {
		wide += fmt.Sprintf(`,"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]}`, i+1, i, i)
	}
	wide += `},"$ref":"#/$defs/a30"}`
	for text, want := range map[string]string{
		`{`:                                "not sound",
		`[]`:                               "must be a JSON object",
		`{} {}`:                            "something follows",
		`{"pattern":"("}`:                  "pattern",
		`{"$ref":"#/nope"}`:                "does not have",
		`{"$ref":"http://x/y"}`:            `only "#"`,
		`{"$ref":"#anchor"}`:               `only "#"`,
		`{"$ref":1}`:                       `only "#"`,
		`{"$dynamicRef":"#"}`:              `use "$ref"`,
		`{"$ref":"#"}`:                     "refers to itself",
		`{"$REF":"#"}`:                     `write "$ref"`,
		`{"allOf":[{"not":{"$ref":"#"}}]}`: "refers to itself",
		`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"anyOf":[{"$ref":"#/$defs/a"}]}},"properties":{"x":{"$ref":"#/$defs/a"}}}`: "refers to itself",
		`{"dependentSchemas":{"a":{"$ref":"#"}}}`:               "refers to itself",
		`{"properties":{"x":{"if":{"$ref":"#/properties/x"}}}}`: "refers to itself",
		`{"properties":{"x":{"$id":"y","$ref":"#"}}}`:           "only the whole schema",
		`{"allOf":[{"$ref":"#/allOf/00"}]}`:                     "refers to itself",
		wide:                                                    "more than",
		strings.Repeat(" ", 2<<20) + `{}`:                       "bytes",
	} {
		if _, err := schema.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.100s: got %v, want %q", text, err, want)
		}
	}
}

// A Go type without a schema is an error for its author, and a raw payload accepts every object.
func TestForOddTypes(t *testing.T) {
	t.Parallel()
	if _, err := schema.For[chan int](); err == nil || !strings.Contains(err.Error(), "by hand") {
		t.Errorf("got %v", err)
	}
	for name, derive := range map[string]func() (string, error){"raw": schema.For[json.RawMessage], "any": schema.For[any]} {
		if text, err := derive(); err != nil || text != "" {
			t.Errorf("%s: got %q, %v", name, text, err)
		}
	}
	text, err := schema.For[map[string]time.Time]()
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	check(t, s, `{"at":"2026-01-02T03:04:05Z"}`, "")
}

// A message quotes the payload, so it is bounded and stays valid text.
func TestMessagesAreBounded(t *testing.T) {
	t.Parallel()
	s, err := schema.Parse(`{"properties":{"a":{"type":"integer"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	err = s.Check([]byte(`{"a":"` + strings.Repeat("ä", 1<<20) + `"}`))
	if err == nil || len(err.Error()) > 2<<10 {
		t.Errorf("got a message of %d bytes", len(fmt.Sprint(err)))
	}
}

// FuzzSchema checks whatever payload against whatever schema: each is an answer, never a panic or an endless check.
func FuzzSchema(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"a":1}`},
		{`{"$defs":{"u":{"$ref":"#"}},"properties":{"a":{"$ref":"#/$defs/u"}}}`, `{"a":{"a":{}}}`},
		{`{"allOf":[{"if":{"required":["a"]},"then":{"minProperties":2}}],"unevaluatedProperties":false}`, `{"a":[]}`},
		{`{"patternProperties":{"^a":{"items":{"multipleOf":0.1}}},"propertyNames":{"maxLength":1}}`, `{"ab":[0.3]}`},
		{`{"prefixItems":[true],"contains":{"const":1},"uniqueItems":true,"dependencies":{"a":["b"]}}`, `{}`},
		{`{"$ref":"#/allOf/0","allOf":[{"$ref":"#/allOf/0"}]}`, `{}`},
		{`{"$anchor":"a","format":"uri","enum":[{}],"type":["object","null"]}`, `{}`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(_ *testing.T, text, payload string) {
		if s, err := schema.Parse(text); err == nil {
			_ = s.Check([]byte(payload))
		}
	})
}
