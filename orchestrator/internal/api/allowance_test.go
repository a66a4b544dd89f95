package api_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/drover/api/v1/apiv1connect"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// narrow is a server with an allowance, on its socket and on the network with the tokens of three roles.
func narrow(t *testing.T, tasks client.Client, a api.Allowance) (socket, address string, roots *x509.CertPool) {
	t.Helper()
	dir := testenv.ShortDir(t)
	r := &api.Remote{
		Address: fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)), Certificate: filepath.Join(dir, "crt.pem"), Key: filepath.Join(dir, "key.pem"),
		Origins: []string{"https://app.example.org"},
	}
	roots = certify(t, r.Certificate, r.Key)
	for _, role := range []api.Role{api.RoleSubmit, api.RoleObserve, api.RoleOperate} {
		r.Tokens = append(r.Tokens, api.NewToken(string(role), role, secretOf(role)))
	}
	socket = filepath.Join(dir, "drover.sock")
	serve(t, api.New(api.Options{Socket: socket, Tasks: tasks, Control: &panel{}, Remote: r, Log: quiet(), Allowance: a}))
	return socket, "https://" + r.Address, roots
}

// asToken is an HTTP client that has a token.
type asToken struct {
	*http.Client
	base, token string
}

func withToken(t *testing.T, address string, roots *x509.CertPool, role api.Role) *asToken {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &asToken{&http.Client{Transport: transport, Timeout: within}, address, secretOf(role)}
}

// call asks and returns the status, the header and the beginning of the body; the body is left open when it is a stream.
func (c *asToken) call(t *testing.T, method, path, body string) (int, http.Header, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, c.base+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+c.token)
	answer, err := c.Do(request)
	if err != nil {
		t.Errorf("call %s: %v", path, err)
		return 0, http.Header{}, ""
	}
	defer func() { _ = answer.Body.Close() }()
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, answer.Header, string(text)
}

// forever is a client whose tasks never end.
type forever struct {
	nothing
	following atomic.Int32
}

func (f *forever) Subscribe(ctx context.Context, ids []task.ID, _ ...client.FollowOption) iter.Seq2[client.Update, error] {
	return func(yield func(client.Update, error) bool) {
		f.following.Add(1)
		defer f.following.Add(-1)
		<-ctx.Done()
		yield(client.Update{}, ctx.Err())
	}
}

// A caller that floods is told so at once, with the time to wait, and is served again after it; another is served all the while. The
// library says what it is.
func TestFloodOfCalls(t *testing.T) {
	t.Parallel()
	_, address, roots := narrow(t, nothing{}, api.Allowance{Rate: settings.Rate{Tasks: 50, Per: time.Second}, CallerWaits: 10, Waits: 10})
	flood, other := withToken(t, address, roots, api.RoleSubmit), withToken(t, address, roots, api.RoleOperate)
	const get = apiv1connect.TaskServiceGetProcedure
	var served, refused atomic.Int32
	var pause string
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				switch code, header, body := flood.call(t, http.MethodPost, get, `{"id":"q:k"}`); {
				case code == http.StatusNotFound:
					served.Add(1)
				case code == http.StatusTooManyRequests && strings.Contains(body, `"resource_exhausted"`) && strings.Contains(body, "50/s"):
					refused.Add(1)
					mu.Lock()
					pause = header.Get("Retry-After")
					mu.Unlock()
				default:
					t.Errorf("a flood is answered with %d %s", code, body)
				}
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			if code, _, body := other.call(t, http.MethodPost, get, `{"id":"q:k"}`); code != http.StatusNotFound {
				t.Errorf("beside a flood another is answered with %d %s", code, body)
			}
		}
	})
	wg.Wait()
	if served.Load() < 100 || refused.Load() == 0 {
		t.Errorf("%d calls were served and %d refused, want at least the first 100 served, and not all", served.Load(), refused.Load())
	}
	seconds, err := strconv.Atoi(pause)
	if err != nil || seconds < 1 {
		t.Fatalf("Retry-After is %q", pause)
	}
	<-time.After(time.Duration(seconds) * time.Second)
	if code, _, body := flood.call(t, http.MethodPost, get, `{"id":"q:k"}`); code != http.StatusNotFound {
		t.Errorf("after the pause it is answered with %d %s", code, body)
	}
	c, err := client.Dial(address, client.WithTLS(&tls.Config{RootCAs: roots}), client.WithToken(flood.token))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	for err == nil || errors.Is(err, client.ErrUnknownTask) {
		_, err = c.Get(t.Context(), task.ID{Queue: "q", Key: "k"})
	}
	if !errors.Is(err, client.ErrBusy) {
		t.Errorf("the library says %v, want ErrBusy", err)
	}
}

// There are as many waits and streams as there may be, of one caller and of all; short calls go on beside them, and when some end
// others are let in.
func TestFloodOfWaits(t *testing.T) {
	t.Parallel()
	tasks := &forever{}
	_, address, roots := narrow(t, tasks, api.Allowance{CallerWaits: 20, Waits: 30})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	open := func(c *asToken, path, body string) int {
		method, kind := http.MethodGet, ""
		if body != "" {
			method, kind = http.MethodPost, "application/json"
		}
		request, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", kind)
		request.Header.Set("Authorization", "Bearer "+c.token)
		if body != "" { // a wait is answered at its end
			go func() {
				if answer, err := c.Do(request); err == nil {
					_ = answer.Body.Close()
				}
			}()
			return http.StatusOK
		}
		answer, err := c.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer.StatusCode
	}
	first, second := withToken(t, address, roots, api.RoleSubmit), withToken(t, address, roots, api.RoleObserve)
	const events = "/v1/tasks/events?id=q:k"
	for i := range 20 {
		if i < 10 {
			open(first, apiv1connect.TaskServiceWaitProcedure, `{"id":"q:k"}`)
			eventually(t, "the wait is served", func() bool { return int(tasks.following.Load()) == i+1 })
		} else if code := open(first, events, ""); code != http.StatusOK {
			t.Fatalf("stream %d is answered with %d", i, code)
		}
	}
	for _, path := range []string{events, apiv1connect.TaskServiceWaitProcedure} {
		method := http.MethodGet
		if path != events {
			method = http.MethodPost
		}
		code, header, body := first.call(t, method, path, `{"id":"q:k"}`)
		if code != http.StatusTooManyRequests || header.Get("Retry-After") == "" || !strings.Contains(body, "20 waits") {
			t.Errorf("one more of a caller is answered with %d %s", code, body)
		}
	}
	for i := range 10 {
		if code := open(second, events, ""); code != http.StatusOK {
			t.Fatalf("stream %d of another is answered with %d", i, code)
		}
	}
	if code, _, body := second.call(t, http.MethodGet, events, ""); code != http.StatusTooManyRequests || !strings.Contains(body, "30 waits") {
		t.Errorf("one more of all is answered with %d %s", code, body)
	}
	if code, _, _ := first.call(t, http.MethodPost, apiv1connect.TaskServiceGetProcedure, `{"id":"q:k"}`); code != http.StatusNotFound {
		t.Errorf("a short call beside them is answered with %d", code)
	}
	cancel()
	eventually(t, "they have ended", func() bool { return tasks.following.Load() == 0 })
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	eventually(t, "another is let in", func() bool { return open(first, events, "") == http.StatusOK })
}

// Large bodies that arrive together do not fill the memory: the last of them are refused, and the manager answers meanwhile.
func TestFloodOfBodies(t *testing.T) {
	t.Parallel()
	socket, _, _ := narrow(t, nothing{}, api.DefaultAllowance())
	const size = api.MaxRequest - 1024
	part := []byte(strings.Repeat("A", size/2))
	refused := make(chan string, 1)
	var held []net.Conn
	for range api.MaxBodies/(size/2) + 2 {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
		if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: drover\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", apiv1connect.TaskServiceSubmitProcedure, size); err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = conn.Write(part) // and then it says nothing more
			answer := make([]byte, 2000)
			if n, err := io.ReadAtLeast(conn, answer, 200); err == nil {
				select {
				case refused <- string(answer[:n]):
				default:
				}
			}
		}()
	}
	select {
	case answer := <-refused:
		if !strings.Contains(answer, "429") || !strings.Contains(answer, "Retry-After") || !strings.Contains(answer, "resource_exhausted") {
			t.Errorf("the one too many is answered with %s", answer)
		}
	case <-time.After(within):
		t.Error("nobody was refused")
	}
	begun := time.Now()
	if code, answer := post(t, plain(t, socket), apiv1connect.ControlServiceStatusProcedure, `{}`); code != http.StatusOK && code != http.StatusTooManyRequests {
		t.Errorf("meanwhile the status is answered with %d %s", code, answer)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("meanwhile the status took %s", took)
	}
	for _, conn := range held {
		_ = conn.Close()
	}
	eventually(t, "it takes requests again", func() bool {
		code, _ := post(t, plain(t, socket), apiv1connect.TaskServiceGetProcedure, `{"id":"q:k"}`)
		return code == http.StatusNotFound
	})
}

// One caller follows as many tasks as it may, in however many subscriptions, and no more.
func TestFloodOfFollowedTasks(t *testing.T) {
	t.Parallel()
	tasks := &forever{}
	socket, _, _ := narrow(t, tasks, api.DefaultAllowance())
	var ids []task.ID
	for i := range api.MaxIDs {
		ids = append(ids, task.ID{Queue: "q", Key: strconv.Itoa(i)})
	}
	c := dial(t, socket)
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	for range api.CallerFollows / api.MaxIDs {
		following.Go(func() {
			for _, err := range c.Subscribe(ctx, ids) {
				if !errors.Is(err, context.Canceled) {
					t.Errorf("a subscription gives %v", err)
				}
			}
		})
	}
	eventually(t, "they are followed", func() bool { return int(tasks.following.Load()) == api.CallerFollows/api.MaxIDs })
	for _, err := range c.Subscribe(ctx, ids[:1]) {
		if !errors.Is(err, client.ErrBusy) {
			t.Errorf("one more gives %v, want ErrBusy", err)
		}
	}
}

// More connections than there is room for are closed as they come, those of one address first; when some go there is room again.
func TestFloodOfConnections(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ network, address string }{"network": {"tcp", "127.0.0.1:0"}, "socket": {"unix", filepath.Join(testenv.ShortDir(t), "s")}} {
		inner, err := net.Listen(c.network, c.address)
		if err != nil {
			t.Fatal(err)
		}
		l := api.Bounded(inner, 40, 30)
		want := 40
		if c.network == "tcp" {
			want = 30
		}
		accepted := make(chan net.Conn, 200)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				accepted <- conn
			}
		}()
		connect := func(n int) (refused int) {
			for range n {
				conn, err := net.Dial(c.network, inner.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				_ = conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
				if _, err := conn.Read(make([]byte, 1)); !isTimeout(err) {
					refused++
				}
			}
			return refused
		}
		if refused := connect(want + 5); refused != 5 || len(accepted) != want {
			t.Errorf("%s: of %d connections %d were closed at once and %d served, want 5 and %d", name, want+5, refused, len(accepted), want)
		}
		for range want {
			conn := <-accepted
			_ = conn.Close()
			_ = conn.Close() // twice is once
		}
		if refused := connect(3); refused != 0 {
			t.Errorf("%s: afterwards %d of 3 were closed", name, refused)
		}
		_ = l.Close()
		<-done
	}
}

// Hundreds of callers that never finish their heads or their bodies keep nobody else waiting, and are cut off.
func TestFloodOfSlowRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serve(t, w.server(2*time.Second))
	var slow []net.Conn
	for i := range 600 {
		conn, err := net.Dial("unix", w.socket)
		if err != nil {
			t.Fatal(err)
		}
		text := "POST /x HTTP/1.1\r\nHost: dro"
		if i%2 == 0 {
			text = "POST " + apiv1connect.TaskServiceGetProcedure + " HTTP/1.1\r\nHost: drover\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
		}
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, conn)
	}
	begun := time.Now()
	if code, answer := post(t, plain(t, w.socket), apiv1connect.ControlServiceStatusProcedure, `{}`); code != http.StatusOK {
		t.Errorf("meanwhile the status is answered with %d %s", code, answer)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("meanwhile the status took %s", took)
	}
	for i, conn := range slow {
		_ = conn.SetReadDeadline(time.Now().Add(within))
		if _, err := io.Copy(io.Discard, conn); err != nil && isTimeout(err) {
			t.Fatalf("slow request %d was not cut off", i)
		}
		_ = conn.Close()
	}
}

// The pages of an origin that is named may call from a browser, without a token for the question whether they may; no others.
func TestOrigins(t *testing.T) {
	t.Parallel()
	_, address, roots := narrow(t, nothing{}, api.DefaultAllowance())
	c := withToken(t, address, roots, api.RoleSubmit)
	for origin, allowed := range map[string]bool{"https://app.example.org": true, "https://evil.example.org": false, "null": false} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, address+apiv1connect.TaskServiceSubmitProcedure, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Origin", origin)
		request.Header.Set("Access-Control-Request-Method", http.MethodPost)
		request.Header.Set("Access-Control-Request-Headers", "authorization,content-type")
		answer, err := c.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got := answer.Header.Get("Access-Control-Allow-Origin"); (got == origin) != allowed || !allowed && got != "" {
			t.Errorf("%s is told that %q may call", origin, got)
		}
	}
}
