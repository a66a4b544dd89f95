package sdk_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// feeder stands for a manager under load: lanes that each spend some time of a core to get a task, as dequeuing does, a
// process that is filled before the next one is used, and one writer for each that sends all that waits.
type feeder struct {
	mu      sync.Mutex
	free    *sync.Cond
	streams []*feed
	pids    []int
	batches int
	ended   int
}

type feed struct {
	stream  workerv1.WorkerService_WorkClient
	busy    int
	waiting []*workerv1.Instruction
	wake    chan struct{}
}

const benchSlots = 16

func (f *feeder) give(run uint64, payload []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		for _, s := range f.streams {
			if s.busy < benchSlots {
				s.busy++
				s.waiting = append(s.waiting, &workerv1.Instruction{Kind: &workerv1.Instruction_Task{Task: &workerv1.Task{
					Run: run, Id: "q:k", Payload: payload, Attempt: 1, DeadlineMs: time.Now().Add(time.Minute).UnixMilli(),
				}}})
				select {
				case s.wake <- struct{}{}:
				default:
				}
				return
			}
		}
		f.free.Wait()
	}
}

func (f *feeder) write(s *feed, done <-chan struct{}) {
	for {
		select {
		case <-s.wake:
		case <-done:
			return
		}
		f.mu.Lock()
		waiting := s.waiting
		s.waiting = nil
		f.mu.Unlock()
		if len(waiting) > 0 && s.stream.Send(&workerv1.WorkRequest{Instructions: waiting}) != nil {
			return
		}
	}
}

func (f *feeder) read(s *feed, n int, done chan<- struct{}) {
	for {
		response, err := s.stream.Recv()
		if err != nil {
			return
		}
		f.mu.Lock()
		f.batches++
		before := f.ended
		for _, report := range response.GetReports() {
			if report.GetOutcome() != nil {
				s.busy--
				f.ended++
			}
		}
		if before < n && f.ended >= n {
			close(done)
		}
		f.free.Broadcast()
		f.mu.Unlock()
	}
}

// burn uses a core for about n microseconds, of its own time and not of the clock's: other programs run here as well.
func burn(n int) (sum [32]byte) {
	for range n * 5 {
		sum = sha256.Sum256(sum[:])
	}
	return sum
}

// cpu is what processes have used, in seconds.
func cpu(b *testing.B, f *feeder) (seconds float64) {
	b.Helper()
	const ticks = 100 // of a second, on Linux
	for _, pid := range append([]int{os.Getpid()}, f.pids...) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			b.Fatalf("read the time that a process used: %v", err)
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		for _, field := range fields[11:13] {
			n, err := strconv.Atoi(field)
			if err != nil {
				b.Fatalf("read the time that a process used: %v", err)
			}
			seconds += float64(n) / ticks
		}
	}
	return seconds
}

// BenchmarkDrain measures how many no-op tasks go through worker processes, and how many outcomes share a message.
// "cost" is what a manager and its broker spend on a task besides; with it the cores are full, as in a real drain.
func BenchmarkDrain(b *testing.B) {
	for _, shape := range []struct {
		processes, lanes int
		cost             int
	}{{1, 1, 0}, {1, 4, 150}, {4, 4, 150}, {4, 1, 80}} {
		b.Run(fmt.Sprintf("processes=%d/lanes=%d/cost=%dus", shape.processes, shape.lanes, shape.cost), func(b *testing.B) {
			f := &feeder{}
			f.free = sync.NewCond(&f.mu)
			for range shape.processes {
				p := launch(b, "plugins/sdk/sdktest/noop")
				f.pids = append(f.pids, p.cmd.Process.Pid)
				f.streams = append(f.streams, &feed{stream: p.open(benchSlots), wake: make(chan struct{}, 1)})
			}
			drain(b, f, shape.lanes, shape.cost)
		})
	}
}

func drain(b *testing.B, f *feeder, lanes, cost int) {
	b.Helper()
	payload := []byte(`{"pad":"` + string(bytes.Repeat([]byte{'x'}, 90)) + `"}`)
	done := make(chan struct{})
	var writers, givers sync.WaitGroup
	for _, s := range f.streams {
		writers.Go(func() { f.write(s, done) })
		go f.read(s, b.N, done)
	}
	var next sync.Mutex
	run := uint64(0)
	used := cpu(b, f)
	b.ResetTimer()
	for range lanes {
		givers.Go(func() {
			for {
				next.Lock()
				run++
				mine := run
				next.Unlock()
				if mine > uint64(b.N) {
					return
				}
				burn(cost)
				f.give(mine, payload)
			}
		})
	}
	givers.Wait()
	<-done
	b.StopTimer()
	writers.Wait()
	b.ReportMetric((cpu(b, f)-used)*1e6/float64(b.N), "cpu-us/task")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
	b.ReportMetric(float64(b.N)/float64(f.batches), "outcomes/message")
}

// BenchmarkLone measures a task that is alone in its process, from sending it to having its outcome.
func BenchmarkLone(b *testing.B) {
	p := launch(b, "plugins/sdk/sdktest/noop")
	stream := p.open(benchSlots)
	b.ResetTimer()
	for i := range b.N {
		send(b, stream, uint64(i+1), `{}`)
		outcomes(b, stream, 1)
	}
}
