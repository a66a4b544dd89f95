package orchestrator

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// decoder walks the nodes of a YAML file and collects problems instead of stopping at the first. It works on the nodes of
// go.yaml.in/yaml/v4, which the YAML organisation keeps: they carry the line and the text as written, which a setting needs
// ("10m" and off stay text), they show duplicate keys, and aliases in them are not expanded.
type decoder struct {
	file     string
	marks    map[string]mark
	problems []ConfigProblem
}

func newDecoder(file string) *decoder {
	return &decoder{file: file, marks: map[string]mark{}}
}

func (d *decoder) add(n *yaml.Node, p ConfigProblem) {
	p.File = d.file
	if n != nil {
		p.Line = n.Line
	}
	d.problems = append(d.problems, p)
}

// refused reports whether the path, or something around it, has a problem already; for a whole section also something in it.
func (d *decoder) refused(path string) bool {
	section := !strings.Contains(path, ".")
	return slices.ContainsFunc(d.problems, func(p ConfigProblem) bool {
		return p.Path == "" || p.Path == path || strings.HasPrefix(path, p.Path+".") || section && strings.HasPrefix(p.Path, path+".")
	})
}

// document reads the one document of the file; nil when there is none.
func (d *decoder) document(data []byte) *yaml.Node {
	if len(data) > maxConfigSize {
		d.add(nil, ConfigProblem{Reason: "is too large for a configuration", Allowed: "up to 1MiB"})
		return nil
	}
	var doc, more yaml.Node
	reader := yaml.NewDecoder(bytes.NewReader(data))
	switch err := reader.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		d.syntax(err)
		return nil
	}
	switch err := reader.Decode(&more); {
	case err == nil:
		d.add(&more, ConfigProblem{Reason: "a second document begins here; a configuration is one document, without ---"})
		return nil
	case !errors.Is(err, io.EOF):
		d.syntax(err)
		return nil
	}
	if len(doc.Content) != 1 {
		return nil
	}
	return doc.Content[0]
}

// syntax places what the library itself could not read.
func (d *decoder) syntax(err error) {
	line, reason := 0, strings.TrimPrefix(err.Error(), "yaml: ")
	var load *yaml.LoadError
	if errors.As(err, &load) {
		line, reason = load.Mark.Line, load.Message
	}
	d.problems = append(d.problems, ConfigProblem{File: d.file, Line: line, Reason: "is not valid YAML: " + reason})
}

// entry is one key of a mapping with its value.
type entry struct {
	key   string
	path  string
	value *yaml.Node
}

// entries returns the keys of a mapping, each once; nothing written is an empty mapping.
func (d *decoder) entries(path string, n *yaml.Node) []entry {
	if n == nil || isNull(n) {
		return nil
	}
	if n.Kind != yaml.MappingNode || n.ShortTag() != "!!map" {
		d.add(n, ConfigProblem{Path: path, Reason: "is " + describe(n), Allowed: "keys with values"})
		return nil
	}
	var list []entry
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge":
			d.add(key, ConfigProblem{Path: path, Reason: "merges (<<) are not read; write the keys out"})
			continue
		case key.Kind != yaml.ScalarNode || isNull(key):
			d.add(key, ConfigProblem{Path: path, Reason: "has a key that is " + describe(key), Allowed: "words as keys"})
			continue
		}
		e := entry{key: key.Value, path: join(path, key.Value), value: value}
		if line, ok := first[e.key]; ok {
			d.add(key, ConfigProblem{Path: e.path, Reason: fmt.Sprintf("is written twice, first in line %d; keep one", line)})
			continue
		}
		first[e.key] = key.Line
		d.marks[e.path] = mark(key.Line)
		list = append(list, e)
	}
	return list
}

// section reads a mapping whose keys are known.
func (d *decoder) section(path string, n *yaml.Node, known map[string]func(path string, n *yaml.Node)) {
	for _, e := range d.entries(path, n) {
		if read, ok := known[e.key]; ok {
			read(e.path, e.value)
			continue
		}
		d.unknown(e, sortedKeys(known))
	}
}

// unknown does not show the value: it may be a password in a place of its owner's own making.
func (d *decoder) unknown(e entry, known []string) {
	reason := "is not a known key"
	if near := settings.Nearest(e.key, known); near != "" {
		reason += "; did you mean " + near + "?"
	}
	d.problems = append(d.problems, ConfigProblem{
		File: d.file, Line: int(d.marks[e.path]), Path: e.path, Reason: reason, Allowed: strings.Join(known, ", "),
	})
}

// text reads a scalar as it was written; ok is false when it is none.
func (d *decoder) text(path string, n *yaml.Node, allowed string) (text string, ok bool) {
	if n.Kind == yaml.ScalarNode && slices.Contains([]string{"!!str", "!!int", "!!float", "!!bool", "!!timestamp"}, n.ShortTag()) {
		return n.Value, true
	}
	reason := "is " + describe(n)
	if isNull(n) {
		reason = "has no value"
	}
	d.add(n, ConfigProblem{Path: path, Reason: reason, Allowed: allowed})
	return "", false
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }

// describe says what a node is, for a person who meant something else.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (*), which is not read; write the value out"
	case yaml.ScalarNode:
		if isNull(n) {
			return "empty"
		}
		return "a single value of type " + strings.TrimLeft(n.ShortTag(), "!")
	default:
		return "not readable"
	}
}

// join keeps a path in one line, whatever the key is.
func join(path, key string) string {
	if quoted := strconv.Quote(key); key == "" || len(quoted) != len(key)+len(`""`) {
		key = quoted
	}
	if path == "" {
		return key
	}
	return path + "." + key
}
