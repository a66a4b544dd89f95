package orchestrator

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/drover-jobs/drover/orchestrator/internal/catalog"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/program"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	workerv1 "github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/schema"
)

// transit is the way from the lineup of now to that of another configuration. Until carryOut nothing of it is seen.
type transit struct {
	o       *Orchestrator
	config  *Config
	before  *lineup
	plugins map[string]*plugin // of the new lineup
	fresh   []string           // those of them that are new or changed, sorted
	answers map[string]answer  // of these

	gone, come []string // queues; one that changes its plugin is both
}

// answer is what a plugin said when it was asked what it is.
type answer struct {
	manifest *workerv1.Manifest
	version  program.Version
	err      error
}

func (o *Orchestrator) transit(config *Config) *transit {
	t := &transit{o: o, config: config, before: o.present.Load(), plugins: make(map[string]*plugin, len(config.Plugins)), answers: map[string]answer{}}
	for _, name := range sortedKeys(config.Plugins) {
		if old := t.before.plugins[name]; old != nil && reflect.DeepEqual(old.PluginConfig, config.Plugins[name]) {
			t.plugins[name] = old
			continue
		}
		t.plugins[name] = o.programs.open(name, config.Plugins[name])
		t.fresh = append(t.fresh, name)
	}
	for _, name := range sortedKeys(config.Queues) {
		if old := t.before.queues[name]; old == nil || old.plugin != config.Queues[name].Plugin {
			t.come = append(t.come, name)
		}
	}
	for _, name := range sortedKeys(t.before.queues) {
		if q, stays := config.Queues[name]; !stays || q.Plugin != t.before.queues[name].plugin {
			t.gone = append(t.gone, name)
		}
	}
	return t
}

// ask asks the new and changed plugins what they are, all at once. One that does not say it only keeps its own queues waiting. The
// error says that the manager stops.
func (t *transit) ask() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	go func() {
		select {
		case <-t.o.ending:
			cancel()
		case <-ctx.Done():
		}
	}()
	var mu sync.Mutex
	var asking sync.WaitGroup
	for _, name := range t.fresh {
		asking.Go(func() {
			m, v, err := t.o.describe(ctx, name, t.plugins[name])
			if err == nil {
				err = catalog.Sound(m)
			}
			mu.Lock()
			defer mu.Unlock()
			t.answers[name] = answer{m, v, err}
		})
	}
	asking.Wait()
	select {
	case <-t.o.ending:
		return errEnding
	default:
		return nil
	}
}

// check says what is wrong with a payload for a plugin of the new lineup; nil when the plugin has never said what it accepts.
func (t *transit) check(plugin, payload string) error {
	if payload == "" {
		payload = "{}"
	}
	a, asked := t.answers[plugin]
	if !asked || a.err != nil {
		return t.o.catalog.Check(plugin, []byte(payload))
	}
	s, err := schema.Parse(a.manifest.GetPayloadSchema())
	if err != nil {
		return err
	}
	return s.Check([]byte(payload))
}

// remember keeps the settings of the queues that go: their last tasks end with them.
func (t *transit) remember() {
	for _, name := range t.gone {
		last := t.o.queueSettings(name)
		t.before.queues[name].last.Store(&last)
	}
}

// source makes what the settings are resolved from.
func (t *transit) source(source *settings.Source) {
	after := t.config.Source()
	for name, q := range after.Queues {
		plugin := t.config.Queues[name].Plugin
		a, asked := t.answers[plugin]
		before, known := source.Queues[name]
		switch {
		case asked && a.err == nil:
			q.Plugin = t.o.pluginLayer(plugin, a.manifest)
		case known && !slices.Contains(t.come, name):
			q.Plugin = before.Plugin
		default:
			p, _ := t.o.catalog.Get(plugin)
			q.Plugin = t.o.pluginLayer(plugin, p.Manifest)
		}
		after.Queues[name] = q
	}
	*source = after
}

// carryOut makes the new lineup the present one, and says what follows. The settings are those of the new lineup already.
func (t *transit) carryOut() []*apiv1.SettingEffect {
	t.tellCatalog()
	queues := maps.Clone(t.before.queues)
	var leaving []*served
	for _, name := range t.gone {
		leaving = append(leaving, queues[name])
		delete(queues, name)
	}
	for _, name := range t.come {
		queues[name] = t.o.buildQueue(name, t.config.Queues[name].Plugin)
		if old := t.before.queues[name]; old != nil {
			queues[name].gate.closed.Store(old.gate.closed.Load())
		}
	}
	t.o.present.change(func(now lineup) lineup {
		return lineup{plugins: t.plugins, queues: queues, leaving: slices.Concat(now.leaving, leaving), schedules: scheduleQueues(t.config)}
	})
	t.o.schedules.Kick()
	for _, name := range t.come {
		select {
		case t.o.coming <- queues[name]:
		case <-t.o.ending: // then nothing of it has begun
		}
	}
	for _, s := range leaving {
		close(s.leave)
	}
	if len(t.come)+len(t.fresh) > 0 {
		t.o.announce(context.Background())
	}
	effects := slices.Concat(t.queueEffects(queues), t.replaceWorkers(queues))
	for _, e := range effects {
		t.o.log.Info("queue changed by a reload", "queue", e.GetQueue(), "plugin_before", e.GetBefore(), "plugin", e.GetAfter(), "effect", e.GetEffect())
		t.o.noteQueue(e.GetQueue(), "reloaded", e.GetEffect())
	}
	return slices.Concat(effects, t.scheduleEffects())
}

// tellCatalog takes down which plugins there are, and what they said.
func (t *transit) tellCatalog() {
	for name := range t.before.plugins {
		if t.plugins[name] == nil {
			t.o.catalog.Forget(name)
		}
	}
	for _, name := range t.fresh {
		a := t.answers[name]
		t.o.catalog.Set(name, t.plugins[name].Command)
		t.o.catalog.Note(name, a.manifest, a.err)
		t.o.programs.running(name, t.plugins[name].file, a.version)
		if a.err != nil {
			t.o.log.Error("plugin cannot be used; its queues wait until it can", "plugin", name, "error", a.err)
		}
	}
}

// replaceWorkers lets the queues that stay have workers of what their plugins are now, and says so.
func (t *transit) replaceWorkers(queues map[string]*served) []*apiv1.SettingEffect {
	var effects []*apiv1.SettingEffect
	for _, name := range sortedKeys(queues) {
		s := queues[name]
		if slices.Contains(t.come, name) || !slices.Contains(t.fresh, s.plugin) {
			continue
		}
		n := s.pool.Replace(job.ExitReload)
		s.pool.Resume()
		effect := fmt.Sprintf("%d workers are replaced, new ones first", n)
		if err := t.answers[s.plugin].err; err != nil {
			effect = fmt.Sprintf("it cannot be started as it is now, and the %d workers that there are stay: %v", n, err)
		}
		what := strings.Join(differences(t.before.plugins[s.plugin].PluginConfig, t.config.Plugins[s.plugin]), ", ")
		effects = append(effects, &apiv1.SettingEffect{Queue: name, Name: "plugin", Before: s.plugin, After: s.plugin + " with another " + what, Effect: effect})
	}
	return effects
}

// differences names what differs between two configurations of a plugin, but not how: it may be secret.
func differences(a, b PluginConfig) []string {
	var names []string
	for name, same := range map[string]bool{
		"command": slices.Equal(a.Command, b.Command), "env": maps.Equal(a.Env, b.Env), "options": string(a.Options) == string(b.Options),
		"sha256": a.SHA256 == b.SHA256, "user": a.User == b.User, "limits": a.Limits == b.Limits,
	} {
		if !same {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// queueEffects says what becomes of the queues that come and go.
func (t *transit) queueEffects(queues map[string]*served) []*apiv1.SettingEffect {
	var effects []*apiv1.SettingEffect
	for _, name := range t.gone {
		s := t.before.queues[name]
		e := &apiv1.SettingEffect{Queue: name, Name: "plugin", Before: s.plugin}
		e.Effect = fmt.Sprintf("this manager leaves the queue: the %d tasks that run have %s to end; what is left and what waits stays in Redis, for whoever serves the queue next",
			s.pool.Stats().Running, settings.FormatDuration(t.o.store.Load().Manager.DrainTimeout))
		if now := queues[name]; now != nil {
			e.After = now.plugin
			e.Effect = fmt.Sprintf("new tasks run in the new plugin, and the %d that run have %s to end in the old one", s.pool.Stats().Running, settings.FormatDuration(t.o.store.Load().Manager.DrainTimeout))
		}
		effects = append(effects, e)
	}
	for _, name := range t.come {
		if t.before.queues[name] != nil {
			continue
		}
		effect := "the queue is served from now on"
		if p, _ := t.o.catalog.Get(queues[name].plugin); p.Err != nil {
			effect = fmt.Sprintf("the queue waits until its plugin can be started: %v", p.Err)
		}
		effects = append(effects, &apiv1.SettingEffect{Queue: name, Name: "plugin", After: queues[name].plugin, Effect: effect})
	}
	return effects
}
