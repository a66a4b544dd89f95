package main_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"

	"github.com/drover-jobs/drover/protocol/drover/api/v1/apiv1connect"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// flood is a manager on which ten thousand things happen each second.
type flood struct {
	apiv1connect.UnimplementedControlServiceHandler

	sent  atomic.Int64
	ended chan struct{} // one for each watch that was left
}

const (
	floodEvery = 10 * time.Millisecond
	floodBatch = 100
)

func (*flood) Status(context.Context, *apiv1.StatusRequest) (*apiv1.StatusResponse, error) {
	return &apiv1.StatusResponse{Manager: &apiv1.Manager{Name: "flood", State: "running", Pid: 1}}, nil
}

func (f *flood) Watch(ctx context.Context, _ *apiv1.WatchRequest, stream *connect.ServerStream[apiv1.WatchResponse]) error {
	defer func() { f.ended <- struct{}{} }()
	tick := time.NewTicker(floodEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		for range floodBatch {
			e := &taskv1.Event{Id: fmt.Sprintf("q:%d", f.sent.Add(1)), State: taskv1.State_STATE_RUNNING, Attempts: 1}
			if err := stream.Send(&apiv1.WatchResponse{AtMs: time.Now().UnixMilli(), Happened: &apiv1.WatchResponse_Task{Task: e}}); err != nil {
				return err
			}
		}
	}
}

// startFlood starts it, and returns it with its socket.
func startFlood(t *testing.T, dir string) (f *flood, socket string) {
	t.Helper()
	socket = filepath.Join(dir, "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	f = &flood{ended: make(chan struct{}, 1)}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewControlServiceHandler(f))
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: mux, Protocols: protocols}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener) // it is closed at the end
	}()
	t.Cleanup(func() {
		_ = server.Close() // nobody needs it any more
		<-served
	})
	return f, socket
}

// left waits until a watch was left.
func (f *flood) left(t *testing.T) {
	t.Helper()
	select {
	case <-f.ended:
	case <-time.After(stopTime):
		t.Fatal("the watch goes on")
	}
}

// In the middle of ten thousand events a second Ctrl-C is heard at once, and the prompt stands where it should.
func TestWatchFlood(t *testing.T) {
	t.Parallel()
	drover, _, _, dir := prompts(t)
	f, socket := startFlood(t, dir)
	s := sit(t, drover, socket, testenv.ShortDir(t))
	s.see(`flood> `)
	for range 3 {
		s.keys("watch\r")
		s.see(fmt.Sprintf(`q:%d  run 1 began`, f.sent.Load()+5000))
		s.keys("\x03")
		pressed := time.Now()
		f.left(t)
		s.see(`\x1b\[2K\rflood>[ \x08]*$`) // on a line of its own, and nothing behind it
		if took := time.Since(pressed); took > 5*time.Second {
			t.Errorf("Ctrl-C took %s", took)
		}
		s.keys("version\r")
		s.see(`(?m)^drover `)
		s.see(`flood> `)
	}
	s.keys("\x04")
	s.leaves(0)
}

// The same on a real terminal: every line of the flood is whole on the screen, the prompt comes back under the last of them, and what is
// typed then stands there.
func TestWatchFloodOnScreen(t *testing.T) {
	t.Parallel()
	drover, _, _, dir := prompts(t)
	f, socket := startFlood(t, dir)
	w := open(t, 80, 20, drover, socket, dir)
	w.see(`(?m)^flood>$`)
	w.text("watch")
	w.keys("Enter")
	for f.sent.Load() < 3*floodBatch*int64(time.Second/floodEvery) { // three seconds of it
		w.see(`run 1 began`)
	}
	w.keys("C-c")
	f.left(t)
	w.see(`\nflood>$`)
	lines := strings.Split(w.screen(), "\n")
	event := regexp.MustCompile(`^[0-9:.]+ +q:[0-9]+  run 1 began$`)
	for _, line := range lines[1 : len(lines)-1] {
		if !event.MatchString(line) && line != "^C" && line != "" {
			t.Errorf("torn: %q", line)
		}
	}
	if n := len(lines); n < 15 {
		t.Errorf("%d lines on the screen", n)
	}
	w.text("version")
	w.see(`\nflood> version$`)
	w.keys("Enter")
	w.see(`(?s)flood> version\ndrover .*\nflood>$`)
}
