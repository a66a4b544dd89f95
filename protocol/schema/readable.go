package schema

import "strings"

// maxMessage bounds a message, in bytes: it quotes the payload.
const maxMessage = 1 << 10

// readable turns the library's path of schema pointers into the path of the payload's field:
// "validating root: validating /properties/url: type: ..." becomes "url: type: ...".
func readable(message string) string {
	message = strings.TrimPrefix(message, "validating root: ")
	var path, base string
	for {
		rest, ok := strings.CutPrefix(message, "validating ")
		if !ok {
			break
		}
		pointer, after, ok := strings.Cut(rest, ": ")
		if !ok {
			break
		}
		if !strings.HasPrefix(pointer, "/") { // the whole schema, by its $id
			pointer = ""
		}
		// A pointer that does not go on from the last one is the target of a $ref: another schema for the same field.
		if tail, deeper := strings.CutPrefix(pointer, base); deeper {
			path += fieldPath(tail)
		}
		base, message = pointer, after
	}
	message = plain(strings.TrimPrefix(path, "."), message)
	return bounded(message)
}

// bounded cuts a message that repeats too much of what it is about.
func bounded(message string) string {
	if len(message) > maxMessage {
		message = message[:maxMessage] + " ..."
	}
	return strings.ToValidUTF8(message, "\uFFFD")
}

// plain puts the path before the message, and says the two commonest complaints about names in words: the field is named first.
func plain(path, message string) string {
	within := path
	if within != "" {
		within += "."
	}
	if names, ok := strings.CutPrefix(message, "required: missing properties: "); ok {
		return within + listed(names) + ": missing"
	}
	if names, ok := strings.CutPrefix(message, "unexpected additional properties "); ok {
		return within + listed(names) + ": no such field"
	}
	if path != "" {
		return path + ": " + message
	}
	return message
}

// listed turns the validator's ["a" "b"] into a, b.
func listed(names string) string {
	names = strings.TrimSuffix(strings.TrimPrefix(names, "["), "]")
	return strings.ReplaceAll(strings.ReplaceAll(names, `" "`, ", "), `"`, "")
}

// fieldPath says which part of a payload a pointer into a schema is about: "/properties/a/items" is ".a[]".
func fieldPath(pointer string) string {
	var path strings.Builder
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i := 0; i < len(steps); i++ {
		switch steps[i] {
		case "properties":
			if i++; i < len(steps) {
				path.WriteString("." + strings.NewReplacer("~1", "/", "~0", "~").Replace(steps[i]))
			}
		case "items", "prefixItems", "additionalItems", "unevaluatedItems", "contains":
			path.WriteString("[]")
		case "additionalProperties", "patternProperties", "unevaluatedProperties", "propertyNames":
			path.WriteString(".*")
		}
	}
	return path.String()
}
