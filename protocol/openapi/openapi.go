// Package openapi holds the description of the API for people and programs that speak plain HTTP: an OpenAPI 3.1 document, made
// from the .proto files by protoc-gen-openapi (`make generate`). A manager serves it at /openapi.json.
package openapi

import _ "embed"

//go:embed openapi.json
var document []byte

// Document returns the document, as JSON. Nobody may change it.
func Document() []byte { return document }
