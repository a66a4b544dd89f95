// Package schema checks payloads against the JSON Schema (2020-12) that a worker declares for its kind of task.
//
// The client checks before it submits, the manager before it hands a task to a process, with the same words. The package
// owns no connection and starts nothing. Schemas come from worker programs and from Redis: an unsound one is an error, never a
// panic, nor a check that does not end. References stay inside the schema: "#" and "#/..." only.
package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is a compiled JSON Schema. The zero value and nil accept every JSON object. It is safe for concurrent use.
type Schema struct {
	resolved *jsonschema.Resolved
}

// maxText bounds a schema, in bytes.
const maxText = 1 << 20

// For derives the schema of the Go type T from its json and jsonschema tags, as JSON text. A json.RawMessage may be any
// value; for a T that is one, or an interface, the text is empty, which accepts every JSON object.
func For[T any]() (string, error) {
	raw := reflect.TypeFor[json.RawMessage]()
	if t := reflect.TypeFor[T](); t == raw || t.Kind() == reflect.Interface {
		return "", nil
	}
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{raw: {}}})
	if err != nil {
		return "", fmt.Errorf("derive a JSON Schema: %w; write the schema by hand", err)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("write a derived JSON Schema: %w", err)
	}
	return string(text), nil
}

// Parse compiles a schema; an empty text accepts every JSON object.
func Parse(text string) (*Schema, error) {
	if strings.TrimSpace(text) == "" {
		return &Schema{}, nil
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("the payload's JSON Schema has %d bytes; at most %d are allowed", len(text), maxText)
	}
	plain, err := checkReferences(text)
	if err != nil {
		return nil, fmt.Errorf("the payload's JSON Schema is not sound: %w", err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(plain, &s); err != nil {
		return nil, fmt.Errorf("the payload's JSON Schema is not sound: %w", err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("the payload's JSON Schema is not sound: %w", err)
	}
	return &Schema{resolved: resolved}, nil
}

// Check reports what is wrong with a payload, naming the field; nil when it fits.
func (s *Schema) Check(payload []byte) error {
	var value any
	if err := json.Unmarshal(payload, &value); err != nil {
		if _, broken := errors.AsType[*json.SyntaxError](err); broken {
			return errors.New(bounded("the payload is not JSON: " + err.Error()))
		}
		return errors.New(bounded("the payload cannot be read: " + err.Error()))
	}
	if _, ok := value.(map[string]any); !ok {
		return errors.New("the payload is not a JSON object")
	}
	if s == nil || s.resolved == nil {
		return nil
	}
	if err := s.resolved.Validate(value); err != nil {
		return errors.New(readable(err.Error()))
	}
	return nil
}
