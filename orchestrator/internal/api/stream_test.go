package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/drover/api/v1/apiv1connect"
	"github.com/drover-jobs/drover/protocol/task"
)

// newStream subscribes with JSON over HTTP/1.1 and returns all that comes.
func newStream(t *testing.T, c *http.Client, body string) string {
	t.Helper()
	return streamBody(t, c, apiv1connect.TaskServiceSubscribeProcedure, body)
}

// stream calls any procedure that streams.
func stream(t *testing.T, c *http.Client, procedure string) string {
	t.Helper()
	return streamBody(t, c, procedure, `{}`)
}

func streamBody(t *testing.T, c *http.Client, procedure, body string) string {
	t.Helper()
	envelope := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body)))
	envelope = append(envelope, body...)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://drover"+procedure, bytes.NewReader(envelope))
	if err != nil {
		t.Fatalf("make a request: %v", err)
	}
	request.Header.Set("Content-Type", "application/connect+json")
	response, err := c.Do(request)
	if err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatalf("read the stream: %v", err)
	}
	return string(answer)
}

// Streams work over HTTP/1.1 as well, and waits outlast every time-out of the server.
func TestWaitsOutlastTimeouts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serve(t, w.server(100*time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	modern, old := dial(t, w.plugin), plain(t, w.plugin)
	var ids []task.ID
	for i := range 3 {
		s, err := modern.Submit(ctx, "misbehave", map[string]any{"do": "sleep", "ms": 1000, "value": i})
		if err != nil {
			t.Fatalf("submit: %v", err)
		}
		ids = append(ids, s.ID)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := client.WaitAll(ctx, modern, ids...); err != nil {
			t.Errorf("WaitAll over HTTP/2: %v", err)
		}
	})
	wg.Go(func() {
		if answer := newStream(t, old, fmt.Sprintf(`{"ids":[%q,%q]}`, ids[0], ids[1])); strings.Count(answer, "STATE_COMPLETED") != 2 {
			t.Errorf("a stream over HTTP/1.1 gave %q, want two ends", answer)
		}
	})
	wg.Go(func() {
		if code, answer := post(t, old, apiv1connect.TaskServiceWaitProcedure, fmt.Sprintf(`{"id":%q}`, ids[2])); code != http.StatusOK || !strings.Contains(answer, "STATE_COMPLETED") {
			t.Errorf("a wait over HTTP/1.1 gave %d %s", code, answer)
		}
	})
	wg.Wait()
}

// One plugin may wait for more tasks at once than one connection carries.
func TestManyWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serve(t, w.server(0))
	ctx, cancel := context.WithTimeout(t.Context(), 2*within)
	defer cancel()
	c := dial(t, w.plugin)
	s, err := c.Submit(ctx, "misbehave", map[string]any{"do": "sleep", "ms": 3000})
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	var wg sync.WaitGroup
	for range api.MaxStreams + 100 {
		wg.Go(func() {
			if ended, err := client.Wait(ctx, c, s.ID); err != nil || ended.State != task.Completed {
				t.Errorf("wait gave %+v, %v", ended, err)
			}
		})
	}
	wg.Wait()
}

// When the manager stops, a call in progress is finished, a wait over plain HTTP is told, and Run returns with the
// socket files gone.
func TestStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := serve(t, w.server(0))
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s, err := dial(t, w.socket).Submit(ctx, "misbehave", map[string]any{"do": "return"}, client.Delay(time.Hour))
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	answers := make(chan string, 1)
	old := plain(t, w.socket)
	go func() {
		_, answer := post(t, old, apiv1connect.TaskServiceWaitProcedure, fmt.Sprintf(`{"id":%q}`, s.ID))
		answers <- answer
	}()
	modern := dial(t, w.socket)
	started := make(chan struct{})
	ends := make(chan error, 1)
	go func() {
		short, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		close(started)
		_, err := client.Wait(short, modern, s.ID)
		ends <- err
	}()
	<-started
	eventually(t, "both wait", func() bool { return w.waiting() >= 2 })
	begun := time.Now()
	stop()
	if took := time.Since(begun); took > time.Second {
		t.Errorf("the stop took %s although only waits were in progress", took)
	}
	if answer := <-answers; !strings.Contains(answer, "aborted") || !strings.Contains(answer, "stopping") {
		t.Errorf("the wait over HTTP/1.1 was told %s", answer)
	}
	if err := <-ends; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the wait of the library ended with %v; it should have gone on trying until its deadline", err)
	}
	for _, path := range []string{w.socket, w.plugin} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
}

// A subscription outlives a restart of the manager, ends that came meanwhile included; each comes once.
func TestRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := serve(t, w.server(0))
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	c := dial(t, w.socket)
	var ids []task.ID
	for i := range 12 {
		s, err := c.Submit(ctx, "misbehave", map[string]any{"do": "sleep", "ms": 100 * i, "value": i})
		if err != nil {
			t.Fatalf("submit: %v", err)
		}
		ids = append(ids, s.ID)
	}
	seen := map[task.ID]int{}
	for u, err := range c.Subscribe(ctx, ids) {
		if err != nil {
			t.Fatalf("subscribe: %v", err)
		}
		if seen[u.ID]++; u.Ended == nil || u.Ended.State != task.Completed {
			t.Errorf("update %+v, want a completed task", u)
		}
		if len(seen) == 3 || len(seen) == 6 {
			stop()
			stop = serve(t, w.server(0))
		}
	}
	for _, id := range ids {
		if seen[id] != 1 {
			t.Errorf("the end of %s came %d times", id, seen[id])
		}
	}
}

// A peer that vanishes in the middle of a request, an answer or a wait leaves nothing behind.
func TestVanishingPeers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := serve(t, w.server(time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	s, err := dial(t, w.socket).Submit(ctx, "misbehave", map[string]any{"do": "return"}, client.Delay(time.Hour))
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	wait := fmt.Sprintf(`{"id":%q}`, s.ID)
	head := "POST " + apiv1connect.TaskServiceWaitProcedure + " HTTP/1.1\r\nHost: drover\r\nContent-Type: application/json\r\nContent-Length: "
	subscribe := fmt.Sprintf(`{"ids":[%q]}`, s.ID)
	chunk := string(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(subscribe)))) + subscribe
	chunked := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: drover\r\nContent-Type: application/connect+json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n",
		apiv1connect.TaskServiceSubscribeProcedure, len(chunk), chunk)
	for _, sent := range []string{
		chunked + "0\r\n\r\n", chunked, "", "POST", head, head + "5\r\n\r\n{", fmt.Sprintf("%s%d\r\n\r\n%s", head, len(wait), wait), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00\xff\xff",
	} {
		conn, err := net.Dial("unix", w.socket)
		if err != nil {
			t.Fatalf("connect: %v", err)
		}
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Errorf("write: %v", err)
		}
		if strings.HasSuffix(sent, wait) || sent == chunked+"0\r\n\r\n" {
			eventually(t, "it waits", func() bool { return w.waiting() == 1 })
		}
		_ = conn.Close()
	}
	eventually(t, "nobody waits", func() bool { return w.waiting() == 0 })
	stop()
}

// A peer that sends its request too slowly, or does not read what it asked for, is cut off.
func TestSlowPeers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serve(t, w.server(200*time.Millisecond))
	for name, sent := range map[string]string{
		"head": "POST /x HTTP/1.1\r\nHost: dro",
		"body": "POST " + apiv1connect.TaskServiceGetProcedure + " HTTP/1.1\r\nHost: drover\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{",
	} {
		conn, err := net.Dial("unix", w.socket)
		if err != nil {
			t.Fatalf("connect: %v", err)
		}
		if _, err := io.WriteString(conn, sent); err != nil {
			t.Errorf("%s: write: %v", name, err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(within))
		if _, err := io.Copy(io.Discard, bufio.NewReader(conn)); err != nil {
			t.Errorf("a slow %s was not cut off: %v", name, err)
		}
		_ = conn.Close()
	}

	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	c := w.tasks.Client // not through the server, whose patience is short
	var ids []string
	value := strings.Repeat("x", 1<<20)
	for i := range 8 { // more than fits the buffers of a socket
		s, err := c.Submit(ctx, "misbehave", map[string]any{"do": "return", "value": fmt.Sprint(i, value)})
		if err != nil {
			t.Fatalf("submit: %v", err)
		}
		if _, err := client.Wait(ctx, c, s.ID); err != nil {
			t.Fatalf("wait: %v", err)
		}
		ids = append(ids, fmt.Sprintf("%q", s.ID))
	}
	body := fmt.Sprintf(`{"ids":[%s]}`, strings.Join(ids, ","))
	conn, err := net.Dial("unix", w.socket)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: drover\r\nContent-Type: application/connect+json\r\nContent-Length: %d\r\n\r\n%s%s",
		apiv1connect.TaskServiceSubscribeProcedure, len(body)+5, binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body)
	if err != nil {
		t.Fatalf("write: %v", err)
	}
	eventually(t, "it is served", func() bool { return w.waiting() == 1 })
	eventually(t, "who does not read is cut off", func() bool { return w.waiting() == 0 })
}
