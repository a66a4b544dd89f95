package sdk

import (
	"fmt"
	"time"
)

// How a life ends: by a drain, after a panic, by a lost stream, or from outside.

// drain lets running tasks finish and hands back those that wait. It is safe to call at any time.
func (s *service) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drainLocked()
	if !s.working {
		s.finishLocked()
	}
}

func (s *service) drainLocked() {
	if s.draining {
		return
	}
	s.draining = true
	for _, r := range s.waiting {
		s.endLocked(r, failed(r, handBack("the worker is draining")))
	}
	s.waiting = nil
	s.hushLocked()
}

// condemn drains because a handler panicked, with a bound on what still runs.
func (s *service) condemn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exit = exitPanic
	s.drainLocked()
	s.timers = append(s.timers, time.AfterFunc(panicGrace, s.cancelAll), time.AfterFunc(panicGrace+abandonAfter, s.abandon))
}

// abandon hands back every run that does not end.
func (s *service) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		s.endLocked(r, failed(r, handBack("another task of the process panicked, and this one did not end when it was cancelled")))
	}
}

// lose ends what runs because nothing can be reported any more.
func (s *service) lose() {
	s.out.kill()
	s.mu.Lock()
	if s.exit == exitDone {
		s.exit = exitError
	}
	s.drainLocked()
	s.mu.Unlock()
	s.cancelAll()
}

// stop ends a life from outside, at once: the process is to exit.
func (s *service) stop() {
	s.drain()
	s.cancelAll()
	s.finish()
}

func (s *service) cancelAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if r.cancel != nil {
			r.cancel(ErrStopped)
		}
	}
}

func (s *service) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finishLocked()
}

func (s *service) finishLocked() {
	if s.ended {
		return
	}
	s.ended = true
	close(s.over)
}

// end waits for what runs, at most for bound, closes the worker and returns the exit code.
func (s *service) end(bound time.Duration) (int, error) {
	s.stop()
	s.out.kill()
	ended := make(chan struct{})
	go func() {
		s.readers.Wait()
		s.runners.Wait()
		close(ended)
	}()
	late := time.NewTimer(bound)
	defer late.Stop()
	var err error
	select {
	case <-ended:
		err = s.close()
	case <-late.C:
		err = fmt.Errorf("a task of worker %s still runs %s after it was cancelled", s.program.worker.Name, bound)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, timer := range s.timers {
		timer.Stop()
	}
	if err != nil && s.exit == exitDone {
		s.exit = exitError
	}
	return s.exit, err
}

// close calls the author's Close.
func (s *service) close() (err error) {
	s.mu.Lock()
	fit := s.configured && !s.preparing && !s.unfit
	s.mu.Unlock()
	if s.program.worker.Close == nil || !fit {
		return nil
	}
	returned := false
	defer func() {
		if !returned {
			err = fmt.Errorf("the worker's Close panicked: %v\n%s", recover(), stack())
		}
	}()
	if err = s.program.worker.Close(); err != nil {
		err = fmt.Errorf("close the worker: %w", err)
	}
	returned = true
	return err
}
