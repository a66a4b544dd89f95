package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/catalog"
	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/orchestrator/internal/program"
	"github.com/drover-jobs/drover/orchestrator/internal/worker"
	workerv1 "github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/task"
)

// lookEvery is how often the files of the programs are looked at. One that has changed is tried when two looks found the same.
const lookEvery = time.Second

// programs follow the files of the plugins' programs. A changed one is started once outside the pools; when it is sound the pools
// replace their processes, else the one before goes on from its copy.
type programs struct {
	o     *Orchestrator
	store *program.Store
	// files are all that were ever opened: a plugin that comes back, or gets back what it had, finds its own again.
	files map[programKey]*programFile
}

// programKey is what makes a program the same one.
type programKey struct{ plugin, path, sha256 string }

// programFile is the program of one plugin.
type programFile struct {
	*program.File
	path   string
	trying sync.Mutex // held by whoever tries a new version

	mu      sync.Mutex
	sum     string // of what is started now
	refused string
	missing glance // what the file was when there was nothing to start; the zero value while there is
	unquiet glance // what it was at the last look, when that was something else
	again   bool   // somebody asked for another try
}

// glance is what a look at a file saw.
type glance struct {
	seen     bool
	none     bool
	size     int64
	mode     fs.FileMode
	modified time.Time
}

func newPrograms(o *Orchestrator) *programs {
	return &programs{o: o, store: program.NewStore(filepath.Join(o.config.Manager.StateDir, "programs"), o.log), files: map[programKey]*programFile{}}
}

// open returns a plugin with its program, which is not touched yet. Only one at a time may open.
func (ps *programs) open(name string, config PluginConfig) *plugin {
	key := programKey{name, config.Command[0], config.SHA256}
	f := ps.files[key]
	if f == nil {
		f = &programFile{File: ps.store.Open(key.path, key.sha256), path: key.path}
		ps.files[key] = f
	}
	return &plugin{PluginConfig: config, file: f}
}

// next returns the version to start next. An error says why there is none.
func (f *programFile) next(plugin string) (program.Version, error) {
	v, err := f.Current()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.missing = look(f.path)
		return v, fmt.Errorf("plugin %s: %w", plugin, err)
	}
	f.missing = glance{}
	return v, nil
}

// recalled takes down why the copy of the version that worked last is started instead of the file.
func (f *programFile) recalled(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused, f.missing = err.Error(), glance{}
}

// running takes down which version is started now.
func (ps *programs) running(plugin string, f *programFile, v program.Version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sum = v.Sum
	ps.o.catalog.Program(plugin, f.sum, f.refused)
}

// started is a spec that starts a version.
func started(spec worker.Spec, v program.Version) worker.Spec {
	if v.Path != spec.Command[0] {
		spec.Program = v.Path
	}
	return spec
}

// watch tries the programs that change until ctx ends.
func (ps *programs) watch(ctx context.Context) {
	ps.store.Prune() // what an earlier run left
	var trying sync.WaitGroup
	defer trying.Wait()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for name, p := range ps.o.present.Load().plugins {
			f := p.file
			if f.appeared() {
				ps.resume(name)
			}
			if !f.Changed() && !f.askedAgain() {
				continue
			}
			if f.trying.TryLock() {
				trying.Go(func() {
					defer f.trying.Unlock()
					ps.try(ctx, name, p)
				})
			}
		}
	}
}

// appeared reports whether there was nothing to start, and the file is another now than it was then and at rest.
func (f *programFile) appeared() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.missing.seen {
		return false
	}
	now := look(f.path)
	if now == f.missing || now.none {
		f.unquiet = glance{}
		return false
	}
	settled := now == f.unquiet
	f.unquiet = now
	if settled {
		f.missing = now
	}
	return settled
}

func look(path string) glance {
	info, err := os.Stat(path)
	if err != nil {
		return glance{seen: true, none: true}
	}
	return glance{seen: true, size: info.Size(), mode: info.Mode(), modified: info.ModTime()}
}

func (f *programFile) askedAgain() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	again := f.again
	f.again = false
	return again
}

// retry tries a program again that was refused, at the next look. A queue of the plugin was resumed.
func (ps *programs) retry(plugin string) {
	p := ps.o.present.Load().plugins[plugin]
	if p == nil {
		return // it is gone
	}
	p.file.mu.Lock()
	defer p.file.mu.Unlock()
	p.file.again = p.file.refused != ""
}

// resume lets the plugin's queues try a start at once.
func (ps *programs) resume(plugin string) {
	for _, s := range ps.o.present.Load().of(plugin) {
		s.pool.Resume()
	}
}

// try takes the changed program of a plugin, and makes it the current one if it is sound.
func (ps *programs) try(ctx context.Context, name string, p *plugin) {
	f := p.file
	v, fresh, err := f.Take()
	if err != nil {
		ps.refuse(name, f, err)
		return
	}
	if !fresh {
		ps.accept(name, f, v)
		ps.resume(name) // it may have been made executable
		return
	}
	m, err := ps.probe(ctx, name, p, v)
	if err == nil {
		err = catalog.Sound(m)
	}
	if err != nil {
		back := f.Reject()
		if ctx.Err() != nil {
			return
		}
		if !back {
			err = fmt.Errorf("%w; there is no copy of the one before, so this one is all there is to start", err)
		}
		ps.refuse(name, f, err)
		return
	}
	f.Adopt()
	f.Prove(v)
	if !ps.uses(name, f) {
		return
	}
	ps.accept(name, f, v)
	ps.o.described(ctx, name, m)
	workers := 0
	for _, s := range ps.o.present.Load().of(name) {
		workers += s.pool.Replace(job.ExitReplaced)
		s.pool.Resume()
	}
	ps.o.log.Info("the program of a plugin has changed, and its workers are replaced", "plugin", name, "program", f.path, "sha256", v.Sum, "version", m.GetVersion(), "workers", workers)
	ps.tell(name, "program-replaced", fmt.Sprintf("%s, version %s: %d workers are replaced", f.path, m.GetVersion(), workers))
}

// uses reports whether a plugin has this program: a reload may have given it another one, or taken it away.
func (ps *programs) uses(plugin string, f *programFile) bool {
	p := ps.o.present.Load().plugins[plugin]
	return p != nil && p.file == f
}

// tell tells those who watch the plugin's queues.
func (ps *programs) tell(plugin, event, text string) {
	for _, s := range ps.o.present.Load().of(plugin) {
		ps.o.noteQueue(s.name, event, text)
	}
}

// refuse says why a changed program is not used.
func (ps *programs) refuse(plugin string, f *programFile, err error) {
	if !ps.uses(plugin, f) {
		return
	}
	f.mu.Lock()
	f.refused = err.Error()
	ps.o.catalog.Program(plugin, f.sum, f.refused)
	f.mu.Unlock()
	ps.o.log.Error("the changed program of a plugin is not used; it is tried again when it changes, or when a queue of it is resumed",
		"plugin", plugin, "program", f.path, "error", err)
	ps.tell(plugin, "program-refused", f.path+": "+err.Error())
}

// accept takes down that a version is the current one.
func (ps *programs) accept(plugin string, f *programFile, v program.Version) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sum, f.refused = v.Sum, ""
	ps.o.catalog.Program(plugin, f.sum, "")
}

// probe starts a version once, as a pool would, ends it, and returns what it said of itself.
func (ps *programs) probe(ctx context.Context, name string, p *plugin, v program.Version) (*workerv1.Manifest, error) {
	queue, slots := "", 1
	for _, s := range ps.o.present.Load().of(name) {
		queue, slots = s.name, ps.o.settingsOf(s).Slots
	}
	spec := started(ps.o.spec(name, p, queue, slots, ps.o.store.Load().Manager.StartTimeout), v)
	if queue == "" {
		return ps.o.launcher.Describe(ctx, spec)
	}
	process, err := ps.o.launcher.Start(ctx, spec, unheard{})
	if err != nil {
		return nil, err
	}
	early := false
	select {
	case <-process.Done():
		early = true
	case <-time.After(settleTime):
	case <-ctx.Done():
	}
	process.Kill(job.ExitStop)
	<-process.Done()
	if early {
		return nil, errors.New("it ended as soon as it was ready")
	}
	return process.Manifest(), ctx.Err()
}

// settleTime is how long a program that is tried must stay once it is ready.
const settleTime = 100 * time.Millisecond

// unheard is the sink of a process that gets no job.
type unheard struct{}

var _ worker.Sink = unheard{}

// Finished is never called.
func (unheard) Finished(uint64, *job.Job, job.Outcome) {}

// Progressed is never called.
func (unheard) Progressed(*job.Job, task.Progress) {}

// Exited takes the end that was asked for.
func (unheard) Exited(job.Exit, []job.Unfinished) {}
