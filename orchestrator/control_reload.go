package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// ReloadFrom says how the configuration is read again when the API asks for it. Call it before Run.
func (o *Orchestrator) ReloadFrom(load func() (*Config, error)) { o.load = load }

// Reload reads the configuration again, as SIGHUP does.
func (c *control) Reload(_ context.Context, r *apiv1.ReloadRequest) (*apiv1.ReloadResponse, error) {
	if c.o.load == nil {
		return nil, api.Refused(errors.New("this manager was not told where its configuration is; restart it to change it"))
	}
	config, err := c.o.load()
	if err != nil {
		return nil, api.Refused(fmt.Errorf("the configuration was not reloaded, and the old settings stay: %w", err))
	}
	facts := c.o.facts()
	made, restart, err := c.o.reload(config, "reload by "+r.GetWho())
	if err != nil {
		return nil, api.Refused(err)
	}
	return &apiv1.ReloadResponse{Version: uint64(made.After.Version), Effects: effects(made, facts), NeedsRestart: restart}, nil
}

// reload takes the settings of a configuration and returns what only a restart can change, in words.
func (o *Orchestrator) reload(config *Config, who string) (settings.Made, []string, error) {
	o.reloading.Lock()
	defer o.reloading.Unlock()
	before := o.store.Load()
	after, err := o.store.Rebase(who, func(source *settings.Source) {
		fresh := config.Source()
		source.Manager = fresh.Manager
		for name, q := range source.Queues {
			if again, ok := fresh.Queues[name]; ok {
				q.File = again.File
				source.Queues[name] = q
			}
		}
	})
	if err != nil {
		return settings.Made{}, nil, fmt.Errorf("reload: the old settings stay: %w", err)
	}
	restart := needsRestart(o.config, config)
	for _, what := range restart {
		o.log.Warn("the configuration has changed where only a restart helps", "what", what)
	}
	o.log.Info("configuration reloaded", "who", who, "version", after.Version)
	return settings.Made{Before: before, After: after}, restart, nil
}

// needsRestart says what differs between the configuration that the manager runs with and another that only a restart can
// change, in words for a person.
func needsRestart(running, fresh *Config) []string {
	var restart []string
	add := func(differs bool, format string, args ...any) {
		if differs {
			restart = append(restart, fmt.Sprintf(format, args...))
		}
	}
	m, n := running.Manager, fresh.Manager
	add(m.Name != n.Name, "manager.name: %s -> %s", m.Name, n.Name)
	add(m.StateDir != n.StateDir, "manager.state_dir: %s -> %s", m.StateDir, n.StateDir)
	add(m.Socket != n.Socket, "manager.socket: %s -> %s", m.Socket, n.Socket)
	add(m.PluginSocket != n.PluginSocket, "manager.plugin_socket: %s -> %s", m.PluginSocket, n.PluginSocket)
	add(m.Log != n.Log, "manager.log")
	add(!reflect.DeepEqual(running.Redis, fresh.Redis), "redis")
	add(!reflect.DeepEqual(running.Locks, fresh.Locks), "locks")
	add(!reflect.DeepEqual(running.API, fresh.API), "api")
	added, removed, changed := compare(running.Plugins, fresh.Plugins)
	add(len(added) > 0, "plugins added: %s", strings.Join(added, ", "))
	add(len(removed) > 0, "plugins removed: %s", strings.Join(removed, ", "))
	for _, name := range changed {
		add(true, "plugins.%s: its program, environment, options or limits", name)
	}
	queue := func(c *Config) map[string]string {
		plugins := make(map[string]string, len(c.Queues))
		for name, q := range c.Queues {
			plugins[name] = q.Plugin
		}
		return plugins
	}
	was, is := queue(running), queue(fresh)
	added, removed, changed = compare(was, is)
	add(len(added) > 0, "queues added: %s", strings.Join(added, ", "))
	add(len(removed) > 0, "queues removed: %s", strings.Join(removed, ", "))
	for _, name := range changed {
		add(true, "queues.%s.plugin: %s -> %s", name, was[name], is[name])
	}
	return restart
}

// compare returns the names that only after has, that only before has, and that both have with different values.
func compare[V any](before, after map[string]V) (added, removed, changed []string) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		old, ok := before[name]
		switch {
		case !ok:
			added = append(added, name)
		case !reflect.DeepEqual(old, after[name]):
			changed = append(changed, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, ok := after[name]; !ok {
			removed = append(removed, name)
		}
	}
	return added, removed, changed
}
