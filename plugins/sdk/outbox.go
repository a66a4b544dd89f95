package sdk

import (
	"sync"
	"time"

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

	maxStacksWaiting = 4
	maxBacklog       = 8192    // reports; beyond them no instruction is read
	maxNote          = 1 << 10 // bytes of a progress note
	maxLine          = 8 << 10 // bytes of a log line's message, and of its attributes
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

// defaultYields is what the benchmark chose: see stepBack.
const defaultYields = 4

func newOutbox(yields int) *outbox {
	o := &outbox{yields: yields, wake: make(chan struct{}, 1)}
	o.room = sync.NewCond(&o.mu)
	return o
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
	report := progressReport(r, done, total, note)
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

// stacks answers a DumpStacks. The texts are large, so while some wait the next answer says only that.
func (o *outbox) stacks(request uint64, text func() string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	waiting := 0
	for _, report := range o.reports {
		if report.GetStacks() != nil {
			waiting++
		}
	}
	answer := "left out: earlier answers have not been read yet"
	if waiting < maxStacksWaiting {
		answer = text()
	}
	o.urgent(&workerv1.Report{Kind: &workerv1.Report_Stacks{Stacks: &workerv1.Stacks{Request: request, Text: answer}}})
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
