package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Bounds of what a task carries, in bytes.
const (
	MaxPayload = 4 << 20
	MaxResult  = 4 << 20
)

// Canonical returns payload in the form that its ID is made from: JSON without insignificant space, object keys sorted,
// numbers and strings as their values demand, so that two ways of writing one payload give one ID. The payload must be one
// JSON object. Of a name that stands twice in an object the last value counts, as for every reader of Go's; no number is rounded.
func Canonical(payload []byte) ([]byte, error) {
	if len(payload) > MaxPayload {
		return nil, fmt.Errorf("the payload has %d bytes; at most %d are allowed: hand over a file name or an address instead", len(payload), MaxPayload)
	}
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.UseNumber()
	var value map[string]any
	if err := dec.Decode(&value); err != nil {
		var other *json.UnmarshalTypeError
		if errors.As(err, &other) {
			return nil, fmt.Errorf("the payload is not a JSON object: it is a JSON %s", other.Value)
		}
		return nil, fmt.Errorf("the payload is not a JSON object: %w", err)
	}
	if value == nil {
		return nil, errors.New("the payload is not a JSON object: it is null")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the payload is more than one JSON object")
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(canonicalNumbers(value)); err != nil { // maps are written with sorted keys
		return nil, fmt.Errorf("write the payload anew: %w", err)
	}
	canonical := bytes.TrimSuffix(out.Bytes(), []byte("\n"))
	if len(canonical) > MaxPayload {
		return nil, fmt.Errorf("the payload has %d bytes once its numbers and strings are written out; at most %d are allowed", len(canonical), MaxPayload)
	}
	return canonical, nil
}
