package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	workerv1 "github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// stacksTimeout is how long a process gets to say what it is doing.
const stacksTimeout = 5 * time.Second

// Errors of Stacks.
var (
	errGone    = errors.New("the worker has ended")
	errSilent  = fmt.Errorf("the worker did not answer within %s: it is too busy, or its program cannot tell, like those that are not built on the SDK for Go", stacksTimeout)
	errStopped = errors.New("the worker is stopped (SIGSTOP, or a debugger): it cannot answer before kill -CONT")
)

// Stacks asks the process for the stacks of all its threads and waits for the answer, at most five seconds. No signal is sent:
// most programs would die of one.
func (p *Process) Stacks(ctx context.Context) (string, error) {
	if p.Stopped() {
		return "", errStopped
	}
	answer := make(chan string, 1)
	p.mu.Lock()
	if p.closed || p.deaf {
		p.mu.Unlock()
		return "", errGone
	}
	p.lastAsk++
	request := p.lastAsk
	p.stacks[request] = answer
	p.push(&workerv1.Instruction{Kind: &workerv1.Instruction_DumpStacks{DumpStacks: &workerv1.DumpStacks{Request: request}}})
	p.mu.Unlock()
	p.wake()
	defer func() {
		p.mu.Lock()
		delete(p.stacks, request)
		p.mu.Unlock()
	}()
	late := time.NewTimer(stacksTimeout)
	defer late.Stop()
	select {
	case text := <-answer:
		return text, nil
	case <-p.done:
		return "", errGone
	case <-late.C:
		return "", errSilent
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// answered hands an answer to whoever asked. One that nobody waits for any more is dropped.
func (p *Process) answered(stacks *workerv1.Stacks) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if answer := p.stacks[stacks.GetRequest()]; answer != nil {
		delete(p.stacks, stacks.GetRequest())
		answer <- stacks.GetText()
	}
}
