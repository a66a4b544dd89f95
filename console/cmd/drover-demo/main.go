// Command drover-demo shows the whole path of Drover on a small web site of its own, and checks every step. It exits with 0
// when all of it held, and with 1 and what was wrong when not. `make demo` builds what it needs and runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/term"

	"github.com/drover-jobs/drover/console/internal/demo"
)

func main() {
	bin := flag.String("bin", "bin", "directory with droverd, drover and plugins/, as make build fills it")
	config := flag.String("config", filepath.Join("configs", "dev.yaml"), "configuration to derive the demonstration's from")
	misbehave := flag.String("misbehave", "", "program of the worker that dies on request; built from its source when empty")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *bin, *config, *misbehave)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "\nThe demonstration failed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, bin, config, misbehave string) error {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return fmt.Errorf("find the directory of the programs: %w", err)
	}
	if misbehave == "" {
		dir, err := os.MkdirTemp("", "drv")
		if err != nil {
			return fmt.Errorf("make a directory for a program: %w", err)
		}
		defer func() { _ = os.RemoveAll(dir) }() // only a program that can be built again
		misbehave = filepath.Join(dir, "misbehave")
		if err := build(ctx, misbehave); err != nil {
			return err
		}
	}
	return demo.Run(ctx, demo.Options{
		Bin: bin, Config: config, Misbehave: misbehave, Out: os.Stdout,
		Colour: term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "",
	})
}

func build(ctx context.Context, program string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "./plugins/sdk/sdktest/misbehave") //nolint:gosec // a path of our own
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the worker that dies on request: %w\n%s", err, out)
	}
	return nil
}
