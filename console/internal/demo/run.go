package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/fault"
)

// Options say what the demonstration works with.
type Options struct {
	// Bin is the absolute path of the directory that holds droverd, drover and plugins/.
	Bin string
	// Config is the development configuration, from which the demonstration's is derived.
	Config string
	// Misbehave is the program of the worker that dies on request.
	Misbehave string
	Out       io.Writer
	Colour    bool
}

// longest is how long the demonstration may take.
const longest = 55 * time.Second

type demo struct {
	options Options
	tell    *teller
	site    *site
	manager *manager
}

// Run shows and checks everything. The error says what was not as it should be; nil is a proof.
func Run(ctx context.Context, o Options) error {
	dir, err := os.MkdirTemp("", "drv")
	if err != nil {
		return fmt.Errorf("make a directory for the demonstration: %w", err)
	}
	d := &demo{options: o, tell: &teller{out: o.Out, style: screen.Style{Colour: o.Colour}}}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	err = d.onSite(limited, placesIn(dir))
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("%w\nthe manager's files are kept in %s", err, dir)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the demonstration's directory: %w", err)
	}
	if err != nil {
		return context.Cause(ctx)
	}
	fmt.Fprintf(o.Out, "\nAll of it held, in %s. Next: make run, and in another terminal bin/drover help.\n", screen.Duration(time.Since(began)))
	return nil
}

// onSite runs the steps while the site serves.
func (d *demo) onSite(ctx context.Context, p places) error {
	site, listener, err := openSite(ctx)
	if err != nil {
		return err
	}
	d.site = site
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return site.serve(listener) })
	group.Go(func() error {
		defer site.close()
		return d.steps(ctx, p)
	})
	return group.Wait()
}

func (d *demo) steps(ctx context.Context, p places) (err error) {
	d.tell.begin("A small web site of our own, at %s", d.site.address)
	d.tell.say("It serves %d feeds: sound, mislabelled, moved, broken and slow ones.", len(expectations()))

	d.tell.begin("A manager, with everything it needs inside")
	if err := writeConfig(d.options.Config, p, d.options.Bin, d.options.Misbehave); err != nil {
		return err
	}
	if d.manager, err = startManager(ctx, d.options, p); err != nil {
		return d.withLog(err, p)
	}
	defer func() {
		if err != nil {
			err = d.withLog(err, p)
		}
		err = errors.Join(err, d.manager.kill())
	}()
	if err := d.introduce(ctx); err != nil {
		return err
	}
	if err := d.pulls(ctx); err != nil {
		return err
	}

	d.tell.begin("A worker is killed in the middle of its work")
	if err := d.killWorker(ctx); err != nil {
		return err
	}
	d.tell.begin("A task that kills whatever runs it")
	if err := d.poison(ctx); err != nil {
		return err
	}
	d.tell.begin("How the manager is after all that: drover status")
	if err := d.consoleStatus(ctx); err != nil {
		return err
	}
	d.tell.begin("A clean stop: SIGTERM")
	return d.stop(ctx)
}

func (d *demo) introduce(ctx context.Context) error {
	s, err := d.manager.status(ctx)
	if err != nil {
		return fmt.Errorf("ask the manager how it is: %w", err)
	}
	d.tell.say("droverd is process %d, with its broker at %s.", s.GetManager().GetPid(), s.GetManager().GetBroker())
	for _, p := range s.GetPlugins() {
		if p.GetError() != "" {
			return fmt.Errorf("the plugin %s: %s", p.GetName(), p.GetError())
		}
		d.tell.say("Plugin %s %s: %s", p.GetName(), p.GetVersion(), p.GetDescription())
	}
	if len(s.GetPlugins()) != 2 {
		return fmt.Errorf("the manager found %d plugins, not feed-pull and %s", len(s.GetPlugins()), misbehave)
	}
	return nil
}

func (d *demo) pulls(ctx context.Context) error {
	all := expectations()
	d.tell.begin("Every feed, pulled by worker processes; each end as it comes")
	if err := d.pullAll(ctx, all, checkFirst); err != nil {
		return err
	}
	d.tell.proved("All came as they should: what can be read is read, what cannot says why.")

	d.tell.begin("The same feeds again: nothing is new")
	sound := slices.DeleteFunc(slices.Clone(all), func(e expectation) bool { return e.fault != fault.None })
	if err := d.pullAll(ctx, sound, checkAgain); err != nil {
		return err
	}
	asked, unchanged := d.site.counts()
	if unchanged == 0 {
		return errors.New("the site never answered 304: no pull said what it knows")
	}
	d.tell.proved("Nothing was stored twice. Of %d requests the site answered %d with 304, not modified.", asked, unchanged)
	return nil
}

// consoleStatus runs the console, as a person would.
func (d *demo) consoleStatus(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, filepath.Join(d.options.Bin, "drover"), "status", "--socket", d.manager.places.socket) //nolint:gosec // our own program
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("run drover status: %w: %s", err, out)
	}
	for _, line := range screen.CleanLines(string(out)) {
		d.tell.say("%s", line)
	}
	return d.survived(ctx)
}

// stop ends the manager and checks that nothing of it is left.
func (d *demo) stop(ctx context.Context) error {
	s, err := d.manager.status(ctx)
	if err != nil {
		return fmt.Errorf("ask the manager for its workers: %w", err)
	}
	code, err := d.manager.stop()
	if err != nil {
		return err
	}
	d.tell.say("%s", d.manager.report())
	if code != 0 {
		return fmt.Errorf("the manager ended with exit code %d", code)
	}
	for _, w := range s.GetWorkers() {
		if alive(int(w.GetPid())) {
			return fmt.Errorf("the worker process %d is still there", w.GetPid())
		}
	}
	if _, err := os.Stat(d.manager.places.socket); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the manager's socket %s is still there", d.manager.places.socket)
	}
	d.tell.proved("Exit code 0; of the %d worker processes and the socket nothing is left.", len(s.GetWorkers()))
	return nil
}

// withLog adds the end of the manager's log to an error.
func (d *demo) withLog(err error, p places) error {
	m := &manager{places: p}
	text := "the end of the manager's log:"
	const lines = 25
	for _, line := range m.tail(lines) {
		text += "\n  " + screen.Clean(line)
	}
	return fmt.Errorf("%w\n%s", err, text)
}
