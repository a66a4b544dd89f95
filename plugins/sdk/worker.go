package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/schema"
	"github.com/drover-jobs/drover/protocol/task"
)

// Worker says what a program is and how it likes to be run.
type Worker struct {
	// Name is the kind of task that the program runs: 1 to 64 lower case letters, digits, '-', '_' and '.'.
	Name string
	// Version is shown to people.
	Version string
	// Description is one line for people.
	Description string
	// Slots is how many tasks one process runs at once unless the queue says otherwise; 0 means 1. The handler of a worker
	// with more than one is called from several goroutines.
	Slots int
	// LockKey names the payload fields that make up the lock key: two tasks that agree in them never run at once. Empty
	// means no lock.
	LockKey []string
	// Limits are settings of the queue, by name, as they would stand in the configuration, such as "task_timeout": "2m".
	// The configuration wins.
	Limits map[string]string
	// Schema is the JSON Schema (2020-12) of the payload; "" derives it from the handler's input type.
	Schema string
	// Configure is called once, before the first task. Its error, and the lines it logs, are shown to the operator. The
	// context ends when it returns. Nil means that there is nothing to do.
	Configure func(ctx context.Context, c Config) error
	// Close is called after the last task, when the process is about to exit. It is not called when a task still runs by
	// then. Nil means that there is nothing to do.
	Close func() error
}

// Config is what a manager tells a process before its first task.
type Config struct {
	// Queue is the queue that this process serves.
	Queue string
	// Options are the plugin's own options, a JSON object; empty when the configuration has none.
	Options json.RawMessage
	// Slots is how many tasks run at once in this process.
	Slots int
	// Manager is the manager's name.
	Manager string
}

// Program is a worker that can be served.
type Program struct {
	worker   Worker
	call     call
	manifest *workerv1.Manifest
	err      error // why it cannot be served
}

// call runs the author's handler on a payload and returns its result, both as JSON.
type call func(ctx context.Context, payload []byte) ([]byte, error)

// New returns the program of a worker. It starts nothing; a mistake in w is reported when the program is served.
func New[In, Out any](w Worker, handle func(ctx context.Context, in In) (Out, error)) *Program {
	p := &Program{worker: w, call: adapt(handle)}
	text := w.Schema
	if text == "" {
		text, p.err = schema.For[In]()
	}
	if p.err == nil {
		p.err = w.check(text)
	}
	p.manifest = &workerv1.Manifest{
		Name: w.Name, Version: w.Version, Description: w.Description, Slots: uint32(w.slots()), //nolint:gosec // bounded by slots
		LockKey: slices.Clone(w.LockKey), PayloadSchema: text, DefaultLimits: maps.Clone(w.Limits),
	}
	return p
}

// Serve is the main function of a worker program: it runs the worker until its manager is done with it and exits the
// process. Started by hand it explains itself; with --describe it prints the manifest as JSON.
func Serve[In, Out any](w Worker, handle func(ctx context.Context, in In) (Out, error)) {
	New(w, handle).Serve()
}

// Serve does what the function Serve does. It does not return.
func (p *Program) Serve() {
	os.Exit(p.main(os.Args[1:])) //nolint:forbidigo // Serve is the main function of every worker program, as its name promises
}

// Err says what is wrong with the worker's description; nil when it can be served.
func (p *Program) Err() error { return p.err }

// maxSlots bounds what one process runs at once.
const maxSlots = 4096

func (w *Worker) slots() int { return min(max(1, w.Slots), maxSlots) }

// check reports what an author has to correct.
func (w *Worker) check(schemaText string) error {
	if err := task.CheckName(w.Name); err != nil {
		return fmt.Errorf("the worker's Name: %w", err)
	}
	if w.Slots < 0 || w.Slots > maxSlots {
		return fmt.Errorf("the worker's Slots are %d: use 0 to %d", w.Slots, maxSlots)
	}
	if _, err := schema.Parse(schemaText); err != nil {
		return fmt.Errorf("the worker's Schema: %w", err)
	}
	for _, field := range w.LockKey {
		if field == "" {
			return fmt.Errorf("the worker's LockKey has an empty field name")
		}
	}
	return nil
}
