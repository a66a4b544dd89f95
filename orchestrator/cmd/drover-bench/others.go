package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// otherTasks are drained by what others use, which is slower.
const otherTasks = 4000

// others holds a program for each, which enqueues as many no-op tasks as its argument says into the Redis at 127.0.0.1:PORT, has
// four processes drain them, and prints in how many seconds.
//
//go:embed others
var others embed.FS

// other is what people use for workers in processes of their own.
type other struct {
	name    string
	file    string
	command []string // its interpreter
	there   []string // succeeds when it is installed
}

func otherSystems() []other {
	return []other{
		{"celery", "celery_bench.py", []string{"python3"}, []string{"python3", "-c", "import celery, redis"}},
		{"rq", "rq_bench.py", []string{"python3"}, []string{"python3", "-c", "import rq"}},
		{"bullmq", "bullmq_bench.cjs", []string{"node"}, []string{"node", "-e", "require('bullmq'); require('ioredis')"}},
		{"sidekiq", "sidekiq_bench.rb", []string{"ruby"}, []string{"ruby", "-e", "require 'sidekiq'"}},
	}
}

// measureOthers drains with those that are installed.
func measureOthers(ctx context.Context, out io.Writer, b *bench) error {
	dir := filepath.Join(b.dir, "others")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "\nWhat people use for workers in processes of other languages: four processes, %d no-op tasks\n", otherTasks)
	for _, o := range otherSystems() {
		if exec.CommandContext(ctx, o.there[0], o.there[1:]...).Run() != nil { //nolint:gosec // our own arguments
			_, _ = fmt.Fprintf(out, "%-8s not installed\n", o.name)
			continue
		}
		rate, err := b.drainOther(ctx, dir, o)
		if err != nil {
			_, _ = fmt.Fprintf(out, "%-8s %v\n", o.name, err)
			continue
		}
		_, _ = fmt.Fprintf(out, "%-8s %10.0f tasks/s\n", o.name, rate)
	}
	return ctx.Err()
}

// drainOther returns tasks per second.
func (b *bench) drainOther(ctx context.Context, dir string, o other) (float64, error) {
	const most = time.Minute
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	if err := b.admin.FlushAll(ctx).Err(); err != nil {
		return 0, err
	}
	program, err := others.ReadFile("others/" + o.file)
	if err != nil {
		return 0, err
	}
	path := filepath.Join(dir, o.file)
	if err := os.WriteFile(path, program, 0o600); err != nil {
		return 0, err
	}
	c := exec.CommandContext(ctx, o.command[0], append(o.command[1:], path, strconv.Itoa(b.port), strconv.Itoa(otherTasks))...) //nolint:gosec // our own arguments
	c.Dir, c.WaitDelay = dir, time.Second
	answer, err := c.Output()
	if err != nil {
		why := err.Error()
		if failed, ok := errors.AsType[*exec.ExitError](err); ok && len(failed.Stderr) > 0 {
			lines := strings.Split(strings.TrimSpace(string(failed.Stderr)), "\n")
			why = lines[len(lines)-1]
		}
		return 0, fmt.Errorf("did not work: %s", why)
	}
	lines := strings.Fields(string(answer))
	if len(lines) == 0 {
		return 0, errors.New("did not say how long it took")
	}
	seconds, err := strconv.ParseFloat(lines[len(lines)-1], 64)
	if err != nil || seconds <= 0 {
		return 0, fmt.Errorf("said %.80q instead of how long it took", answer)
	}
	return otherTasks / seconds, nil
}
