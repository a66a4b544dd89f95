package sdk

import (
	"fmt"
	"runtime"

	"github.com/drover-jobs/drover/protocol"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// write sends what is put in until the outbox is closed and empty, or until send fails.
func (o *outbox) write(send func(*workerv1.WorkResponse) error) error {
	var batch workerv1.WorkResponse
	for o.wait() {
		batch.Reports = o.take(batch.Reports[:0])
		if len(batch.Reports) == 0 {
			continue
		}
		if err := send(&batch); err != nil {
			o.kill()
			return err
		}
		clear(batch.Reports)
	}
	return nil
}

// wait returns true when there is something to send now and false when there will never be.
func (o *outbox) wait() bool {
	for {
		o.mu.Lock()
		ready := o.awaited > 0 || o.due || o.closed
		over := o.dead || o.closed && len(o.reports) == 0 && o.dropped == 0
		patient := o.closed || o.going == 0
		o.mu.Unlock()
		switch {
		case over:
			return false
		case !ready:
			<-o.wake
		case patient:
			return true
		default:
			o.stepBack()
			return true
		}
	}
}

// stepBack lets other goroutines run, so that runs about to end can put their outcomes in. On two cores, sixteen slots full of
// tasks that do nothing (BenchmarkDrain): without it a message carries 1.2 outcomes and a task costs 36 us of both
// processes' time; with two, four or sixteen yields 8 to 10 outcomes and 25 us; with a timer of 200 us in their place 16
// outcomes and 24 us, at the price of up to a millisecond whenever the process is idle.
func (o *outbox) stepBack() {
	for range o.yields {
		runtime.Gosched()
	}
}

// take moves reports into batch, at most protocol.MaxBatch bytes of them but at least one.
func (o *outbox) take(batch []*workerv1.Report) []*workerv1.Report {
	o.mu.Lock()
	defer o.mu.Unlock()
	size, n := 0, 0
	for _, report := range o.reports {
		if report != nil {
			s := sizeOf(report)
			if len(batch) > 0 && size+s > protocol.MaxBatch {
				break
			}
			size += s
			batch = append(batch, report)
			o.forget(report, s)
		}
		n++
	}
	o.base += uint64(n) //nolint:gosec // a length
	sent := o.reports
	o.reports = append(o.spare[:0], sent[n:]...) //nolint:gocritic // the two arrays change places
	clear(sent)
	o.spare = sent[:0]
	if len(o.reports) == 0 {
		o.due = false
		if o.dropped > 0 {
			batch = append(batch, logReport(0, warnLevel, fmt.Sprintf("%d log lines were dropped: they came faster than they could be sent", o.dropped), nil))
			o.dropped = 0
		}
	}
	o.room.Broadcast()
	return batch
}

// forget takes a report that leaves out of the books.
func (o *outbox) forget(report *workerv1.Report, size int) {
	switch report.GetKind().(type) {
	case *workerv1.Report_Outcome, *workerv1.Report_Stacks:
		o.awaited--
	case *workerv1.Report_Log:
		o.logs--
		o.logBytes -= size
	}
}
