package api_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// sse is one server-sent event.
type sse struct{ id, name, data string }

// about is the task that an event is about.
func (e sse) about(t *testing.T) string {
	t.Helper()
	var data struct {
		Ended     struct{ ID, State string }
		Event     struct{ ID string }
		UnknownID string
	}
	if err := json.Unmarshal([]byte(e.data), &data); err != nil {
		t.Fatalf("the data of an event is no JSON: %q: %v", e.data, err)
	}
	return data.Ended.ID + data.Event.ID + data.UnknownID
}

// readEvents reads events as a browser does, and hands over each as it comes, until enough says so or the stream ends.
func readEvents(t *testing.T, body io.Reader, enough func(sse) bool) {
	t.Helper()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 16<<20)
	var e sse
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.name = value
		case "data":
			e.data = value
		case "":
			if lines.Text() == "" && e.name != "" {
				if enough(e) {
					return
				}
				e = sse{}
			}
		}
	}
}

// answered is an answer whose body is closed with the test.
type answered struct {
	status int
	header http.Header
	body   io.ReadCloser
}

// eventsOf asks for the events of tasks.
func eventsOf(t *testing.T, c *http.Client, query, last string) answered {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://drover/v1/tasks/events?"+query, http.NoBody)
	if err != nil {
		t.Fatalf("make a request: %v", err)
	}
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	answer, err := c.Do(request)
	if err != nil {
		t.Fatalf("ask for events: %v", err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answered{answer.StatusCode, answer.Header, answer.Body}
}

func queryOf(ids ...task.ID) string {
	q := url.Values{}
	for _, id := range ids {
		q.Add("id", id.String())
	}
	return q.Encode()
}

// Ends from before, from during the stream and of tasks that do not exist come as events, each once, and then it is over: a browser
// that asks again is told that there is nothing left.
func TestServerSentEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serve(t, w.server(100*time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var ids []task.ID
	for i := range 12 {
		s, err := w.tasks.Submit(ctx, "misbehave", map[string]any{"do": "sleep", "ms": 50 * i, "value": i})
		if err != nil {
			t.Fatalf("submit: %v", err)
		}
		ids = append(ids, s.ID)
	}
	if _, err := client.Wait(ctx, w.tasks, ids[0]); err != nil {
		t.Fatalf("wait: %v", err)
	}
	ids = append(ids, task.ID{Queue: "misbehave", Key: "nothing"}, ids[3]) // one twice
	for _, socket := range []string{w.socket, w.plugin} {
		answer := eventsOf(t, plain(t, socket), queryOf(ids...), "")
		if kind := answer.header.Get("Content-Type"); answer.status != http.StatusOK || kind != "text/event-stream" {
			t.Fatalf("the answer is %d, %s", answer.status, kind)
		}
		seen, names := map[string]int{}, map[string]int{}
		var last sse
		readEvents(t, answer.body, func(e sse) bool {
			if last = e; e.name != "done" {
				seen[e.about(t)]++
			}
			names[e.name]++
			return false
		})
		if len(seen) != 13 || names["ended"] != 12 || names["unknown"] != 1 || last.name != "done" {
			t.Errorf("events %v of %v, want 12 ends, one unknown and done", names, seen)
		}
		for id, n := range seen {
			if n != 1 {
				t.Errorf("the end of %s came %d times", id, n)
			}
		}
		if again := eventsOf(t, plain(t, socket), queryOf(ids...), last.id); again.status != http.StatusNoContent {
			t.Errorf("a browser that has everything is answered with %d, want 204, which stops it", again.status)
		}
	}
}

// Who lost the connection, even because the manager restarted, gets the ends that are left and none again. The stop is told.
func TestEventsAfterReconnecting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := serve(t, w.server(0))
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	var ids []task.ID
	for i := range 10 {
		s, err := w.tasks.Submit(ctx, "misbehave", map[string]any{"do": "sleep", "ms": 80 * i, "value": i})
		if err != nil {
			t.Fatalf("submit: %v", err)
		}
		ids = append(ids, s.ID)
	}
	seen := map[string]int{}
	last, failures := "", 0
	for round := 0; last != "over"; round++ {
		answer := eventsOf(t, plain(t, w.socket), queryOf(ids...), last)
		if answer.status == http.StatusNoContent {
			break
		}
		n := 0
		stopped := make(chan struct{})
		readEvents(t, answer.body, func(e sse) bool {
			if n++; round == 2 && n == 1 {
				go func() { defer close(stopped); stop() }() // a stream that is open is told
			}
			switch e.name {
			case "ended":
				seen[e.about(t)]++
				last = e.id
			case "failure":
				failures++
				if !strings.Contains(e.data, "stopping") {
					t.Errorf("the stop is told as %s", e.data)
				}
			}
			return round < 2 && n == 2
		})
		_ = answer.body.Close()
		if round == 2 {
			<-stopped
			stop = serve(t, w.server(0))
		}
	}
	for _, id := range ids {
		if seen[id.String()] != 1 {
			t.Errorf("the end of %s came %d times", id, seen[id.String()])
		}
	}
	if failures != 1 {
		t.Errorf("%d failures came, want that of the stop", failures)
	}
}

// Progress comes when it is asked for, and not otherwise.
func TestEventsOfProgress(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serve(t, w.server(0))
	s, err := w.tasks.Submit(t.Context(), "misbehave", map[string]any{"do": "progress", "ms": 300}, client.Delay(1))
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	names := map[string]int{}
	readEvents(t, eventsOf(t, plain(t, w.socket), queryOf(s.ID)+"&progress=1", "").body, func(e sse) bool {
		if names[e.name]++; e.name == "progress" && !strings.Contains(e.data, `"done"`) {
			t.Errorf("progress is told as %s", e.data)
		}
		return false
	})
	if names["progress"] == 0 || names["ended"] != 1 {
		t.Errorf("events %v, want progress and an end", names)
	}
	clear(names)
	readEvents(t, eventsOf(t, plain(t, w.socket), queryOf(s.ID), "").body, func(e sse) bool { names[e.name]++; return false })
	if names["progress"]+names["state"] != 0 || names["ended"] != 1 {
		t.Errorf("events %v, want an end alone", names)
	}
}

// A query that cannot be meant is answered with a code and words that name what is wrong; an ID of an event that nobody sent, with all ends.
func TestWrongQueriesForEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serve(t, w.server(0))
	c := plain(t, w.socket)
	many := "id=q:1"
	for i := range api.MaxEventIDs {
		many += fmt.Sprintf("&id=q:%dx", i)
	}
	for query, names := range map[string]string{
		"": "id", "id=": "id", "id=nothing": "nothing", "id=q:k&progress=maybe": "progress", "id=q:k&task=1": "task", "id=%zz": "query", many: "1001",
	} {
		answer := eventsOf(t, c, query, "")
		body, _ := io.ReadAll(answer.body)
		if answer.status != http.StatusBadRequest || !strings.Contains(string(body), `"code":"invalid_argument"`) || !strings.Contains(string(body), names) {
			t.Errorf("%.40q is answered with %d %s, want 400 that names %q", query, answer.status, body, names)
		}
	}
	for _, last := range []string{"x", "!!", strings.Repeat("A", 3000), "AAAA"} {
		n := 0
		readEvents(t, eventsOf(t, c, "id=misbehave:nothing", last).body, func(e sse) bool {
			if e.name == "unknown" {
				n++
			}
			return false
		})
		if n != 1 {
			t.Errorf("with the last event %.20q the answer came %d times", last, n)
		}
	}
	if code, _ := post(t, c, "/v1/tasks/events?id=q:k", "{}"); code != http.StatusMethodNotAllowed {
		t.Errorf("a POST is answered with %d", code)
	}
}

// Every role may follow tasks over the network, and nobody without a token.
func TestRolesOfEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	address, roots := remote(t, w, io.Discard)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	c := &http.Client{Transport: transport, Timeout: within}
	for token, want := range map[string]int{
		secretOf(api.RoleSubmit): 200, secretOf(api.RoleObserve): 200, secretOf(api.RoleOperate): 200, "": 401, "a-wrong-one-0123456789": 401,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"/v1/tasks/events?id=misbehave:nothing", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := c.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != want || want == 200 && !strings.Contains(string(body), "event: unknown") || want == 401 && !strings.Contains(string(body), "unauthenticated") {
			t.Errorf("the token %.20q is answered with %s %s, want %d", token, answer.Status, body, want)
		}
	}
}

// A stream without news shows that it lives. Who goes away leaves nothing behind, and who does not read its events is cut off.
func TestReadersOfEventsThatVanish(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serve(t, w.server(200*time.Millisecond))
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	later, err := w.tasks.Submit(ctx, "misbehave", map[string]any{"do": "return"}, client.Delay(time.Hour))
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	answer := eventsOf(t, plain(t, w.socket), queryOf(later.ID), "")
	eventually(t, "it is served", func() bool { return w.waiting() == 1 })
	lines := bufio.NewScanner(answer.body)
	for comments := 0; comments < 3 && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), ":") {
			comments++
		}
	}
	if err := lines.Err(); err != nil {
		t.Errorf("wait for signs of life: %v", err)
	}
	_ = answer.body.Close()
	eventually(t, "nobody is served", func() bool { return w.waiting() == 0 })

	var ids []task.ID
	value := strings.Repeat("x", 1<<20)
	for i := range 8 { // more than fits the buffers of a socket
		s, err := w.tasks.Submit(ctx, "misbehave", map[string]any{"do": "return", "value": fmt.Sprint(i, value)})
		if err != nil {
			t.Fatalf("submit: %v", err)
		}
		if _, err := client.Wait(ctx, w.tasks, s.ID); err != nil {
			t.Fatalf("wait: %v", err)
		}
		ids = append(ids, s.ID)
	}
	conn, err := net.Dial("unix", w.socket)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := fmt.Fprintf(conn, "GET /v1/tasks/events?%s HTTP/1.1\r\nHost: drover\r\n\r\n", queryOf(ids...)); err != nil {
		t.Fatalf("write: %v", err)
	}
	eventually(t, "it is served", func() bool { return w.waiting() == 1 })
	eventually(t, "who does not read is cut off", func() bool { return w.waiting() == 0 })
}
