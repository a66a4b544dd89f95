package conform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/schema"
	"github.com/drover-jobs/drover/protocol/task"
)

// handshakes starts the worker for the first time.
func handshakes(ctx context.Context, k *kit) verdict {
	begun := time.Now()
	life, err := k.Start(ctx)
	if err != nil {
		k.hopeless = "it does not start"
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, exec.ErrNotFound) {
			return fail(err.Error(), "name a program that is there, by its path from this directory (./NAME) or by one that PATH leads to")
		}
		return fail(err.Error(), "a worker's first line on standard output is the handshake, which sdk.Serve writes: print to standard error, prepare in Configure. "+
			"A program that is no gRPC worker is run by the plugin exec")
	}
	life.Close()
	k.started = true
	return pass("ready after " + rounded(time.Since(begun)))
}

// describes checks the manifest.
func describes(ctx context.Context, k *kit) verdict {
	t, err := k.begin(ctx)
	if err != nil {
		k.hopeless = "it does not start a second time"
		return fail(err.Error(), "leave nothing behind that keeps another process from starting")
	}
	defer t.Close()
	bound, cancel := context.WithTimeout(ctx, killGrace)
	defer cancel()
	begun := time.Now()
	m, err := t.Describe(bound)
	took := time.Since(begun)
	if err != nil {
		k.hopeless = "it does not say what it is"
		return fail(plain(err)+t.wrote(), "answer Describe at once, and touch nothing in it")
	}
	k.manifest = m
	if err := task.CheckName(m.GetName()); err != nil {
		k.hopeless = "it has no sound name"
		return fail("its name: "+err.Error(), "correct the name")
	}
	k.schema, err = schema.Parse(m.GetPayloadSchema())
	if err != nil {
		k.hopeless = "its schema is not sound"
		return fail(err.Error(), "correct the payload's schema")
	}
	if k.Slots <= 0 && m.GetSlots() > maxSlots {
		k.hopeless = "its slots are out of range"
		return fail(fmt.Sprintf("slots are %d", m.GetSlots()), fmt.Sprintf("say 1 to %d", maxSlots))
	}
	if flaws := flaws(k, took); len(flaws) > 0 {
		return fail(strings.Join(flaws, "; "), "correct what the worker says of itself")
	}
	return pass(fmt.Sprintf("%s %s: %s", m.GetName(), m.GetVersion(), m.GetDescription()))
}

const maxSlots = 4096

// flaws are what is wrong with a manifest that can be worked with.
func flaws(k *kit, took time.Duration) []string {
	var found []string
	m := k.manifest
	if took > describeBound {
		found = append(found, fmt.Sprintf("Describe took %s, at most %s are allowed", rounded(took), describeBound))
	}
	if m.GetVersion() == "" {
		found = append(found, "it says no version")
	}
	if m.GetDescription() == "" || strings.Contains(m.GetDescription(), "\n") {
		found = append(found, fmt.Sprintf("the description %q is not one line", m.GetDescription()))
	}
	for _, name := range slices.Sorted(maps.Keys(m.GetDefaultLimits())) {
		if !slices.Contains(Limits(), name) {
			found = append(found, fmt.Sprintf("%q in default_limits is no setting of a queue (there are %s)", name, strings.Join(Limits(), ", ")))
		}
	}
	if slices.Contains(m.GetLockKey(), "") {
		found = append(found, "lock_key has an empty name")
	}
	for _, payload := range k.Payloads {
		if err := k.schema.Check(payload); err != nil {
			found = append(found, fmt.Sprintf("the payload %s does not fit the worker's own schema: %v", shown(payload), err))
		}
	}
	return found
}

// Limits are the settings of a queue that a worker may have defaults for.
func Limits() []string {
	return []string{
		"max_workers", "min_workers", "slots", "buffer", "worker_idle", "worker_lifetime", "worker_max_tasks", "memory_soft", "memory_max",
		"task_timeout", "kill_grace", "max_failures", "max_kills", "retry_backoff", "retry_backoff_max", "rate", "retention", "lock_policy", "lock_missing", "priority",
		"on_dead",
	}
}

// unknownOption is an option that no worker knows.
const unknownOption = "drover_plugin_test_unknown"

// configures finds out whether the options do, and what becomes of one that nobody knows.
func configures(ctx context.Context, k *kit) verdict {
	err := k.tryOptions(ctx, k.Options)
	if err != nil {
		k.hopeless = "it does not accept its options"
		return fail(err.Error(), "give it the options that it needs (on the command line: --options JSON)")
	}
	k.pickPayload()
	options := map[string]json.RawMessage{}
	if len(k.Options) > 0 && json.Unmarshal(k.Options, &options) != nil {
		return pass("accepted")
	}
	options[unknownOption] = json.RawMessage("true")
	more, err := json.Marshal(options)
	if err != nil {
		return fail(err.Error(), "")
	}
	switch err := k.tryOptions(ctx, more); {
	case err == nil:
		return pass("accepted; so is an option that it does not know, which hides typing mistakes")
	case errors.Is(err, errSpeechless):
		return fail("with an option that it does not know: "+err.Error(), "return an error from Configure, which the operator reads")
	default:
		return pass("accepted; one that it does not know is refused: " + err.Error())
	}
}

// errSpeechless says that a worker refused its options without a word.
var errSpeechless = errors.New("it ended, or did not answer, instead of saying what is wrong")

// tryOptions configures a new life and returns why that failed.
func (k *kit) tryOptions(ctx context.Context, options json.RawMessage) error {
	t, err := k.begin(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	err = k.configure(ctx, t, options)
	switch code := status.Code(err); {
	case err == nil:
		return nil
	case code == codes.Unavailable, code == codes.DeadlineExceeded, code == codes.Canceled, plain(err) == "":
		return fmt.Errorf("%w (%s%s)", errSpeechless, plain(err), t.wrote())
	default:
		return errors.New(plain(err))
	}
}

// pickPayload makes a payload when none was given.
func (k *kit) pickPayload() {
	if len(k.Payloads) > 0 {
		return
	}
	payload, err := Example(k.manifest.GetPayloadSchema())
	if err != nil {
		k.hopeless = "there is no payload to give it: " + err.Error() + "; give one that it accepts (on the command line: --payload JSON)"
		return
	}
	k.Payloads, k.derived = []json.RawMessage{payload}, true
}

// needsNoEnvironment says whether a start failed for want of the environment.
func needsNoEnvironment(ctx context.Context, k *kit) verdict {
	switch {
	case k.Inherit == nil:
		return skip("it runs inside this process")
	case k.worked:
		return pass("it worked without any other")
	case k.started:
		return skip("no task has ended with a result yet")
	}
	life, err := k.Inherit(ctx)
	if err != nil {
		return skip("it does not start with a whole environment either")
	}
	life.Close()
	return fail("it starts with your whole environment, and not with a manager's", "name the variables that it needs in `env` of the plugin (for the plugin exec: in the option `env`), or do without them")
}

// unknownInstruction is one of a newer manager.
func unknownInstruction() *workerv1.Instruction {
	const field = 1000
	i := &workerv1.Instruction{}
	i.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, field, protowire.VarintType), 1))
	return i
}
