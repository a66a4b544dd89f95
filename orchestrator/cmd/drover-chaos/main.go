// Drover-chaos runs managers with workers that misbehave, strikes them with faults, and proves that every promise is kept.
//
//	drover-chaos [--seed N] [--managers N] [--tasks N] [--duration D] [--faults LIST] [--quick] [--keep]
//
// The programs droverd and misbehave lie beside it, unless --programs says where. redis-server and memcached must be installed.
// It prints what was done and what was found. A seed repeats what was planned; the rest is up to the machine.
//
// Exit codes: 0 every promise was kept; 1 one was broken, or the run could not be carried out; 2 the command line is wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/plan"
)

const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	options, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		_, _ = fmt.Fprintln(stderr, "drover-chaos:", err)
		return exitUsage
	}
	options.Out = stdout
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := chaos.Run(ctx, options); err != nil {
		_, _ = fmt.Fprintln(stderr, "drover-chaos:", err)
		return exitFailed
	}
	return exitOK
}

func parse(args []string, stderr io.Writer) (chaos.Options, error) {
	var options chaos.Options
	self, err := os.Executable()
	if err != nil {
		return options, err
	}
	flags := flag.NewFlagSet("drover-chaos", flag.ContinueOnError)
	flags.SetOutput(stderr)
	programs := flags.String("programs", filepath.Dir(self), "`folder` of the programs droverd and misbehave")
	faults := flags.String("faults", "all", "faults that strike, a `list` such as redis,worker-kill; all; none")
	locks := flags.String("locks", string(plan.LocksInMemcached), "`where` the managers keep locks: memcached, redis, or off for no tasks with locks")
	quick := flags.Bool("quick", false, "a short run: 2 managers, 300 tasks, 8 s of faults, unless other flags say otherwise")
	flags.Uint64Var(&options.Plan.Seed, "seed", 0, "seed of the plan; 0 takes one at random")
	flags.IntVar(&options.Plan.Managers, "managers", 3, "number of managers")
	flags.IntVar(&options.Plan.Tasks, "tasks", 4000, "number of tasks")
	flags.DurationVar(&options.Plan.Duration, "duration", 2*time.Minute, "how long tasks are submitted and faults strike")
	flags.DurationVar(&options.Settle, "settle", 2*time.Minute, "how long to wait for the last task afterwards")
	flags.BoolVar(&options.Keep, "keep", false, "keep the run's directory")
	if err := flags.Parse(args); err != nil {
		return options, err
	}
	if flags.NArg() > 0 {
		return options, fmt.Errorf("unexpected argument %q; see drover-chaos --help", flags.Arg(0))
	}
	if *quick {
		said := map[string]bool{}
		flags.Visit(func(f *flag.Flag) { said[f.Name] = true })
		shorten(&options.Plan, said)
	}
	options.Plan.Locks = plan.Locks(*locks)
	if options.Plan.Seed == 0 {
		options.Plan.Seed = uint64(rand.Uint32()) //nolint:gosec // no secret
	}
	options.Manager, options.Worker = filepath.Join(*programs, "droverd"), filepath.Join(*programs, "misbehave")
	options.OrphansWithin = 2 * time.Second
	options.Plan.Faults, err = plan.ParseKinds(*faults)
	return options, err
}

// shorten makes a short plan of what was not said otherwise.
func shorten(p *plan.Options, said map[string]bool) {
	if !said["managers"] {
		p.Managers = 2
	}
	if !said["tasks"] {
		p.Tasks = 300
	}
	if !said["duration"] {
		p.Duration = 8 * time.Second
	}
}
