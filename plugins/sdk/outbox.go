package sdk

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/drover-jobs/drover/protocol"
	"github.com/drover-jobs/drover/protocol/drover/task/v1"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// The outbox holds the reports that wait for the one writer of the Work stream.
//
// A write costs more than most of what it carries: a system call here, one there, and two changes of goroutine. So reports
// travel together. There are two sorts. Outcomes and stacks are awaited by somebody: the writer sends them, and all else that
// waits, at once when nothing more runs here, and otherwise after it has stepped back a few times for the runs that are
// about to end. Everything else is patient: it goes with the next outcome or after a short pause, whichever is first; an
// Accepted whose outcome comes within that pause is never sent. The writer steps back by yielding, not with a timer: a
// timer of less than a millisecond fires late in an idle process, and there is nothing to wait for then.
//
// Nothing here blocks a handler. Progress is kept in its latest form only, log lines are bounded and counted when dropped,
// and outcomes are as many as there are runs.
const (
	patience    = time.Millisecond
	maxLogs     = 1024
	maxLogBytes = 1 << 20
	maxBacklog  = 8192    // reports; beyond them no instruction is read
	maxNote     = 1 << 10 // bytes of a progress note
	maxLine     = 8 << 10 // bytes of a log line's message, and of its attributes
)

// ticket remembers where a run's reports stand in the outbox, as positions counted from the first report ever put in, plus 1.
type ticket struct{ accepted, progress uint64 }

type outbox struct {
	yields int // how often the writer steps back while other runs go on
	wake   chan struct{}
	room   *sync.Cond

	mu       sync.Mutex
	reports  []*workerv1.Report // nil where one was taken back
	spare    []*workerv1.Report // the array of the last batch, to be used again
	base     uint64             // position of reports[0]
	going    int                // runs that have begun and not ended
	awaited  int                // reports that somebody waits for
	due      bool               // patience has ended
	timer    *time.Timer
	armed    bool
	logs     int
	logBytes int
	dropped  int
	closed   bool // the writer ends when all is sent
	dead     bool // nothing can be sent any more
}

// defaultYields is what the benchmark of the package chose.
const defaultYields = 4

func newOutbox(yields int) *outbox {
	o := &outbox{yields: yields, wake: make(chan struct{}, 1)}
	o.room = sync.NewCond(&o.mu)
	return o
}

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

// stepBack lets other goroutines run, so that runs about to end can put their outcomes in.
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
	rest := append(o.spare[:0], o.reports[n:]...)
	clear(o.reports)
	o.reports, o.spare = rest, o.reports[:0]
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

// accepted says that r begins.
func (o *outbox) accepted(r *run) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.going++
	r.ticket.accepted = o.put(&workerv1.Report{Kind: &workerv1.Report_Accepted{Accepted: &workerv1.Accepted{Run: r.number}}})
}

// progress replaces the progress of r that still waits, or adds to it.
func (o *outbox) progress(r *run, done, total uint64, note string) {
	report := &workerv1.Report{Kind: &workerv1.Report_Progress{Progress: &workerv1.Progress{
		Run: r.number, Progress: &taskv1.Progress{Done: done, Total: total, Note: clean(note, maxNote)},
	}}}
	o.mu.Lock()
	defer o.mu.Unlock()
	if i, ok := o.find(r.ticket.progress); ok {
		o.reports[i] = report
		return
	}
	r.ticket.progress = o.put(report)
}

// log adds a line, or counts it when too many wait.
func (o *outbox) log(report *workerv1.Report) {
	size := sizeOf(report)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.logs >= maxLogs || o.logBytes+size > maxLogBytes {
		if !o.dead {
			o.dropped++
		}
		return
	}
	if o.put(report) != 0 {
		o.logs++
		o.logBytes += size
	}
}

// outcome ends r. An Accepted of it that still waits is taken back.
func (o *outbox) outcome(r *run, report *workerv1.Report) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.started {
		o.going--
	}
	if i, ok := o.find(r.ticket.accepted); ok {
		o.reports[i] = nil
	}
	o.urgent(report)
}

// stacks answers a DumpStacks, unless an earlier answer still waits: it says the same, and it is large.
func (o *outbox) stacks(request uint64, text func() string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, waiting := range o.reports {
		if waiting.GetStacks() != nil {
			return
		}
	}
	o.urgent(&workerv1.Report{Kind: &workerv1.Report_Stacks{Stacks: &workerv1.Stacks{Request: request, Text: text()}}})
}

// urgent puts a report in that somebody waits for; the mutex is held.
func (o *outbox) urgent(report *workerv1.Report) {
	if o.put(report) != 0 {
		o.awaited++
		o.signal()
	}
}

// put returns the report's position plus 1, or 0 when nothing is sent any more; the mutex is held.
func (o *outbox) put(report *workerv1.Report) uint64 {
	if o.dead {
		return 0
	}
	o.reports = append(o.reports, report)
	if !o.armed {
		o.arm()
	}
	return o.base + uint64(len(o.reports))
}

// arm starts the pause after which patient reports are due; the mutex is held.
func (o *outbox) arm() {
	o.armed = true
	if o.timer == nil {
		o.timer = time.AfterFunc(patience, o.lapse)
		return
	}
	o.timer.Reset(patience)
}

func (o *outbox) lapse() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.armed = false
	if len(o.reports) > 0 && !o.dead {
		o.due = true
		o.signal()
	}
}

// find returns the index of the report at a position, when it still waits; the mutex is held.
func (o *outbox) find(position uint64) (int, bool) {
	if position <= o.base {
		return 0, false
	}
	i := position - o.base - 1
	return int(i), i < uint64(len(o.reports)) //nolint:gosec // below a length
}

// waitForRoom blocks the reader while a manager sends tasks but does not read their outcomes.
func (o *outbox) waitForRoom() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.reports) > maxBacklog && !o.dead {
		o.room.Wait()
	}
}

// close lets the writer end once all is sent.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.end()
}

// kill drops what waits: nobody will read it.
func (o *outbox) kill() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dead = true
	o.reports, o.spare = nil, nil
	o.end()
}

func (o *outbox) end() {
	if o.timer != nil {
		o.timer.Stop()
	}
	o.signal()
	o.room.Broadcast()
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// sizeOf is about what a report takes in a message, in bytes.
func sizeOf(report *workerv1.Report) int {
	const frame = 48
	switch kind := report.GetKind().(type) {
	case *workerv1.Report_Outcome:
		f := kind.Outcome.GetFault()
		return frame + len(kind.Outcome.GetResult()) + len(f.GetMessage()) + len(f.GetDetail())
	case *workerv1.Report_Log:
		return frame + len(kind.Log.GetMessage()) + len(kind.Log.GetAttributes())
	case *workerv1.Report_Stacks:
		return frame + len(kind.Stacks.GetText())
	case *workerv1.Report_Progress:
		return frame + len(kind.Progress.GetProgress().GetNote())
	default:
		return frame
	}
}

// clean makes s fit for a message: valid UTF-8 of at most n bytes.
func clean(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
