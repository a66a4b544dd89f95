package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/drover-jobs/drover/protocol/task"
)

// payloadOf makes a task's payload from the words behind the queue: one JSON object, "-" or "@file" that holds one, or any
// number of key=value. No words are the empty object. Its errors are *ExitError of usage.
func payloadOf(env *Env, words []string) (json.RawMessage, error) {
	if len(words) == 0 {
		return json.RawMessage("{}"), nil
	}
	if len(words) == 1 {
		switch first := words[0]; {
		case strings.HasPrefix(strings.TrimSpace(first), "{"):
			return objectOf("the payload", []byte(first))
		case first == "-":
			return objectFrom(env, "-")
		case strings.HasPrefix(first, "@"):
			return objectFrom(env, first[1:])
		}
	}
	object := map[string]any{}
	for _, word := range words {
		if err := addPair(env, object, word); err != nil {
			return nil, err
		}
	}
	payload, err := json.Marshal(object)
	if err != nil {
		return nil, usageError("the payload cannot be written as JSON: %v", err)
	}
	return payload, nil
}

func objectFrom(env *Env, name string) (json.RawMessage, error) {
	text, err := readText(env, name)
	if err != nil {
		return nil, err
	}
	return objectOf(sourceName(name), []byte(text))
}

// objectOf checks that text is one JSON object.
func objectOf(what string, text []byte) (json.RawMessage, error) {
	var object map[string]json.RawMessage
	err := json.Unmarshal(text, &object)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, usageError("%s is not JSON: %v at byte %d (near %q); quote it for the shell: '{\"key\":\"value\"}'",
			what, syntax, syntax.Offset, near(text, syntax.Offset))
	case err != nil || object == nil:
		return nil, usageError("%s must be one JSON object, such as {\"key\":\"value\"}", what)
	}
	return json.RawMessage(bytes.TrimSpace(text)), nil
}

// near is the text around a byte of an error.
func near(text []byte, at int64) string {
	const around = 12
	from, to := max(0, int(at)-around), min(len(text), int(at)+around)
	return string(text[from:to])
}

// addPair puts one key=value into the object.
func addPair(env *Env, object map[string]any, word string) error {
	key, text, isPair := strings.Cut(word, "=")
	if !isPair || key == "" {
		return usageError("%.60q is not key=value; a whole payload is one JSON object, @FILE or - alone", word)
	}
	var value any
	if name, isFile := strings.CutPrefix(text, "@"); isFile {
		content, err := readText(env, name)
		if err != nil {
			return err
		}
		value = content
	} else {
		value = valueOf(text)
	}
	return put(object, splitKey(key), key, value)
}

// valueOf reads text as JSON where it is JSON and as a string where it is not.
func valueOf(text string) any {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber() // a number keeps its digits
	var value any
	if err := dec.Decode(&value); err != nil {
		return text
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return text
	}
	return value
}

// splitKey cuts "a.b" into a and b. A backslash takes the meaning from a dot and from a backslash.
func splitKey(key string) []string {
	var parts []string
	var part strings.Builder
	for i := 0; i < len(key); i++ {
		switch {
		case key[i] == '\\' && i+1 < len(key) && (key[i+1] == '.' || key[i+1] == '\\'):
			i++
			part.WriteByte(key[i])
		case key[i] == '.':
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(key[i])
		}
	}
	return append(parts, part.String())
}

// put sets the value at a path of nested objects.
func put(object map[string]any, path []string, key string, value any) error {
	for i, part := range path {
		if part == "" {
			return usageError("%.60q: a part of the key is empty; write \\. for a dot that is part of a name", key)
		}
		there, exists := object[part]
		if i == len(path)-1 {
			if exists {
				return usageError("%q is given twice", key)
			}
			object[part] = value
			return nil
		}
		if !exists {
			there = map[string]any{}
			object[part] = there
		}
		inner, isObject := there.(map[string]any)
		if !isObject {
			return usageError("%q cannot be set: %q has a value that is no object", key, strings.Join(path[:i+1], "."))
		}
		object = inner
	}
	return nil
}

// readText reads a named file, or standard input for "-", as UTF-8 text.
func readText(env *Env, name string) (string, error) {
	var content []byte
	var err error
	if name == "-" {
		content, err = io.ReadAll(io.LimitReader(env.In, task.MaxPayload+1))
	} else {
		content, err = env.ReadFile(name)
	}
	switch {
	case err != nil:
		return "", usageError("read %s: %v", sourceName(name), err)
	case len(content) > task.MaxPayload:
		return "", usageError("%s has more than the %d bytes that a payload may have", sourceName(name), task.MaxPayload)
	case !utf8.Valid(content):
		return "", usageError("%s is not UTF-8 text, and a payload is JSON: encode it first, for example with base64", sourceName(name))
	}
	return string(content), nil
}

func sourceName(name string) string {
	if name == "-" {
		return "standard input"
	}
	return fmt.Sprintf("the file %q", name)
}
