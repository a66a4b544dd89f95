package orchestrator

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// reader takes the node at a path into the configuration.
type reader = func(path string, n *yaml.Node)

// decode reads what can be read; what cannot is left at its default and noted as a problem.
func (d *decoder) decode(data []byte) *Config {
	c := Default()
	c.file, c.marks = d.file, d.marks
	c.Manager.Socket, c.Manager.PluginSocket = "", ""
	d.section("", d.document(data), map[string]reader{
		"manager": func(path string, n *yaml.Node) { d.manager(path, n, &c.Manager) },
		"redis":   func(path string, n *yaml.Node) { d.redis(path, n, &c.Redis) },
		"locks":   func(path string, n *yaml.Node) { d.locks(path, n, &c.Locks) },
		"api":     func(path string, n *yaml.Node) { d.api(path, n, &c.API) },
		"plugins": func(path string, n *yaml.Node) {
			for _, e := range d.entries(path, n) {
				c.Plugins[e.key] = d.plugin(e.path, e.value)
			}
		},
		"queues": func(path string, n *yaml.Node) {
			for _, e := range d.entries(path, n) {
				c.Queues[e.key] = d.queue(e.path, e.value)
			}
		},
		"schedules": func(path string, n *yaml.Node) {
			for _, e := range d.entries(path, n) {
				c.Schedules[e.key] = d.schedule(e.path, e.value)
			}
		},
	})
	c.placeSockets()
	return c
}

func (d *decoder) manager(path string, n *yaml.Node, m *ManagerConfig) {
	known := d.layer(settings.ScopeManager, m.Settings)
	known["name"] = d.into(&m.Name, "a name")
	known["state_dir"] = d.into(&m.StateDir, "a directory")
	known["socket"] = d.into(&m.Socket, "a path")
	known["plugin_socket"] = d.into(&m.PluginSocket, "a path")
	known["log"] = func(path string, n *yaml.Node) {
		d.section(path, n, map[string]reader{
			"format": func(path string, n *yaml.Node) {
				d.word(path, n, map[string]func(){"text": func() { m.Log.JSON = false }, "json": func() { m.Log.JSON = true }})
			},
			"level": func(path string, n *yaml.Node) {
				set := func(l slog.Level) func() { return func() { m.Log.Level = l } }
				d.word(path, n, map[string]func(){
					"debug": set(slog.LevelDebug), "info": set(slog.LevelInfo), "warn": set(slog.LevelWarn), "error": set(slog.LevelError),
				})
			},
		})
	}
	d.section(path, n, known)
}

func (d *decoder) redis(path string, n *yaml.Node, r *RedisConfig) {
	d.section(path, n, map[string]reader{
		"embedded": func(path string, n *yaml.Node) {
			d.word(path, n, map[string]func(){"true": func() { r.Embedded = true }, "false": func() { r.Embedded = false }})
		},
		"address":       d.into(&r.Address, "an address"),
		"username":      d.into(&r.Username, "a name"),
		"password_file": d.into(&r.PasswordFile, "a path"),

		"sentinel_username":      d.into(&r.SentinelUsername, "a name"),
		"sentinel_password_file": d.into(&r.SentinelPasswordFile, "a path"),
		"wait_replicas":          parsed(d, &r.WaitReplicas, replicasAllowed, replicaCount),
		"password": func(path string, n *yaml.Node) {
			d.add(n, ConfigProblem{
				Path: path, Reason: "does not belong into this file; write it into a file that only the manager can read, and name that with redis.password_file",
			})
		},
	})
}

func (d *decoder) plugin(path string, n *yaml.Node) PluginConfig {
	p := PluginConfig{Env: map[string]string{}, Options: json.RawMessage("{}")}
	d.section(path, n, map[string]reader{
		"command": func(path string, n *yaml.Node) { p.Command = d.command(path, n) },
		"env": func(path string, n *yaml.Node) {
			for _, e := range d.entries(path, n) {
				if text, ok := d.text(e.path, e.value, `text; "" for an empty value`); ok {
					p.Env[e.key] = text
				}
			}
		},
		"options": func(path string, n *yaml.Node) { p.Options = d.options(path, n) },
		"sha256":  d.into(&p.SHA256, sumsAllowed),
		"user":    d.into(&p.User, "the name or the number of a user"),
		"limits":  func(path string, n *yaml.Node) { d.processLimits(path, n, &p.Limits) },
	})
	return p
}

func (d *decoder) command(path string, n *yaml.Node) []string {
	return d.list(path, n, "a list of the program and its arguments, such as [bin/plugins/feed-pull]; no shell reads it")
}

// list reads a list of texts.
func (d *decoder) list(path string, n *yaml.Node, allowed string) []string {
	if n.Kind != yaml.SequenceNode || n.ShortTag() != "!!seq" {
		value := ""
		if n.Kind == yaml.ScalarNode {
			value = n.Value
		}
		d.add(n, ConfigProblem{Path: path, Value: value, Reason: "is " + describe(n), Allowed: allowed})
		return nil
	}
	texts := make([]string, 0, len(n.Content))
	for _, item := range n.Content {
		if text, ok := d.text(path, item, allowed); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

func (d *decoder) queue(path string, n *yaml.Node) QueueConfig {
	q := QueueConfig{Settings: settings.Layer{}}
	known := d.layer(settings.ScopeQueue, q.Settings)
	known["plugin"] = d.into(&q.Plugin, "the name of a plugin")
	d.section(path, n, known)
	return q
}

// layer reads the settings of the scope as text; Validate looks at what they say.
func (d *decoder) layer(scope settings.Scope, into settings.Layer) map[string]reader {
	known := map[string]reader{}
	for _, s := range settings.Describe() {
		if s.Scope != scope {
			continue
		}
		known[s.Name] = func(path string, n *yaml.Node) {
			if text, ok := d.text(path, n, s.Allowed()); ok {
				into[s.Name] = text
			}
		}
	}
	return known
}

func (d *decoder) into(field *string, allowed string) reader {
	return func(path string, n *yaml.Node) {
		text, ok := d.text(path, n, allowed)
		if ok && text == "" {
			d.add(n, ConfigProblem{Path: path, Reason: "is empty; leave the key out for its default", Allowed: allowed})
			return
		}
		if ok {
			*field = text
		}
	}
}

// word reads one of a few words and does what it stands for.
func (d *decoder) word(path string, n *yaml.Node, words map[string]func()) {
	allowed := "one of " + strings.Join(sortedKeys(words), ", ")
	text, ok := d.text(path, n, allowed)
	if !ok {
		return
	}
	if set, ok := words[text]; ok {
		set()
		return
	}
	reason := "is not known here"
	if near := settings.Nearest(text, sortedKeys(words)); near != "" {
		reason += "; did you mean " + near + "?"
	}
	d.add(n, ConfigProblem{Path: path, Value: text, Reason: reason, Allowed: allowed})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
