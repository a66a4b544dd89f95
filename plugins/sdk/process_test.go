package sdk_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol"
	"github.com/drover-jobs/drover/protocol/drover/task/v1"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/testenv"
)

const misbehave = "plugins/sdk/sdktest/misbehave"

// A worker program started by go-plugin runs tasks, finishes what runs on a drain, and exits with 0, having lost nothing.
func TestProcessRunsAndDrains(t *testing.T) {
	t.Parallel()
	p := launch(t, misbehave)
	stream := p.open(4)
	send(t, stream, 1, `{"do":"return","value":{"a":[1,"<b>"]}}`)
	if got := outcomes(t, stream, 1)[1].GetResult(); string(got) != `{"a":[1,"<b>"]}` {
		t.Errorf("got result %s", got)
	}
	send(t, stream, 2, `{"do":"sleep","ms":200,"value":2}`)
	send(t, stream, 3, `{"do":"sleep","ms":100,"value":3}`)
	if err := stream.Send(&workerv1.WorkRequest{Instructions: []*workerv1.Instruction{{Kind: &workerv1.Instruction_Drain{}}}}); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	got := outcomes(t, stream, 2)
	if string(got[2].GetResult()) != "2" || string(got[3].GetResult()) != "3" {
		t.Errorf("got %v", got)
	}
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
	if took := time.Since(begun); took > 1500*time.Millisecond {
		t.Errorf("drain and exit took %s", took)
	}
	if p.stderr.Len() > 0 {
		t.Errorf("the program printed %q", p.stderr)
	}
}

// A program that printed at length to standard output, without a newline and with nobody reading a certain stream, goes on; what it
// printed comes out at standard error.
func TestProcessPrintsAtLength(t *testing.T) {
	t.Parallel()
	p := launch(t, misbehave)
	stream := p.open(1)
	send(t, stream, 1, `{"do":"print","bytes":1000000,"value":"printed"}`)
	if got := outcomes(t, stream, 1)[1].GetResult(); string(got) != `"printed"` {
		t.Errorf("got %s", got)
	}
	// go-plugin hands on the rest of the line with its end, which does not come.
	poll(t, "what was printed", func() bool { return p.stderr.Len() >= 900_000 })
}

// A panicking handler is reported and the process exits with 2, by itself.
func TestProcessPanics(t *testing.T) {
	t.Parallel()
	p := launch(t, misbehave)
	stream := p.open(2)
	send(t, stream, 1, `{"do":"sleep","ms":100,"value":1}`)
	send(t, stream, 2, `{"do":"panic","note":"ouch"}`)
	got := outcomes(t, stream, 2)
	if f := got[2].GetFault(); f.GetKind() != taskv1.FaultKind_FAULT_KIND_PANIC || !strings.Contains(f.GetMessage(), "ouch") || !strings.Contains(f.GetDetail(), "misdeed") {
		t.Errorf("got %v", f)
	}
	if string(got[1].GetResult()) != "1" {
		t.Errorf("the other task: %v", got[1])
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the stream ended with %v, want a clean end", err)
	}
	if code := p.exit(); code != 2 {
		t.Errorf("exit code %d", code)
	}
}

// SIGTERM drains a process, and SIGINT does nothing to it.
func TestProcessHeedsSignals(t *testing.T) {
	t.Parallel()
	p := launch(t, misbehave)
	stream := p.open(1)
	path := filepath.Join(t.TempDir(), "log")
	send(t, stream, 1, `{"do":"sleep","ms":300,"value":1,"log":`+strconv.Quote(path)+`}`)
	poll(t, "the start of the task", func() bool {
		text, err := os.ReadFile(path)
		return err == nil && bytes.HasPrefix(text, []byte("start q:k 1 "))
	})
	for _, sig := range []os.Signal{os.Interrupt, os.Interrupt, syscall.SIGTERM} {
		if err := p.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	if got := outcomes(t, stream, 1)[1].GetResult(); string(got) != "1" {
		t.Errorf("got %s", got)
	}
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
	if text, err := os.ReadFile(path); err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("what ran: %q, %v", text, err)
	}
}

// A process without work ends on SIGTERM as well.
func TestProcessEndsIdle(t *testing.T) {
	t.Parallel()
	p := launch(t, misbehave)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
}

// When the lifeline ends the process is gone at once, whatever its handler does.
func TestProcessFollowsItsManager(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := launch(t, misbehave, func(cmd *exec.Cmd) {
		cmd.ExtraFiles = []*os.File{reader}
		cmd.Env = append(cmd.Env, protocol.EnvLifeline+"=3")
	})
	stream := p.open(1)
	send(t, stream, 1, `{"do":"spin","ms":60000}`)
	if err := errors.Join(reader.Close(), writer.Close()); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if code := p.exit(); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("it took %s", took)
	}
}

// The manager's own way to end a plugin, go-plugin's Kill, ends a worker whose task heeds its context, in order.
func TestProcessIsShutDown(t *testing.T) {
	t.Parallel()
	p := launch(t, misbehave)
	stream := p.open(1)
	send(t, stream, 1, `{"do":"sleep","ms":60000}`)
	p.client.Kill()
	if _, err := stream.Recv(); err == nil {
		t.Error("a report came after the end")
	}
	if code := p.exit(); code != 0 && code != 1 {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
}

// Started by hand a worker explains itself and exits with 1; with --describe it prints its manifest.
func TestProcessExplainsItself(t *testing.T) {
	t.Parallel()
	program := testenv.BuildBinaries(t, misbehave)[0]
	var exit *exec.ExitError
	out, err := exec.CommandContext(t.Context(), program).CombinedOutput() //nolint:gosec // a program of ours
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("got %v, want exit code 1", err)
	}
	for _, want := range []string{"misbehave is a worker program of Drover", "1.0.0", `"do"`, "plugins:", strconv.Quote(program), "--describe"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	text, err := exec.CommandContext(t.Context(), program, "--describe").Output() //nolint:gosec // a program of ours
	var manifest struct {
		Name    string          `json:"name"`
		Slots   int             `json:"slots"`
		Schema  json.RawMessage `json:"payload_schema"`
		Version []int           `json:"protocol_versions"`
	}
	if err := errors.Join(err, json.Unmarshal(text, &manifest)); err != nil || manifest.Name != "misbehave" || manifest.Slots != 1 ||
		!bytes.HasPrefix(manifest.Schema, []byte("{")) || len(manifest.Version) != 1 {
		t.Errorf("got %s, %v", text, err)
	}
}

// A lifeline that cannot be watched is an error that the operator reads, not a worker without one.
func TestProcessWithoutSoundLifeline(t *testing.T) {
	t.Parallel()
	program := testenv.BuildBinaries(t, misbehave)[0]
	for _, number := range []string{"x", "1", "99"} {
		cmd := exec.CommandContext(t.Context(), program) //nolint:gosec // a program of ours
		cmd.Env = []string{protocol.CookieKey + "=" + protocol.CookieValue, protocol.EnvLifeline + "=" + number}
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "watch the lifeline") {
			t.Errorf("%s: got %v\n%s", number, err, out)
		}
	}
}
