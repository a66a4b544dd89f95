package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

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
	done, err := c.o.reload(c.o.load, "reload by "+r.GetWho())
	if err != nil {
		return nil, api.Refused(fmt.Errorf("the configuration was not reloaded, and the old settings stay: %w", err))
	}
	return &apiv1.ReloadResponse{
		Version: uint64(done.made.After.Version), Effects: slices.Concat(done.effects, effects(done.made, done.facts)), NeedsRestart: done.needsRestart,
	}, nil
}

var errEnding = errors.New("the manager stops")

// reloaded is what a reload did.
type reloaded struct {
	made         settings.Made
	facts        map[string]settings.Facts // as they were before
	effects      []*apiv1.SettingEffect    // on queues and plugins
	needsRestart []string                  // in words
}

// reload takes what a configuration says of settings, plugins and queues, all of it or nothing. One after the other: load is called
// when it is this one's turn.
func (o *Orchestrator) reload(load func() (*Config, error), who string) (reloaded, error) {
	o.reloading.Lock()
	defer o.reloading.Unlock()
	config, err := load()
	if err != nil {
		return reloaded{}, err
	}
	t := o.transit(config)
	if err := t.ask(); err != nil {
		return reloaded{}, err
	}
	if err := t.checkSchedules(); err != nil {
		return reloaded{}, err
	}
	done := reloaded{facts: o.facts(), needsRestart: o.needsRestart(config)}
	done.made.Before = o.store.Load()
	t.remember()
	if done.made.After, err = o.store.Rebase(who, t.source); err != nil {
		return reloaded{}, err
	}
	done.effects = t.carryOut()
	for _, what := range done.needsRestart {
		o.log.Warn("the configuration has changed where only a restart helps", "what", what)
	}
	o.log.Info("configuration reloaded", "who", who, "version", done.made.After.Version)
	return done, nil
}

// needsRestart says what differs between the configuration that the manager was started with and another that only a restart can
// change, in words for a person.
func (o *Orchestrator) needsRestart(fresh *Config) []string {
	var restart []string
	add := func(differs bool, format string, args ...any) {
		if differs {
			restart = append(restart, fmt.Sprintf(format, args...))
		}
	}
	running := o.config
	m, n := running.Manager, fresh.Manager
	add(m.Name != n.Name, "manager.name: %s -> %s", m.Name, n.Name)
	add(m.StateDir != n.StateDir, "manager.state_dir: %s -> %s", m.StateDir, n.StateDir)
	add(m.Socket != n.Socket, "manager.socket: %s -> %s", m.Socket, n.Socket)
	add(m.PluginSocket != n.PluginSocket, "manager.plugin_socket: %s -> %s", m.PluginSocket, n.PluginSocket)
	add(m.Log != n.Log, "manager.log")
	add(!reflect.DeepEqual(running.Redis, fresh.Redis), "redis")
	add(!reflect.DeepEqual(running.Locks, fresh.Locks), "locks")
	add(!reflect.DeepEqual(running.API, fresh.API), "api")
	for _, name := range sortedKeys(fresh.Plugins) {
		user := fresh.Plugins[name].User
		add(o.unlent(user), "plugins.%s.user: workers of %s run, but cannot reach the API of the manager yet", name, user)
	}
	return restart
}
