package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// maxExpansion bounds how many schemas apply to one value once all references are followed.
const maxExpansion = 10_000

// checkReferences refuses what would make a check endless. A schema that refers to itself for the same value, directly or
// through others, sends the validator into a recursion that ends the whole process, since an overflow of the stack cannot be
// caught; and references that fan out over and over keep it busy for years.
//
// It returns the schema as it was understood here, written anew: the validator reads member names in any mixture of
// cases, and would find references that stand twice or in other letters.
func checkReferences(text string) ([]byte, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var root any
	if err := decoder.Decode(&root); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows it")
	}
	switch root.(type) {
	case map[string]any, bool:
	default:
		return nil, errors.New("it must be a JSON object, or true or false")
	}
	c := &references{root: root, cost: map[string]int{}}
	if err := c.walk("", root); err != nil {
		return nil, err
	}
	return json.Marshal(root)
}

// references is one check. A schema is known by its JSON pointer.
type references struct {
	root any
	cost map[string]int // how many schemas apply with this one; inProgress while that is being counted
}

const inProgress = -1

// Keywords by what stands at them.
const (
	nothing   = iota
	inPlace   // a schema, or a list of them, for the same value
	namedHere // an object whose members are schemas for the same value
	below     // a schema, or a list of them, for a part of the value
	namedPart // an object whose members are schemas for parts of the value, or for whoever refers to them
)

// checkCase refuses a keyword in other letters.
func checkCase(pointer, keyword string) error {
	for _, known := range []string{
		"$id", "$ref", "$dynamicRef", "$recursiveRef", "$defs", "definitions", "allOf", "anyOf", "oneOf", "not", "if", "then", "else",
		"dependentSchemas", "dependencies", "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains",
		"additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema", "properties", "patternProperties",
		"type", "required", "enum", "const", "pattern",
	} {
		if keyword != known && strings.EqualFold(keyword, known) {
			return fmt.Errorf("it has %q at %q: write %q", keyword, "#"+pointer, known)
		}
	}
	return nil
}

func kindOf(keyword string) int {
	switch keyword {
	case "allOf", "anyOf", "oneOf", "not", "if", "then", "else":
		return inPlace
	case "dependentSchemas", "dependencies":
		return namedHere
	case "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains", "additionalProperties",
		"unevaluatedProperties", "propertyNames", "contentSchema":
		return below
	case "properties", "patternProperties", "$defs", "definitions":
		return namedPart
	default:
		return nothing
	}
}

// walk counts every schema in the text.
func (c *references) walk(pointer string, schema any) error {
	if _, err := c.count(pointer, schema); err != nil {
		return err
	}
	object, _ := schema.(map[string]any)
	for keyword, value := range object {
		if kindOf(keyword) == nothing {
			continue
		}
		for at, sub := range schemasAt(pointer+"/"+escape(keyword), value, kindOf(keyword)) {
			if err := c.walk(at, sub); err != nil {
				return err
			}
		}
	}
	return nil
}

// count returns how many schemas apply to a value that this one is applied to.
func (c *references) count(pointer string, schema any) (int, error) {
	switch n, known := c.cost[pointer]; {
	case known && n == inProgress:
		return 0, fmt.Errorf("%q refers to itself without going into the value: no check of it would end", "#"+pointer)
	case known:
		return n, nil
	}
	object, _ := schema.(map[string]any)
	c.cost[pointer] = inProgress
	total := 1
	for keyword, value := range object {
		n, err := c.countAt(pointer, keyword, value)
		if err = errors.Join(err, checkCase(pointer, keyword)); err != nil {
			return 0, err
		}
		if total += n; total > maxExpansion {
			return 0, fmt.Errorf("more than %d schemas apply to one value at %q", maxExpansion, "#"+pointer)
		}
	}
	c.cost[pointer] = total
	return total, nil
}

func (c *references) countAt(pointer, keyword string, value any) (int, error) {
	switch keyword {
	case "$id":
		if pointer != "" {
			return 0, fmt.Errorf("it has a \"$id\" at %q: only the whole schema may have one", "#"+pointer)
		}
		return 0, nil
	case "$dynamicRef", "$recursiveRef":
		return 0, fmt.Errorf("it has a %q at %q: use \"$ref\"", keyword, "#"+pointer)
	case "$ref":
		return c.countTarget(pointer, value)
	}
	if kind := kindOf(keyword); kind == inPlace || kind == namedHere {
		total := 0
		for at, sub := range schemasAt(pointer+"/"+escape(keyword), value, kind) {
			n, err := c.count(at, sub)
			if err != nil {
				return 0, err
			}
			total = min(total+n, maxExpansion+1)
		}
		return total, nil
	}
	return 0, nil
}

func (c *references) countTarget(pointer string, value any) (int, error) {
	reference, _ := value.(string)
	target, ok := strings.CutPrefix(reference, "#")
	if !ok || target != "" && !strings.HasPrefix(target, "/") || strings.Contains(target, "%") {
		return 0, fmt.Errorf("it refers to %.100q at %q: only \"#\" and \"#/...\" are allowed", reference, "#"+pointer)
	}
	schema, err := c.find(target)
	if err != nil {
		return 0, err
	}
	return c.count(target, schema)
}

// find returns what a JSON pointer points to.
func (c *references) find(pointer string) (any, error) {
	at := c.root
	for _, step := range strings.Split(pointer, "/")[1:] {
		found := false
		switch value := at.(type) {
		case map[string]any:
			at, found = value[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		case []any:
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(value) {
				at, found = value[i], true
			}
		}
		if !found {
			return nil, fmt.Errorf("it refers to %.100q, which it does not have", "#"+pointer)
		}
	}
	return at, nil
}

// schemasAt returns the schemas that stand at a keyword, by their pointers.
func schemasAt(pointer string, value any, kind int) map[string]any {
	all := map[string]any{}
	object, isObject := value.(map[string]any)
	list, isList := value.([]any)
	switch {
	case isList:
		for i, sub := range list {
			all[pointer+"/"+strconv.Itoa(i)] = sub
		}
	case isObject && (kind == namedHere || kind == namedPart):
		for name, sub := range object {
			all[pointer+"/"+escape(name)] = sub
		}
	case isObject:
		all[pointer] = value
	}
	return all
}

func escape(step string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(step) }
