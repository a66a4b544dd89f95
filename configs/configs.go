// Package configs holds the configurations that come with Drover: dev.yaml, with everything embedded, and production.yaml,
// which names every key with its default and the reason for its value. dev.yaml is also built into the manager, which takes it
// when it is started without a file. The package only holds text; package orchestrator reads it.
package configs

import _ "embed"

// dev is embedded as a string, so that nobody can change it.
//
//go:embed dev.yaml
var dev string

// Dev returns the content of dev.yaml.
func Dev() []byte { return []byte(dev) }
