package main

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
)

// object is an object of the document; its keys come out sorted.
type object = map[string]any

// document is what is being written.
type document struct {
	paths   object
	schemas object
	tags    []object
}

func newDocument() *document { return &document{paths: handPaths(), schemas: handSchemas()} }

func (d *document) content() object {
	return object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Drover", "version": "1",
			"description": "What applications and consoles say to a manager. Numbers of 64 bits are strings of digits, and bytes are base64, as protobuf's JSON has it. " +
				"Over the network every call carries a bearer token; on the sockets of the machine none.",
		},
		"tags":  d.tags,
		"paths": d.paths,
		"components": object{
			"schemas":         d.schemas,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
		},
		"security": []object{{"token": []string{}}, {}},
	}
}

// service adds the methods of a service.
func (d *document) service(s *protogen.Service) {
	d.tags = append(d.tags, object{"name": string(s.Desc.Name()), "description": words(s.Comments.Leading)})
	for _, m := range s.Methods {
		kind, envelope := "application/json", ""
		if m.Desc.IsStreamingServer() {
			kind = "application/connect+json"
			envelope = " A stream: each message, that of the request too, comes after five bytes, a zero (2 for the last, which is {} or holds an error) and its length with the highest byte first."
		}
		d.paths[fmt.Sprintf("/%s/%s", s.Desc.FullName(), m.Desc.Name())] = object{"post": object{
			"tags": []string{string(s.Desc.Name())}, "operationId": fmt.Sprintf("%s_%s", s.Desc.Name(), m.Desc.Name()),
			"description": words(m.Comments.Leading) + envelope,
			"requestBody": object{"required": true, "content": object{kind: object{"schema": d.message(m.Input)}}},
			"responses": object{
				"200":     object{"description": "It was done.", "content": object{kind: object{"schema": d.message(m.Output)}}},
				"default": failure(),
			},
		}}
	}
}

// message adds a message and all that it holds, and returns a reference to it.
func (d *document) message(m *protogen.Message) object {
	name := string(m.Desc.FullName())
	if _, known := d.schemas[name]; known {
		return reference(name)
	}
	properties := object{}
	schema := object{"type": "object", "properties": properties}
	d.schemas[name] = schema
	if text := words(m.Comments.Leading); text != "" {
		schema["description"] = text
	}
	for _, f := range m.Fields {
		value := d.field(f)
		text := words(f.Comments.Leading)
		if f.Oneof != nil && !f.Oneof.Desc.IsSynthetic() {
			text = strings.TrimSpace(text + " At most one of the fields of " + string(f.Oneof.Desc.Name()) + " is there.")
		}
		if text != "" {
			value["description"] = text
		}
		properties[f.Desc.JSONName()] = value
	}
	return reference(name)
}

// field describes the value of a field.
func (d *document) field(f *protogen.Field) object {
	switch {
	case f.Desc.IsMap():
		return object{"type": "object", "additionalProperties": d.single(f.Message.Fields[1])}
	case f.Desc.IsList():
		return object{"type": "array", "items": d.single(f)}
	default:
		return d.single(f)
	}
}

// single describes one value.
func (d *document) single(f *protogen.Field) object {
	switch kind := f.Desc.Kind().String(); kind {
	case "message":
		return d.message(f.Message)
	case "enum":
		return d.enum(f.Enum)
	case "bool":
		return object{"type": "boolean"}
	case "string":
		return object{"type": "string"}
	case "bytes":
		return object{"type": "string", "contentEncoding": "base64"}
	case "int64", "uint64":
		return object{"type": "string", "format": kind, "pattern": "^-?[0-9]+$"}
	case "double", "float":
		return object{"type": "number", "format": kind}
	default:
		return object{"type": "integer", "format": kind}
	}
}

// enum adds an enumeration and returns a reference to it.
func (d *document) enum(e *protogen.Enum) object {
	name := string(e.Desc.FullName())
	if _, known := d.schemas[name]; !known {
		var values []string
		text := words(e.Comments.Leading)
		for _, v := range e.Values {
			values = append(values, string(v.Desc.Name()))
			if meaning := words(v.Comments.Leading); meaning != "" {
				text += "\n- " + string(v.Desc.Name()) + ": " + meaning
			}
		}
		d.schemas[name] = object{"type": "string", "enum": values, "description": text}
	}
	return reference(name)
}

func reference(name string) object { return object{"$ref": "#/components/schemas/" + name} }

// words is a comment as one line.
func words(c protogen.Comments) string { return strings.Join(strings.Fields(string(c)), " ") }
