package orchestrator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"go.yaml.in/yaml/v4"
)

// maxOptionsDepth is far beyond what a person writes and far below what hurts a reader of JSON.
const maxOptionsDepth = 32

// options turns the YAML of a plugin's options into a JSON object. Values are never shown in a problem: they may be secrets.
func (d *decoder) options(path string, n *yaml.Node) json.RawMessage {
	empty := json.RawMessage("{}")
	if isNull(n) {
		return empty
	}
	if n.Kind != yaml.MappingNode {
		d.add(n, ConfigProblem{Path: path, Reason: "is " + describe(n), Allowed: "keys with values"})
		return empty
	}
	value := d.jsonValue(path, n, 0)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		d.add(n, ConfigProblem{Path: path, Reason: "cannot be written as JSON: " + err.Error()})
		return empty
	}
	return bytes.TrimSpace(out.Bytes())
}

func (d *decoder) jsonValue(path string, n *yaml.Node, depth int) any {
	if depth > maxOptionsDepth {
		d.add(n, ConfigProblem{Path: path, Reason: "is nested too deeply", Allowed: fmt.Sprintf("%d levels", maxOptionsDepth)})
		return nil
	}
	if n.Kind == yaml.SequenceNode && n.ShortTag() != "!!seq" {
		d.add(n, ConfigProblem{Path: path, Reason: "is a list with the tag " + n.ShortTag() + ", which is not known"})
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		object := map[string]any{}
		for _, e := range d.entries(path, n) {
			object[e.key] = d.jsonValue(e.path, e.value, depth+1)
		}
		return object
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for i, item := range n.Content {
			list = append(list, d.jsonValue(fmt.Sprintf("%s[%d]", path, i), item, depth+1))
		}
		return list
	case yaml.ScalarNode:
		return d.jsonScalar(path, n)
	default:
		d.add(n, ConfigProblem{Path: path, Reason: "is " + describe(n)})
		return nil
	}
}

// jsonScalar keeps a number as it was written where JSON can, so that no digit is lost.
func (d *decoder) jsonScalar(path string, n *yaml.Node) any {
	var value any
	switch tag := n.ShortTag(); tag {
	case "!!null":
		return nil
	case "!!str", "!!timestamp":
		return n.Value
	case "!!int", "!!float", "!!bool":
		if err := n.Decode(&value); err != nil {
			d.add(n, ConfigProblem{Path: path, Reason: "is not what its tag " + tag + " says"})
			return nil
		}
	default:
		d.add(n, ConfigProblem{Path: path, Reason: "has the type " + tag + ", which JSON does not know; write it as text in quotes"})
		return nil
	}
	if f, ok := value.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
		d.add(n, ConfigProblem{Path: path, Reason: "is not a number that JSON knows"})
		return nil
	}
	if _, isBool := value.(bool); !isBool && json.Valid([]byte(n.Value)) {
		return json.Number(n.Value)
	}
	return value
}
