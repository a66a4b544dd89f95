// Command misbehave is a worker for tests: it does to its manager what a worker can do, on request.
//
//	{"do": "return", "value": 1}            return the value
//	{"do": "fail", "note": "x"}             fail; "permanent" and "retry-after" (after "ms") fail with that wish
//	{"do": "sleep", "ms": 100}              sleep, heeding the end of the context, then return the value
//	{"do": "ignore-cancel", "ms": 100}      sleep, not heeding it
//	{"do": "spin", "ms": 100}               keep a core busy, not heeding it
//	{"do": "panic"}                         panic in the handler
//	{"do": "exit", "code": 3}               end the process
//	{"do": "print", "bytes": 1000000}       print bytes without a newline to standard output, then return
//	{"do": "stop"}                          stop the process, as SIGSTOP does
//	{"do": "leak", "bytes": 1, "ms": 100}   allocate memory and touch it, hold it that long, and never free it
//	{"do": "fork", "ms": 60000}             start a child that holds the standard streams and sleeps, then return its pid
//	{"do": "setsid", "ms": 60000}           the same, in a session of its own
//	{"do": "close-socket", "ms": 100}       shut down every socket of the process, sleep, not heeding the end, then return the value
//	{"do": "garbage"}                       return what is not JSON
//	{"do": "large", "bytes": 5000000}       return a text of that many bytes
//	{"do": "progress", "ms": 100}           report progress in ten steps over that time, then return the value
//
// With "times": N it does so only while the task's attempt is at most N, and later returns the value at once. Two tasks with the
// same "lock" have the same lock key.
//
// With "log": PATH it appends "start ID attempt pid" and "end ID attempt pid" to the file, so that a test can prove what ran
// how often. "end" means that the handler returned, however. The ledger is the same for all tasks of a process, with more in it:
// see ledger.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/drover-jobs/drover/plugins/sdk"
)

// order is the payload.
type order struct {
	Do    string          `json:"do" jsonschema:"what to do: see the program's documentation"`
	Value json.RawMessage `json:"value,omitempty" jsonschema:"what to return"`
	MS    int64           `json:"ms,omitempty" jsonschema:"milliseconds"`
	Bytes int64           `json:"bytes,omitempty"`
	Code  int             `json:"code,omitempty" jsonschema:"exit code"`
	Note  string          `json:"note,omitempty" jsonschema:"text of a failure, a panic or a progress report"`
	Times int             `json:"times,omitempty" jsonschema:"attempts in which to do so; later ones return the value"`
	Lock  string          `json:"lock,omitempty" jsonschema:"lock key"`
	Log   string          `json:"log,omitempty" jsonschema:"file to which the start and the end are appended"`
}

func main() {
	book := ledger{path: os.Getenv(envLedger)}
	sdk.Serve(sdk.Worker{
		Name: "misbehave", Version: "1.0.0", Description: "does what a worker should not, for tests", LockKey: []string{"lock"},
	}, func(ctx context.Context, in order) (any, error) { return handle(ctx, in, book) })
}

func handle(ctx context.Context, in order, book ledger) (any, error) {
	if err := note(ctx, in.Log, "start"); err != nil {
		return nil, sdk.Permanent(err)
	}
	entry, err := book.begin(ctx, in.Lock)
	if err != nil {
		return nil, sdk.Permanent(err)
	}
	defer entry.hush()
	if in.Times > 0 && sdk.Info(ctx).Attempt > in.Times {
		in.Do = "return"
	}
	value, err := obey(ctx, in)
	if noted := errors.Join(entry.end(err), note(ctx, in.Log, "end")); noted != nil {
		return nil, sdk.Permanent(noted)
	}
	return value, err
}

// note appends one line to the file; one write of O_APPEND is not torn by other processes.
func note(ctx context.Context, path, what string) error {
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // the test's own file
	if err != nil {
		return fmt.Errorf("open the log of what ran: %w", err)
	}
	info := sdk.Info(ctx)
	_, err = fmt.Fprintf(file, "%s %s %d %d\n", what, info.ID, info.Attempt, os.Getpid())
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write the log of what ran: %w", err)
	}
	return nil
}
