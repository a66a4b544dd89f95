package fetch

import (
	"context"
	"io"
	"sync/atomic"
	"time"
)

// idleReader cancels its request when the next bytes do not come in time. A drip of single bytes keeps it alive; the total
// time limit ends that.
type idleReader struct {
	body   io.ReadCloser
	idle   time.Duration
	timer  *time.Timer
	silent atomic.Bool
	cancel context.CancelCauseFunc
}

func newIdleReader(body io.ReadCloser, idle time.Duration, cancel context.CancelCauseFunc) *idleReader {
	r := &idleReader{body: body, idle: idle, cancel: cancel}
	r.timer = time.AfterFunc(idle, func() {
		r.silent.Store(true)
		cancel(errIdle)
	})
	return r
}

// Read implements io.Reader.
func (r *idleReader) Read(p []byte) (int, error) {
	r.timer.Reset(r.idle)
	n, err := r.body.Read(p)
	r.timer.Stop()
	if err != nil && r.silent.Load() {
		err = errIdle // net/http does not always pass the cause on
	}
	return n, err
}

// Close ends the request.
func (r *idleReader) Close() error {
	r.timer.Stop()
	err := r.body.Close()
	r.cancel(nil)
	return err
}
