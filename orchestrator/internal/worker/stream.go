package worker

import (
	"google.golang.org/protobuf/proto"

	"github.com/drover-jobs/drover/protocol"
	workerv1 "github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// push adds an instruction to what waits to be sent. The caller holds mu and calls wake afterwards.
func (p *Process) push(i *workerv1.Instruction) {
	if !p.closed {
		p.outgoing = append(p.outgoing, i)
	}
}

func (p *Process) wake() {
	select {
	case p.waiting <- struct{}{}:
	default:
	}
}

// write sends all that waits in one message, again and again, until the process has ended. Under load many tasks share
// one write; a lone one goes at once.
func (p *Process) write() {
	for range p.waiting {
		p.mu.Lock()
		batch, closed := p.outgoing, p.closed
		p.outgoing = nil
		p.mu.Unlock()
		if closed {
			return
		}
		for len(batch) > 0 {
			n := batchSize(batch)
			if err := p.stream.Send(&workerv1.WorkRequest{Instructions: batch[:n]}); err != nil {
				p.streamLost()
				return
			}
			batch = batch[n:]
		}
	}
}

// batchSize is how many of the instructions fit one message; at least one.
func batchSize(batch []*workerv1.Instruction) int {
	size := 0
	for n, i := range batch {
		size += proto.Size(i)
		if size > protocol.MaxBatch && n > 0 {
			return n
		}
	}
	return len(batch)
}

// read takes what the process reports until its stream ends, and then sees the process out.
func (p *Process) read() {
	for {
		message, err := p.stream.Recv()
		if err != nil {
			break
		}
		for _, report := range message.GetReports() {
			p.take(report)
		}
	}
	p.streamLost()
	p.finish()
}

// streamLost kills a process that can no longer be spoken to. One that has nothing to do gets a moment to leave by itself:
// a drained process closes its stream before it exits.
func (p *Process) streamLost() {
	p.mu.Lock()
	p.deaf = true
	idle := len(p.runs) == 0
	p.mu.Unlock()
	if idle && p.leftInTime() {
		return
	}
	p.s.run.killGroup()
}
