// Package catalog knows the plugins of the configuration: what each says of itself, and whether it can be started at all.
//
// It asks each program once when the manager starts, and takes note of what programs say whenever they are started
// afterwards. Plugins come and go with the configuration (Set, Forget). Everybody who needs a kind, a schema or default limits asks here. It starts no process itself and makes no decision.
package catalog

import (
	"context"
	"fmt"
	"sync"

	workerv1 "github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/schema"
)

// Plugin is one plugin of the configuration.
type Plugin struct {
	Name     string
	Command  []string
	Manifest *workerv1.Manifest // nil while it has never answered
	Err      error              // why it could not be asked; nil when it could
	Sum      string             // SHA-256 of the program that is started now, in hexadecimal; empty when unknown
	Refused  string             // why a newer program on disk is not used; empty when there is none
	schema   *schema.Schema
}

// Describer starts a plugin's program, asks what it is, and ends it.
type Describer func(ctx context.Context, plugin string) (*workerv1.Manifest, error)

// Catalog is what is known of the plugins. It is safe for concurrent use.
type Catalog struct {
	mu      sync.RWMutex
	plugins map[string]*Plugin
}

// New returns a catalog of plugins by their commands.
func New(commands map[string][]string) *Catalog {
	c := &Catalog{plugins: make(map[string]*Plugin, len(commands))}
	for name, command := range commands {
		c.plugins[name] = &Plugin{Name: name, Command: command}
	}
	return c
}

// Ask asks every plugin what it is, all at once, and returns when all have answered or failed. A plugin that fails is kept
// with its error: its queues wait, the others go on.
func (c *Catalog) Ask(ctx context.Context, describe Describer) {
	var asking sync.WaitGroup
	for _, p := range c.All() {
		asking.Go(func() {
			m, err := describe(ctx, p.Name)
			c.Note(p.Name, m, err)
		})
	}
	asking.Wait()
}

// Set adds a plugin, or changes the command of one that is known: what that has said of itself holds until its new program says
// something.
func (c *Catalog) Set(name string, command []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.plugins[name]; p != nil {
		p.Command, p.Err, p.Sum, p.Refused = command, nil, "", ""
		return
	}
	c.plugins[name] = &Plugin{Name: name, Command: command}
}

// Forget drops a plugin.
func (c *Catalog) Forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.plugins, name)
}

// Note takes down what a plugin said, or why it could not be asked.
func (c *Catalog) Note(name string, m *workerv1.Manifest, err error) {
	var compiled *schema.Schema
	if err == nil {
		if compiled, err = schema.Parse(m.GetPayloadSchema()); err != nil {
			err = fmt.Errorf("plugin %s: %w", name, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.plugins[name]
	if p == nil {
		return
	}
	p.Err = err
	if err == nil {
		p.Manifest, p.schema = m, compiled
	}
}

// Program takes down which program of a plugin is started now, and why a newer one on disk is not; empty when there is none.
func (c *Catalog) Program(name, sum, refused string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.plugins[name]; p != nil {
		p.Sum, p.Refused = sum, refused
	}
}

// Sound says what is wrong with what a program says of itself; nil when it could be used.
func Sound(m *workerv1.Manifest) error {
	_, err := schema.Parse(m.GetPayloadSchema())
	return err
}

// Get returns what is known of a plugin.
func (c *Catalog) Get(name string) (Plugin, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	p, ok := c.plugins[name]
	if !ok {
		return Plugin{}, false
	}
	return *p, true
}

// All returns all plugins.
func (c *Catalog) All() []Plugin {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make([]Plugin, 0, len(c.plugins))
	for _, p := range c.plugins {
		all = append(all, *p)
	}
	return all
}

// Check says what is wrong with a payload for a plugin; nil while the plugin has never said what it accepts.
func (c *Catalog) Check(name string, payload []byte) error {
	c.mu.RLock()
	var s *schema.Schema
	if p := c.plugins[name]; p != nil {
		s = p.schema
	}
	c.mu.RUnlock()
	return s.Check(payload)
}
