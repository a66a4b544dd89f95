package sdk

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/drover-jobs/drover/protocol"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// started is a run that has begun.
func started(o *outbox, number uint64) *run {
	r := &run{number: number, task: &workerv1.Task{Run: number}, out: o, started: true}
	o.accepted(r)
	return r
}

// kinds names the reports of a batch.
func kinds(batch *workerv1.WorkResponse) string {
	var names []string
	for _, report := range batch.GetReports() {
		switch report.GetKind().(type) {
		case *workerv1.Report_Accepted:
			names = append(names, "accepted")
		case *workerv1.Report_Progress:
			names = append(names, "progress")
		case *workerv1.Report_Log:
			names = append(names, "log")
		case *workerv1.Report_Outcome:
			names = append(names, "outcome")
		default:
			names = append(names, "other")
		}
	}
	return strings.Join(names, " ")
}

// An outcome is sent at once and takes what waits along; the Accepted of its run is left out; other reports wait a little.
func TestOutboxBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(defaultYields)
		batches := make(chan string, 10)
		ended := make(chan error)
		go func() {
			ended <- o.write(func(batch *workerv1.WorkResponse) error {
				batches <- kinds(batch)
				return nil
			})
		}()
		next := func(want string, within time.Duration) {
			t.Helper()
			begun := time.Now()
			if got := <-batches; got != want || time.Since(begun) > within {
				t.Errorf("got %q after %s, want %q within %s", got, time.Since(begun), want, within)
			}
		}
		slow, quick := started(o, 1), started(o, 2)
		o.progress(quick, 1, 2, "")
		o.outcome(quick, completed(quick, nil))
		next("accepted progress outcome", 0)
		o.log(logReport(1, 0, "x", nil))
		o.progress(slow, 1, 2, "")
		o.progress(slow, 2, 2, "")
		next("log progress", patience)
		o.outcome(slow, completed(slow, nil))
		next("outcome", 0)
		o.close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// A batch stays within its bound, and a report that is larger than the bound travels alone.
func TestOutboxBoundsBatches(t *testing.T) {
	t.Parallel()
	o := newOutbox(0)
	total := 0
	for i := range uint64(40) {
		r := started(o, i)
		o.outcome(r, completed(r, make([]byte, 100_000)))
		total++
	}
	r := started(o, 99)
	o.outcome(r, completed(r, make([]byte, 3<<20)))
	total++
	o.close()
	if err := o.write(func(batch *workerv1.WorkResponse) error {
		total -= len(batch.GetReports())
		if size := proto.Size(batch); size > protocol.MaxBatch && len(batch.GetReports()) > 1 {
			t.Errorf("a batch of %d reports has %d bytes", len(batch.GetReports()), size)
		}
		return nil
	}); err != nil || total != 0 {
		t.Errorf("%v, with %d reports missing", err, total)
	}
}

// After a failed send the outbox takes nothing more and holds nobody up.
func TestOutboxDies(t *testing.T) {
	t.Parallel()
	o := newOutbox(0)
	broken := errors.New("broken")
	r := started(o, 1)
	o.outcome(r, completed(r, nil))
	if err := o.write(func(*workerv1.WorkResponse) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	for range 2 * maxBacklog {
		o.outcome(r, completed(r, nil))
	}
	o.waitForRoom()
	if len(o.reports) != 0 {
		t.Errorf("%d reports are kept", len(o.reports))
	}
}

// The reader is held up while a manager sends tasks but does not read what became of them, and goes on when it does.
func TestOutboxHoldsTheReaderUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(0)
		for i := range uint64(maxBacklog + 1) {
			r := started(o, i)
			o.outcome(r, completed(r, nil))
			o.progress(r, 1, 1, "")
		}
		going := make(chan struct{})
		go func() {
			o.waitForRoom()
			close(going)
		}()
		synctest.Wait()
		select {
		case <-going:
			t.Error("the reader was not held up")
		default:
		}
		o.close()
		if err := o.write(func(*workerv1.WorkResponse) error { return nil }); err != nil {
			t.Error(err)
		}
		<-going
	})
}
