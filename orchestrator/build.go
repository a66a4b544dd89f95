package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/orchestrator/internal/catalog"
	"github.com/drover-jobs/drover/orchestrator/internal/embedded"
	"github.com/drover-jobs/drover/orchestrator/internal/pool"
	"github.com/drover-jobs/drover/orchestrator/internal/program"
	"github.com/drover-jobs/drover/orchestrator/internal/rescue"
	"github.com/drover-jobs/drover/orchestrator/internal/roster"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/orchestrator/internal/worker"
	"github.com/drover-jobs/drover/protocol/broker"
	workerv1 "github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// openBroker starts the embedded broker, if that is the one, and makes the client that everything shares.
func (o *Orchestrator) openBroker(stack *stages) error {
	options, err := o.config.Redis.options()
	if err != nil {
		return err
	}
	if o.config.Redis.Embedded {
		o.broker, err = embedded.New(embedded.Options{Dir: o.config.Manager.StateDir, Log: o.log})
		if err != nil {
			return err
		}
		failed := make(chan error, 1)
		stack.start("embedded broker", func(ctx context.Context) error {
			err := o.broker.Run(ctx)
			failed <- err
			return err
		})
		select {
		case <-o.broker.Ready():
		case err := <-failed:
			stack.drop()
			return err
		}
		options.Single = &redis.Options{Addr: o.broker.Address(), Password: o.broker.Password()}
	}
	redis.SetLogger(redisLog{o.log})
	o.redis = options.Open()
	stack.onStop("Redis client", o.hangUp)
	return nil
}

// hangUp closes the connections to Redis, once. Calls that hang on them end with an error.
func (o *Orchestrator) hangUp() error {
	if err := o.redis.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return err
	}
	return nil
}

// redisLog keeps the Redis client's own lines out of standard error: what they tell is told by those who called.
type redisLog struct{ log *slog.Logger }

// Printf implements the client's logging.
func (r redisLog) Printf(_ context.Context, format string, args ...any) {
	r.log.Debug("redis client: " + fmt.Sprintf(format, args...))
}

// options say where the Redis at an address is; nothing for the embedded one.
func (r RedisConfig) options() (*broker.Options, error) {
	if r.Embedded {
		return &broker.Options{}, nil
	}
	options, err := broker.Parse(r.Address)
	if err != nil {
		return nil, fmt.Errorf("redis.address %w: see the reference of the configuration", err)
	}
	password, err := r.Password()
	if err != nil {
		return nil, err
	}
	options.SetCredentials(r.Username, password)
	if options.Sentinel != nil {
		options.Sentinel.SentinelUsername = r.SentinelUsername
		options.Sentinel.SentinelPassword, err = r.SentinelPassword()
	}
	return options, err
}

// openAPI opens the sockets. They are served once everything that the answers need is there.
func (o *Orchestrator) openAPI(stack *stages) error {
	m := o.config.Manager
	o.metrics = o.newMetrics()
	remote, err := o.config.API.remote()
	if err != nil {
		return err
	}
	o.api = api.New(api.Options{Socket: m.Socket, PluginSocket: m.PluginSocket, Remote: remote, Tasks: view{Client: o.tasks, o: o}, Control: o.control,
		Ready: o.ready, Metrics: o.metrics.Handler(), Log: o.log, Allowance: o.config.API.allowance()})
	if err := o.api.Listen(); err != nil {
		return err
	}
	stack.onStop("API sockets", o.api.Close)
	return nil
}

// openLauncher makes the private directory of the workers' sockets and starts the launcher.
func (o *Orchestrator) openLauncher(stack *stages) error {
	dir, err := openSocketDir(o.log)
	if err != nil {
		return err
	}
	stack.onStop("directory of worker sockets", dir.close)
	o.openReaper(dir, stack)
	o.lendSockets(dir.path)
	if o.launcher, err = worker.NewLauncher(dir.path, o.log); err != nil {
		return err
	}
	if len(o.guard) > 0 { // a program of its own, so that all children are workers, or the reaper
		o.launcher.AdoptOrphans()
	}
	stack.start("launcher", o.launcher.Run)
	return nil
}

// openCatalog asks every plugin what it is. One that cannot be asked only keeps its own queues waiting, and so does one that
// takes longer than patience: its pool goes on trying.
func (o *Orchestrator) openCatalog(ctx context.Context, stack *stages) error {
	o.programs = newPrograms(o)
	plugins := make(map[string]*plugin, len(o.config.Plugins))
	commands := make(map[string][]string, len(o.config.Plugins))
	for name, p := range o.config.Plugins {
		plugins[name] = o.programs.open(name, p)
		commands[name] = p.Command
	}
	o.present.change(func(now lineup) lineup {
		now.plugins, now.schedules = plugins, scheduleQueues(o.config)
		return now
	})
	o.catalog = catalog.New(commands)
	asking, giveUp := context.WithTimeout(ctx, 2*describeTimeout) // the second is for what worked last
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		defer giveUp()
		o.catalog.Ask(asking, func(ctx context.Context, name string) (*workerv1.Manifest, error) {
			m, v, err := o.describe(ctx, name, plugins[name])
			o.programs.running(name, plugins[name].file, v)
			return m, err
		})
	}()
	stack.onStop("questions to the plugins", func() error {
		giveUp()
		<-asked
		return nil
	})
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-asked:
	case <-timer.C:
	}
	for _, p := range o.catalog.All() {
		if p.Err == nil && p.Manifest == nil {
			o.catalog.Note(p.Name, nil, fmt.Errorf("plugin %s (%s) has not said within %s what it is", p.Name, strings.Join(p.Command, " "), patience))
		}
	}
	for _, p := range o.catalog.All() {
		if p.Err != nil {
			o.log.Error("plugin cannot be used; its queues wait until it can", "plugin", p.Name, "error", p.Err)
		}
	}
	return ctx.Err()
}

const (
	// patience is how long a start of the manager waits for its plugins to say what they are.
	patience = 3 * time.Second
	// describeTimeout bounds that first start of a plugin, before the settings are known.
	describeTimeout = 10 * time.Second
)

// openSettings makes the live settings of the configuration over the plugins' own limits.
func (o *Orchestrator) openSettings() error {
	source := o.config.Source()
	for name, q := range source.Queues {
		p, _ := o.catalog.Get(o.config.Queues[name].Plugin)
		q.Plugin = o.pluginLayer(p.Name, p.Manifest)
		source.Queues[name] = q
	}
	var err error
	if o.store, err = settings.NewStore(source, o.log); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	for _, problem := range o.control.saved.restore(o.store) {
		o.log.Error(problem)
	}
	return nil
}

// pluginLayer is what a plugin's manifest says of its queues' settings; nothing when that is not sound.
func (o *Orchestrator) pluginLayer(plugin string, m *workerv1.Manifest) settings.Layer {
	layer := settings.Layer{}
	if slots := m.GetSlots(); slots > 0 {
		layer["slots"] = fmt.Sprint(slots)
	}
	maps.Copy(layer, m.GetDefaultLimits())
	if _, err := settings.ResolveQueue(layer); err != nil {
		o.log.Error("the limits that a plugin brings are not sound and are not used", "plugin", plugin, "error", err)
		return nil
	}
	return layer
}

// spec is what a process of a plugin is started with.
func (o *Orchestrator) spec(name string, p *plugin, queue string, slots int, startTimeout time.Duration) worker.Spec {
	return worker.Spec{
		Plugin: name, Command: p.Command, Env: p.Env, Options: p.Options, API: "unix:" + o.pluginSocket(p.User),
		Queue: queue, Slots: slots, Manager: o.config.Manager.Name, StartTimeout: startTimeout,
		User: p.User,
		Limits: worker.Rlimits{
			OpenFiles: p.Limits.OpenFiles, Processes: p.Limits.Processes, CoreSize: uint64(p.Limits.Core), FileSize: uint64(p.Limits.FileSize), CPU: p.Limits.CPU, //nolint:gosec // not negative
		},
	}
}

// describe starts a plugin's program, asks what it is and ends it. It also returns which version of the program that was: should the
// file not work, it is the one that worked last, from its copy.
func (o *Orchestrator) describe(ctx context.Context, name string, p *plugin) (*workerv1.Manifest, program.Version, error) {
	v, err := p.file.next(name)
	var m *workerv1.Manifest
	if err == nil {
		m, err = o.ask(ctx, name, p, v)
	}
	if err == nil {
		p.file.Prove(v)
		return m, v, nil
	}
	back, ok := p.file.Recall()
	if !ok || ctx.Err() != nil || back.Path == v.Path {
		return m, v, err
	}
	m, backErr := o.ask(ctx, name, p, back)
	if backErr != nil {
		p.file.Forget()
		return nil, v, err
	}
	p.file.recalled(err)
	o.log.Error("the program of a plugin does not work; the copy of the one that worked last is used, and the file is tried when it changes, or when a queue of it is resumed",
		"plugin", name, "program", p.file.path, "error", err)
	return m, back, nil
}

// ask starts a version of a plugin's program, asks what it is and ends it. What it says can be used if there is no error.
func (o *Orchestrator) ask(ctx context.Context, name string, p *plugin, v program.Version) (*workerv1.Manifest, error) {
	m, err := o.launcher.Describe(ctx, started(o.spec(name, p, "", 1, describeTimeout), v))
	if err == nil {
		err = catalog.Sound(m)
	}
	return m, err
}

// queueLauncher starts processes for one queue.
type queueLauncher struct {
	o *Orchestrator
	s *served
}

var _ pool.Launcher = queueLauncher{}

// Launch starts a process with what holds now.
func (l queueLauncher) Launch(ctx context.Context, reports *pool.Pool) (pool.Process, error) {
	name := l.s.plugin
	p := l.o.present.Load().plugins[name]
	if p == nil {
		return nil, fmt.Errorf("plugin %s is not in the configuration any more", name)
	}
	v, err := p.file.next(name)
	if err != nil {
		l.o.catalog.Note(name, nil, err)
		return nil, err
	}
	l.o.programs.running(name, p.file, v)
	spec := l.o.spec(name, p, l.s.name, l.o.settingsOf(l.s).Slots, l.o.store.Load().Manager.StartTimeout)
	process, err := l.o.launcher.Start(ctx, started(spec, v), reports)
	if err != nil {
		l.o.catalog.Note(name, nil, err)
		return nil, err
	}
	p.file.Prove(v)
	l.o.described(ctx, name, process.Manifest())
	l.o.writings.began(process.ID(), l.s.name, process.Logs())
	return process, nil
}

// described takes down what a plugin says of itself, and tells clients when that is not what it was.
func (o *Orchestrator) described(ctx context.Context, plugin string, m *workerv1.Manifest) {
	before, _ := o.catalog.Get(plugin)
	o.catalog.Note(plugin, m, nil)
	if before.Manifest.GetName() != m.GetName() || before.Manifest.GetPayloadSchema() != m.GetPayloadSchema() {
		o.announce(ctx)
	}
}

func (o *Orchestrator) buildRescue() {
	// The embedded broker refuses a second manager, so whatever is active in it when a manager starts was left behind.
	o.rescue = rescue.New(rescue.Deps{
		Redis: o.redis, Queues: func() []string { return slices.Collect(maps.Keys(o.present.Load().queues)) },
		Alone: o.config.Redis.Embedded, Log: o.log,
	})
}

// buildRoster describes this manager for the list of those that share its Redis.
func (o *Orchestrator) buildRoster() {
	host, _ := os.Hostname() // a machine without a name is listed without one
	o.roster = roster.New(roster.Deps{Redis: o.redis, Log: o.log, Self: func() roster.Manager {
		m := roster.Manager{
			Name: o.config.Manager.Name, Host: host, PID: os.Getpid(), Version: o.version, Started: o.began, State: *o.status.state.Load(),
			Queues: slices.Sorted(maps.Keys(o.present.Load().queues)),
		}
		for _, s := range o.present.Load().all() {
			stats := s.pool.Stats()
			m.Workers += len(stats.Workers)
			m.Running += stats.Running
		}
		return m
	}})
}
