package orchestrator

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

const (
	maxNameLength = 64
	// maxSocketPath is what the strictest of the usual systems allows, in bytes; Linux takes 107.
	maxSocketPath = 103
	namesAllowed  = "lower case letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 64"
	// managerScope stands for the manager itself where a queue's name could stand.
	managerScope = "manager"
)

// checker collects what is wrong with a configuration that could be read.
type checker struct {
	c        *Config
	problems []ConfigProblem
}

func (c *Config) check() []ConfigProblem {
	k := &checker{c: c}
	k.manager()
	k.redis()
	k.locks()
	k.api()
	for _, name := range sortedKeys(c.Plugins) {
		k.plugin(name, c.Plugins[name])
	}
	for _, name := range sortedKeys(c.Queues) {
		k.queue(name, c.Queues[name])
	}
	for _, name := range sortedKeys(c.Schedules) {
		k.schedule(name, c.Schedules[name])
	}
	return k.problems
}

func (k *checker) add(path, value, reason, allowed string) {
	k.problems = append(k.problems, ConfigProblem{
		File: k.c.file, Line: int(markOf(k.c.marks, path)), Path: path, Value: value, Reason: reason, Allowed: allowed,
	})
}

func (k *checker) manager() {
	m := k.c.Manager
	k.name("manager.name", m.Name)
	if m.StateDir == "" {
		k.add("manager.state_dir", "", "is empty", "a directory")
	}
	k.socket("manager.socket", m.Socket)
	k.socket("manager.plugin_socket", m.PluginSocket)
	if m.Socket == m.PluginSocket {
		k.add("manager.plugin_socket", m.PluginSocket, "is the same as manager.socket; workers must not have its rights", "a path of its own")
	}
	_, err := settings.ResolveManager(m.Settings)
	k.settings("manager", err)
}

func (k *checker) socket(path, value string) {
	switch {
	case value == "":
		k.add(path, "", "is empty", "a path")
	case strings.ContainsRune(value, 0):
		k.add(path, value, "has a NUL in it", "a path")
	case len(value) > maxSocketPath:
		k.add(path, value, fmt.Sprintf("is %d bytes long, too long for a Unix socket; use a shorter manager.state_dir or write %s", len(value), path),
			fmt.Sprintf("up to %d bytes", maxSocketPath))
	}
}

func (k *checker) plugin(name string, p PluginConfig) {
	path := join("plugins", name)
	k.name(path, name)
	at := join(path, "command")
	switch {
	case len(p.Command) == 0:
		k.add(at, "", "is missing", "a list of the program and its arguments, such as [bin/plugins/"+name+"]")
	case !strings.Contains(p.Command[0], "/"):
		k.add(at, p.Command[0], "has no slash; programs are not looked up in PATH", "./NAME or a path such as bin/plugins/NAME")
	case strings.ContainsRune(strings.Join(p.Command, ""), 0):
		k.add(at, "", "has a NUL in it", "text without NUL")
	}
	k.program(path, p)
	for _, key := range slices.Sorted(maps.Keys(p.Env)) {
		at := join(join(path, "env"), key)
		switch {
		case !envName(key):
			k.add(at, "", "is not the name of an environment variable", "letters, digits and '_', not beginning with a digit")
		case strings.HasPrefix(key, "DROVER_") || strings.HasPrefix(key, "PLUGIN_"):
			k.add(at, "", "is a name that the manager itself uses", "names that do not begin with DROVER_ or PLUGIN_")
		case strings.ContainsRune(p.Env[key], 0):
			k.add(at, "", "has a NUL in it", "text without NUL")
		}
	}
}

func (k *checker) queue(name string, q QueueConfig) {
	path := join("queues", name)
	k.name(path, name)
	if name == managerScope {
		k.add(path, "", "is a name that stands for the manager itself", "another name")
	}
	plugins := sortedKeys(k.c.Plugins)
	at := join(path, "plugin")
	allowed := "one of " + strings.Join(plugins, ", ")
	if len(plugins) == 0 {
		allowed = "a plugin that is described under plugins"
	}
	if q.Plugin == "" {
		k.add(at, "", "is missing", allowed)
	} else if !slices.Contains(plugins, q.Plugin) {
		reason := "is not a plugin of this file"
		if near := settings.Nearest(q.Plugin, plugins); near != "" {
			reason += "; did you mean " + near + "?"
		}
		k.add(at, q.Plugin, reason, allowed)
	}
	_, err := settings.ResolveQueue(q.Settings)
	k.settings(path, err)
}

// settings places the problems of a layer. A broken rule is shown at the first of its settings that stands in the file.
func (k *checker) settings(path string, err error) {
	var invalid *settings.InvalidError
	if !errors.As(err, &invalid) {
		return
	}
	for _, p := range invalid.Problems {
		blamed := join(path, p.Name)
		line := markOf(k.c.marks, blamed)
		for _, name := range append([]string{p.Name}, p.Others...) {
			if m, ok := k.c.marks[join(path, name)]; ok {
				line = m
				break
			}
		}
		k.problems = append(k.problems, ConfigProblem{
			File: k.c.file, Line: int(line), Path: blamed, Value: p.Value, Reason: p.Reason, Allowed: p.Allowed,
		})
	}
}

func (k *checker) name(path, name string) {
	ok := name != "" && len(name) <= maxNameLength && !strings.ContainsRune("._-", rune(name[0]))
	for i := range len(name) {
		ok = ok && nameByte(name[i])
	}
	if !ok {
		k.add(path, name, "is not a valid name", namesAllowed)
	}
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}

func envName(key string) bool {
	for i := range len(key) {
		c := key[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return key != ""
}
