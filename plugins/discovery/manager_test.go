package main_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// answer is what a caller gets within its patience: the result, or that it is to wait, and for which task.
type answer struct {
	Wait   bool            `json:"wait,omitempty"`
	Task   task.ID         `json:"task"`
	Result json.RawMessage `json:"result,omitempty"`
}

// ask is what an application does with an address that a person typed: submit, wait for as long as a person does, and else
// say so. Called again with the same address it joins the task that is still running, or finds what it found in the cache.
func ask(ctx context.Context, c client.Client, address string, patience time.Duration) (answer, error) {
	submitted, err := c.Submit(ctx, "discovery", map[string]string{"url": address})
	if err != nil {
		return answer{}, err
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	ended, err := client.Wait(limited, c, submitted.ID)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return answer{Wait: true, Task: submitted.ID}, nil
	}
	if err != nil {
		return answer{}, err
	}
	result, err := client.Result[json.RawMessage](ended)
	return answer{Task: submitted.ID, Result: result}, err
}

// startManager starts a manager with this worker as a process of its own, and returns its socket.
func startManager(t *testing.T, cache string) string {
	t.Helper()
	programs := testenv.BuildBinaries(t, "./orchestrator/cmd/droverd", "./plugins/discovery")
	dir := testenv.ShortDir(t)
	socket, log := filepath.Join(dir, "drover.sock"), &bytes.Buffer{}
	config := fmt.Sprintf(`
manager: {name: test, state_dir: %[1]s, socket: %[2]s}
redis: {embedded: true}
plugins:
  discovery:
    command: [%[3]s]
    options: {store: "sqlite:%[1]s/feeds.db", cache: %[4]q, allow_networks: ["127.0.0.1/32"]}
queues:
  discovery: {plugin: discovery, max_workers: 2, min_workers: 1}
`, dir, socket, programs[1], cache)
	path := filepath.Join(dir, "drover.yaml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	manager := exec.Command(programs[0], "--config", path)
	manager.Dir, manager.Stdout, manager.Stderr = dir, log, log
	manager.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := manager.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = manager.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(30*time.Second, func() { _ = manager.Process.Kill() })
		defer late.Stop()
		if err := manager.Wait(); err != nil || t.Failed() {
			t.Errorf("the manager ended with %v; its log:\n%s", err, log)
		}
	})
	return socket
}

// dial returns a client once the manager takes tasks.
func dial(t *testing.T, socket string) client.Client {
	t.Helper()
	c, err := client.Dial("unix:" + socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	tick, late := time.NewTicker(20*time.Millisecond), time.NewTimer(60*time.Second)
	defer tick.Stop()
	defer late.Stop()
	for {
		_, err := c.Get(t.Context(), task.ID{Queue: "discovery", Key: "none"})
		if errors.Is(err, client.ErrUnknownTask) {
			return c
		}
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("the manager does not answer: %v", err)
		}
	}
}

// A caller gets the result within its patience, or that it is to wait and for which task; the same call later joins that task,
// and later still finds what was kept. Through a real manager, over the client library and over plain HTTP.
func TestFiveSeconds(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}, 10), make(chan struct{})
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			arrived <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
			}
			fallthrough
		case "/":
			_, _ = w.Write([]byte(`<link rel=alternate type=application/rss+xml href=/feed.xml>`))
		case "/feed.xml":
			_, _ = w.Write([]byte(`<rss><channel><title>B</title><item><title>1</title></item></channel></rss>`))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(site.Close)
	socket := startManager(t, "memcached:"+testenv.StartMemcached(t).Addr())
	c := dial(t, socket)
	const patience, short = 5 * time.Second, 50 * time.Millisecond

	if got, err := ask(t.Context(), c, site.URL, time.Minute); err != nil || !strings.Contains(string(got.Result), "/feed.xml") {
		t.Fatalf("got %+v, %v", got, err)
	}
	first, err := ask(t.Context(), c, site.URL+"/slow", short)
	if text, _ := json.Marshal(first); err != nil || !strings.HasPrefix(string(text), `{"wait":true,"task":"discovery:`) {
		t.Fatalf("got %s, %v", text, err)
	}
	<-arrived
	again, err := ask(t.Context(), c, site.URL+"/slow", short)
	if err != nil || !again.Wait || again.Task != first.Task {
		t.Fatalf("while it runs: %+v, %v; want to wait for %s", again, err, first.Task)
	}
	if ended, id := overHTTP(t, socket, site.URL+"/slow", short); ended != nil || id != first.Task.String() {
		t.Errorf("over HTTP: %s, %s", ended, id)
	}
	close(release)
	if ended, err := client.Wait(t.Context(), c, first.Task); err != nil || !strings.Contains(string(ended.Result), `"from":"search"`) {
		t.Errorf("the task itself: %+v, %v", ended, err)
	}
	later, err := ask(t.Context(), c, site.URL+"/slow", patience)
	if err != nil || !strings.Contains(string(later.Result), `"from":"cache"`) || len(arrived) != 0 {
		t.Errorf("later: %+v, %v; the page was asked %d times more", later, err, len(arrived))
	}
	if ended, _ := overHTTP(t, socket, site.URL+"/slow", patience); !strings.Contains(string(ended), `"from":"cache"`) {
		t.Errorf("later, over HTTP: %s", ended)
	}
	quick(t, c, site.URL)
}

// quick measures what is kept, from the submit to the result in the caller's hands.
func quick(t *testing.T, c client.Client, address string) {
	t.Helper()
	const rounds, most = 100, 20 * time.Millisecond
	var took []time.Duration
	for range rounds {
		begun := time.Now()
		got, err := ask(t.Context(), c, address, time.Minute)
		if err != nil || !strings.Contains(string(got.Result), `"from":"cache"`) {
			t.Fatalf("got %+v, %v", got, err)
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	t.Logf("answers that are kept, submit to result: median %v, 90th %v, 99th %v", took[rounds/2], took[rounds*9/10], took[rounds*99/100])
	if took[rounds/2] > most {
		t.Errorf("half of the answers take more than %v, want less than %v", took[rounds/2], most)
	}
}

// overHTTP does the same as ask with two plain calls: Submit, and Wait with timeoutMs. It returns nil for "wait".
func overHTTP(t *testing.T, socket, address string, patience time.Duration) (result []byte, id string) {
	t.Helper()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	call := func(method, body string, to any) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://drover/drover.api.v1.TaskService/"+method, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if err := json.NewDecoder(response.Body).Decode(to); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", method, response.Status, err)
		}
	}
	payload := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, `{"url":%q}`, address))
	var submitted struct{ ID string }
	call("Submit", `{"queue":"discovery","payload":"`+payload+`"}`, &submitted)
	var waited struct {
		Ended bool
		Task  struct{ Result []byte }
	}
	call("Wait", fmt.Sprintf(`{"id":%q,"timeoutMs":%d}`, submitted.ID, patience.Milliseconds()), &waited)
	if !waited.Ended {
		return nil, submitted.ID
	}
	return waited.Task.Result, submitted.ID
}
