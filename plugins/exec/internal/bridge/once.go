package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/drover-jobs/drover/plugins/exec/internal/child"
	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// runOnce starts the command for one task and waits for its end.
func (b *bridge) runOnce(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
	spec := b.spec
	spec.Env = slices.Concat(spec.Env, b.variables(sdk.Info(ctx)))
	c, err := b.launcher.Start(spec)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "the command cannot be run: %v", err)
	}
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		_, _ = c.Stdin.Write(payload) // a command need not read it
		_ = c.Stdin.Close()
	}()
	output := make(chan []byte, 1)
	go func() { output <- readResult(c) }()
	ended := b.follow(ctx, c)
	_ = c.Stdin.Close() // ends a write that nobody will read
	<-fed
	text := <-output
	_ = c.Stdout.Close()
	switch {
	case len(text) > task.MaxResult:
		return nil, fault.New(fault.TooLarge, "the command %q wrote more than %d bytes: store the result and print where it is",
			b.settings.name(), task.MaxResult).AsPermanent()
	case c.ExitCode() == 0:
		return resultOf(text), nil
	case ended:
		return nil, lastWords(c, fault.New(fault.Failed, "the command %q got SIGTERM, since its run was to end, and %s", b.settings.name(), c.End()))
	}
	return nil, lastWords(c, exitFault(b.settings.name(), c))
}

// follow waits for the child's end. When ctx ends first, it ends the child, and reports that it did.
func (b *bridge) follow(ctx context.Context, c *child.Child) (ended bool) {
	select {
	case <-c.Done():
		return false
	case <-ctx.Done():
	}
	c.Terminate()
	late := time.AfterFunc(b.settings.cancelGrace, c.Kill)
	defer late.Stop()
	<-c.Done()
	return true
}

// readResult reads what the command prints, and ends a command that prints more than a result may have.
func readResult(c *child.Child) []byte {
	text, _ := io.ReadAll(io.LimitReader(c.Stdout, task.MaxResult+1)) // what came before an error is what there is
	if len(text) > task.MaxResult {
		c.Kill()
	}
	return text
}

// resultOf is what was printed: JSON as it is, anything else as a text, nothing as null.
func resultOf(printed []byte) json.RawMessage {
	printed = bytes.TrimSpace(printed)
	if len(printed) == 0 {
		return json.RawMessage("null")
	}
	clean := bytes.ToValidUTF8(printed, []byte("\uFFFD"))
	if json.Valid(clean) {
		return clean
	}
	text, err := json.Marshal(string(clean))
	if err != nil {
		return json.RawMessage("null") // a string can always be written
	}
	return text
}

// variables tell a command which run of which task it is.
func (b *bridge) variables(t sdk.Task) []string {
	variables := []string{
		"DROVER_TASK_ID=" + t.ID.String(), "DROVER_KIND=" + b.kind, "DROVER_QUEUE=" + t.Queue,
		"DROVER_ATTEMPT=" + strconv.Itoa(t.Attempt),
	}
	if !t.Deadline.IsZero() {
		variables = append(variables, fmt.Sprintf("DROVER_DEADLINE_MS=%d", t.Deadline.UnixMilli()))
	}
	return variables
}

// exits are the codes that say more than "failed": those of sysexits.h, and the two that shells add. A code that is not here
// is a failure that is tried again.
var exits = map[int]struct { //nolint:gochecknoglobals // the table itself; never written
	kind      fault.Kind
	permanent bool
	meaning   string
}{
	64:  {fault.Failed, true, "wrong usage"},
	65:  {fault.InvalidPayload, true, "the payload is wrong"},
	66:  {fault.Failed, true, "an input does not exist"},
	67:  {fault.Failed, true, "an addressee does not exist"},
	68:  {fault.Failed, true, "a host does not exist"},
	69:  {fault.Unavailable, false, "a service is unavailable"},
	70:  {fault.Failed, false, "an error in the program"},
	71:  {fault.Unavailable, false, "the operating system failed"},
	72:  {fault.Unavailable, false, "a system file is missing"},
	73:  {fault.Unavailable, false, "an output cannot be made"},
	74:  {fault.Unavailable, false, "reading or writing failed"},
	75:  {fault.Failed, false, "try again later"},
	76:  {fault.Unreachable, false, "the other side answered wrongly"},
	77:  {fault.Refused, true, "not allowed"},
	78:  {fault.Unavailable, false, "the configuration is wrong"},
	126: {fault.Unavailable, false, "a command cannot be run"},
	127: {fault.Unavailable, false, "a command was not found"},
}

// exitFault says what a command's end means for its task.
func exitFault(name string, c *child.Child) *fault.Fault {
	if c.ExitCode() < 0 {
		return fault.New(fault.Crash, "the command %q %s", name, c.End())
	}
	exit, known := exits[c.ExitCode()]
	if !known {
		return fault.New(fault.Failed, "the command %q %s", name, c.End())
	}
	f := fault.New(exit.kind, "the command %q %s (%s)", name, c.End(), exit.meaning)
	f.Permanent = exit.permanent
	return f
}
