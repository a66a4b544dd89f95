package sdktest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// Drain asks the worker to end once its running tasks have ended. Exit tells when it has.
func (w *Worker) Drain() {
	w.mu.Lock()
	opened := w.stream != nil
	w.mu.Unlock()
	if !opened {
		w.stop() // without a stream there is nobody to tell; this is the manager's Shutdown
		return
	}
	w.Send(&workerv1.Instruction{Kind: &workerv1.Instruction_Drain{Drain: &workerv1.Drain{}}})
}

// HangUp breaks the Work stream, as the death of a manager does.
func (w *Worker) HangUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hangUp != nil {
		w.hangUp()
	}
}

// Exit waits for the worker's end and returns the exit code of its process, or ctx's error.
func (w *Worker) Exit(ctx context.Context) (int, error) {
	select {
	case <-w.exited:
		return w.code, nil
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for the worker's end: %w", ctx.Err())
	}
}

// Stacks returns the stacks of the worker's goroutines. In a test they include the test's own.
func (w *Worker) Stacks(ctx context.Context) (string, error) {
	answer := make(chan string, 1)
	w.mu.Lock()
	w.next++
	request := w.next
	w.stacks[request] = answer
	w.mu.Unlock()
	w.Send(&workerv1.Instruction{Kind: &workerv1.Instruction_DumpStacks{DumpStacks: &workerv1.DumpStacks{Request: request}}})
	select {
	case text := <-answer:
		return text, nil
	case <-ctx.Done():
		return "", fmt.Errorf("wait for the stacks: %w", ctx.Err())
	}
}

// SecondStream opens another Work stream and returns how the worker refused it; nil when it did not.
func (w *Worker) SecondStream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := w.client.Work(ctx)
	if err != nil {
		return err
	}
	_, err = stream.Recv()
	return err
}

// Logs returns all lines that the worker has logged so far, in the order of their arrival.
func (w *Worker) Logs() []Log {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Log(nil), w.logs...)
}

// Send sends instructions as they are, in one message, for tests that say what no manager would.
// What cannot be sent is dropped: the reader learns why and ends every run with it.
func (w *Worker) Send(instructions ...*workerv1.Instruction) {
	w.mu.Lock()
	stream := w.stream
	w.mu.Unlock()
	if stream == nil {
		return
	}
	w.sending.Lock()
	defer w.sending.Unlock()
	_ = stream.Send(&workerv1.WorkRequest{Instructions: instructions})
}

// read takes what the worker reports until the stream ends.
func (w *Worker) read(stream workerv1.WorkerService_WorkClient) {
	for {
		response, err := stream.Recv()
		if err != nil {
			w.lost(err)
			return
		}
		for _, report := range response.GetReports() {
			w.take(report)
		}
	}
}

func (w *Worker) lost(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gone = fmt.Errorf("the Work stream has ended: %w", err)
	if errors.Is(err, io.EOF) {
		// As a manager reads it: a task that crossed with the end of the stream was never begun.
		w.gone = fault.New(fault.Interrupted, "the worker ended before the task could begin")
	}
	for _, r := range w.runs {
		r.end(nil, w.gone)
	}
	clear(w.runs)
}

// take books one report. A report on a run that is not open breaks the protocol and fails the test.
func (w *Worker) take(report *workerv1.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch kind := report.GetKind().(type) {
	case *workerv1.Report_Accepted:
		if r := w.open(kind.Accepted.GetRun(), "an Accepted"); r != nil {
			r.begin()
		}
	case *workerv1.Report_Progress:
		if r := w.open(kind.Progress.GetRun(), "progress"); r != nil {
			r.progress = append(r.progress, *task.ProgressFromProto(kind.Progress.GetProgress()))
		}
	case *workerv1.Report_Outcome:
		if r := w.open(kind.Outcome.GetRun(), "an outcome"); r != nil {
			delete(w.runs, r.number)
			r.end(outcome(kind.Outcome))
		}
	case *workerv1.Report_Log:
		w.logs = append(w.logs, w.line(kind.Log))
	case *workerv1.Report_Stacks:
		if answer := w.stacks[kind.Stacks.GetRequest()]; answer != nil {
			delete(w.stacks, kind.Stacks.GetRequest())
			answer <- kind.Stacks.GetText()
		}
	}
}

func (w *Worker) open(number uint64, what string) *Run {
	r := w.runs[number]
	if r == nil && !w.lenient {
		w.t.Errorf("the worker sent %s for run %d, which is not open", what, number)
	}
	return r
}

func (w *Worker) line(l *workerv1.Log) Log {
	line := Log{Run: w.runs[l.GetRun()], Level: slog.Level(l.GetLevel()), Message: l.GetMessage()}
	if len(l.GetAttributes()) > 0 {
		if err := json.Unmarshal(l.GetAttributes(), &line.Attributes); err != nil {
			w.t.Errorf("the attributes %q of log line %q are no JSON object: %v", l.GetAttributes(), l.GetMessage(), err)
		}
	}
	return line
}

// text returns a payload as JSON text.
func text(t testing.TB, payload any) []byte {
	t.Helper()
	switch p := payload.(type) {
	case string:
		return []byte(p)
	case []byte:
		return p
	case json.RawMessage:
		return p
	}
	encoded, err := json.Marshal(payload)
	if err != nil {
		t.Fatalf("write the payload as JSON: %v", err)
	}
	return encoded
}
