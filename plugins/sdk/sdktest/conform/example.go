package conform

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-jobs/drover/protocol/schema"
)

// Example makes a payload that fits a JSON Schema: the schema's own example where it has one, else the required fields with
// their examples, defaults or the least that their types allow. The error says that it found none.
func Example(text string) (json.RawMessage, error) {
	compiled, err := schema.Parse(text)
	if err != nil {
		return nil, err
	}
	payload := json.RawMessage("{}")
	if strings.TrimSpace(text) != "" {
		var root map[string]any
		if err := json.Unmarshal([]byte(text), &root); err != nil {
			return nil, fmt.Errorf("read the schema: %w", err)
		}
		value, err := exampleOf(root, maxDepth)
		if err != nil {
			return nil, err
		}
		if payload, err = json.Marshal(value); err != nil {
			return nil, fmt.Errorf("write an example: %w", err)
		}
	}
	if err := compiled.Check(payload); err != nil {
		return nil, fmt.Errorf("the example %s that was made from the schema does not fit it: %w", shown(payload), err)
	}
	return payload, nil
}

// maxDepth bounds how deep an example is.
const maxDepth = 6

// What an example has at most: characters of a text, and items of a list, which may lie in lists.
const (
	longestText = 64 << 10
	longestList = 4
)

var errNoExample = errors.New("no example could be made from the schema")

func exampleOf(s map[string]any, depth int) (any, error) {
	if depth == 0 {
		return nil, errNoExample
	}
	for _, list := range []string{"examples", "enum"} {
		if values, ok := s[list].([]any); ok && len(values) > 0 {
			return values[0], nil
		}
	}
	for _, word := range []string{"default", "const"} {
		if value, ok := s[word]; ok {
			return value, nil
		}
	}
	switch kind := kindOf(s); kind {
	case "string":
		return exampleText(s)
	case "integer", "number":
		return exampleNumber(s), nil
	case "boolean":
		return false, nil
	case "null":
		return nil, nil
	case "array":
		return exampleList(s, depth)
	case "object":
		return exampleObject(s, depth)
	default:
		return nil, fmt.Errorf("%w: it has a part without a type", errNoExample)
	}
}

// kindOf is the first type that is not null; a schema with properties and without a type is an object.
func kindOf(s map[string]any) string {
	switch kind := s["type"].(type) {
	case string:
		return kind
	case []any:
		for _, one := range kind {
			if name, ok := one.(string); ok && name != "null" {
				return name
			}
		}
		return "null"
	}
	if s["properties"] != nil {
		return "object"
	}
	return ""
}

func exampleText(s map[string]any) (any, error) {
	if s["pattern"] != nil {
		return nil, fmt.Errorf("%w: it has a pattern", errNoExample)
	}
	text := map[string]string{
		"uri": "http://127.0.0.1:9/", "email": "ada@example.com", "date": "2000-01-01", "date-time": "2000-01-01T00:00:00Z",
	}[fmt.Sprint(s["format"])]
	if text == "" {
		text = "example"
	}
	if least, ok := s["minLength"].(float64); ok && float64(len(text)) < least {
		if least > longestText {
			return nil, fmt.Errorf("%w: it wants a text of %g characters", errNoExample, least)
		}
		text += strings.Repeat("e", int(least)-len(text))
	}
	if most, ok := s["maxLength"].(float64); ok && float64(len(text)) > most {
		text = text[:int(max(0, most))]
	}
	return text, nil
}

func exampleNumber(s map[string]any) any {
	if least, ok := s["minimum"].(float64); ok {
		return least
	}
	if below, ok := s["exclusiveMinimum"].(float64); ok {
		return below + 1
	}
	if most, ok := s["maximum"].(float64); ok && most < 1 {
		return most
	}
	return 1
}

func exampleList(s map[string]any, depth int) (any, error) {
	list := []any{}
	least, _ := s["minItems"].(float64)
	items, _ := s["items"].(map[string]any)
	for range int(min(max(0, least), longestList)) {
		value, err := exampleOf(items, depth-1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	return list, nil
}

func exampleObject(s map[string]any, depth int) (any, error) {
	object := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, name := range required {
		field, ok := name.(string)
		property, isSchema := properties[field].(map[string]any)
		if !ok || !isSchema {
			return nil, fmt.Errorf("%w: it requires %v and does not describe it", errNoExample, name)
		}
		value, err := exampleOf(property, depth-1)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", field, err)
		}
		object[field] = value
	}
	return object, nil
}

// breaking makes payloads from one that fits, which are objects and do not fit; none when the schema takes them all.
func breaking(s *schema.Schema, fits json.RawMessage) []json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal(fits, &object) != nil {
		return nil
	}
	var broken []json.RawMessage
	offer := func(change func(map[string]json.RawMessage)) {
		candidate := maps.Clone(object)
		change(candidate)
		if text, err := json.Marshal(candidate); err == nil && s.Check(text) != nil {
			broken = append(broken, text)
		}
	}
	for _, field := range slices.Sorted(maps.Keys(object)) {
		offer(func(o map[string]json.RawMessage) { delete(o, field) })
		for _, other := range []string{`7`, `"x"`, `{"unexpected":true}`, `null`} {
			offer(func(o map[string]json.RawMessage) { o[field] = json.RawMessage(other) })
		}
	}
	offer(func(o map[string]json.RawMessage) { o["drover_unknown_field"] = json.RawMessage(`1`) })
	return broken
}
