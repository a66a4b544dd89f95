package fetch_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/fetch"
	"github.com/drover-jobs/drover/protocol/fault"
)

// serve starts a server and a client that may reach it. Both end with the test.
func serve(t *testing.T, cfg fetch.Config, handler http.HandlerFunc) (*fetch.Client, string) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	if cfg.AllowNetworks == nil {
		cfg.AllowNetworks = []string{"127.0.0.0/8"}
	}
	client, err := fetch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client, server.URL
}

func wantFault(t *testing.T, err error, kind fault.Kind, parts ...string) {
	t.Helper()
	_ = theFault(t, err, kind, parts...)
}

// theFault is wantFault for a test that looks further.
func theFault(t *testing.T, err error, kind fault.Kind, parts ...string) *fault.Fault {
	t.Helper()
	var f *fault.Fault
	if !errors.As(err, &f) {
		t.Fatalf("got %v, want a fault of kind %v", err, kind)
	}
	if f.Kind != kind {
		t.Errorf("kind is %v (%s), want %v", f.Kind, f.Message, kind)
	}
	for _, part := range parts {
		if !strings.Contains(f.Message, part) {
			t.Errorf("message %q does not contain %q", f.Message, part)
		}
	}
	return f
}

// A request carries the honest agent and the exact validators, and neither cookies nor a Referer.
func TestRequestHeaders(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 2)
	client, base := serve(t, fetch.Config{UserAgent: "Test/1"}, func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Clone()
		w.Header().Set("Set-Cookie", "a=b")
		if r.URL.Path == "/a" {
			http.Redirect(w, r, "/b", http.StatusFound)
			return
		}
		w.WriteHeader(http.StatusNotModified)
	})
	resp, err := client.Get(t.Context(), fetch.Request{URL: base + "/a#part", ETag: `W/"x-gzip"`, LastModified: "yesterday"})
	if err != nil {
		t.Fatal(err)
	}
	if !resp.NotModified() || resp.Check(time.Now()) != nil {
		t.Errorf("a 304 came as %+v", resp)
	}
	for range 2 {
		h := <-seen
		for name, want := range map[string]string{
			"User-Agent": "Test/1", "If-None-Match": `W/"x-gzip"`, "If-Modified-Since": "yesterday", "Cookie": "", "Referer": "",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s is %q, want %q", name, got, want)
			}
		}
	}
}

// Only a chain of nothing but permanent redirects moves an address, and ten redirects are followed but not eleven.
func TestRedirects(t *testing.T) {
	t.Parallel()
	client, base := serve(t, fetch.Config{}, func(w http.ResponseWriter, r *http.Request) {
		var n int
		switch _, err := fmt.Sscanf(r.URL.Path, "/count/%d", &n); {
		case err == nil && n > 0:
			http.Redirect(w, r, fmt.Sprintf("/count/%d", n-1), http.StatusFound)
		case r.URL.Path == "/301":
			http.Redirect(w, r, "/308", http.StatusMovedPermanently)
		case r.URL.Path == "/308":
			http.Redirect(w, r, "/end", http.StatusPermanentRedirect)
		case r.URL.Path == "/mixed":
			http.Redirect(w, r, "/301", http.StatusTemporaryRedirect)
		case r.URL.Path == "/file":
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		default:
			_, _ = w.Write([]byte("end"))
		}
	})
	for path, want := range map[string]string{"/301": base + "/end", "/mixed": "", "/end": "", "/count/10": ""} {
		resp, err := client.Get(t.Context(), fetch.Request{URL: base + path})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if resp.Moved() != want || string(resp.Body) != "end" {
			t.Errorf("%s: moved to %q with body %q, want %q", path, resp.Moved(), resp.Body, want)
		}
	}
	_, err := client.Get(t.Context(), fetch.Request{URL: base + "/count/11"})
	wantFault(t, err, fault.Unreachable, "more than 10")
	_, err = client.Get(t.Context(), fetch.Request{URL: base + "/file"})
	wantFault(t, err, fault.Refused, "only http and https")
}

// An address that is not public is refused at dial time, in every spelling and behind a redirect, and the message names the
// address and the option that would allow it.
func TestGuard(t *testing.T) {
	t.Parallel()
	reached := make(chan string, 10)
	inside := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { reached <- r.URL.Path }))
	defer inside.Close()
	port := inside.URL[strings.LastIndex(inside.URL, ":")+1:]
	closed, err := fetch.New(fetch.Config{Timeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer closed.Close()
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "[::1]", "0.0.0.0", "169.254.169.254", "10.1.2.3", "[fe80::1]", "100.64.0.1"} {
		_, err := closed.Get(t.Context(), fetch.Request{URL: "http://" + host + ":" + port + "/x"})
		f := theFault(t, err, fault.Refused, "allow_networks")
		if !f.Permanent {
			t.Errorf("%s: the refusal is not permanent", host)
		}
	}
	// 127.0.0.1 is allowed here, 127.0.0.2 is not.
	client, base := serve(t, fetch.Config{AllowNetworks: []string{"127.0.0.1/32"}}, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.2:"+port+"/secret", http.StatusFound)
	})
	_, err = client.Get(t.Context(), fetch.Request{URL: base})
	wantFault(t, err, fault.Refused, "127.0.0.2:"+port, "127.0.0.2/32")
	if len(reached) > 0 {
		t.Errorf("the guarded server was reached: %s", <-reached)
	}
	if _, err := fetch.New(fetch.Config{AllowNetworks: []string{"home"}}); err == nil || !strings.Contains(err.Error(), "allow_networks") {
		t.Errorf("a wrong network gives %v", err)
	}
}

// What is no http address never reaches the network.
func TestBadAddresses(t *testing.T) {
	t.Parallel()
	client, err := fetch.New(fetch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for text, kind := range map[string]fault.Kind{
		"": fault.InvalidPayload, "example.com/feed": fault.InvalidPayload, "http://": fault.InvalidPayload, "http://[::1": fault.InvalidPayload,
		"ftp://example.com/": fault.Refused, "file:///etc/passwd": fault.Refused, "http:/blog": fault.InvalidPayload,
	} {
		_, err := client.Get(t.Context(), fetch.Request{URL: text})
		wantFault(t, err, kind)
	}
}

// A slow drip ends with the total limit, a silent server with the idle limit, and a caller's own end is not a fault of the server.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	drip := func(w http.ResponseWriter, r *http.Request) {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			if r.URL.Path == "/drip" {
				_, _ = w.Write([]byte("x"))
			}
			w.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-ticker.C:
			}
		}
	}
	client, base := serve(t, fetch.Config{Timeout: 400 * time.Millisecond, IdleTimeout: 350 * time.Millisecond}, drip)
	_, err := client.Get(t.Context(), fetch.Request{URL: base + "/drip"})
	wantFault(t, err, fault.Unreachable, "not read within 400ms")

	client, base = serve(t, fetch.Config{Timeout: time.Minute, IdleTimeout: 100 * time.Millisecond}, drip)
	_, err = client.Get(t.Context(), fetch.Request{URL: base + "/silent"})
	wantFault(t, err, fault.Unreachable, "silent")

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = client.Get(ctx, fetch.Request{URL: base + "/drip"})
	var f *fault.Fault
	if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &f) {
		t.Errorf("the caller's deadline came back as %v", err)
	}
}

// An error status is told with its name, its challenge and its Retry-After; zero seconds are a value.
func TestStatusFaults(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	second := func(n int) *time.Duration { d := time.Duration(n) * time.Second; return &d }
	for name, c := range map[string]struct {
		status    int
		header    [2]string
		body      string
		want      string
		wantRetry *time.Duration
	}{
		"not found": {status: 404, want: "404 Not Found"},
		"seconds":   {status: 429, header: [2]string{"Retry-After", "120"}, want: "429", wantRetry: second(120)},
		"zero":      {status: 503, header: [2]string{"Retry-After", "0"}, want: "503", wantRetry: second(0)},
		"date":      {status: 503, header: [2]string{"Retry-After", "Sun, 01 Mar 2026 12:10:00 GMT"}, want: "503", wantRetry: second(600)},
		"nonsense":  {status: 503, header: [2]string{"Retry-After", "soon"}, want: "503"},
		"challenge": {status: 403, header: [2]string{"Cf-Mitigated", "challenge"}, want: "Cloudflare challenge"},
		"page":      {status: 503, body: "<html><title>Just a moment...</title>", want: "Cloudflare challenge"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, base := serve(t, fetch.Config{}, func(w http.ResponseWriter, _ *http.Request) {
				if c.header[0] != "" {
					w.Header().Set(c.header[0], c.header[1])
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			})
			resp, err := client.Get(t.Context(), fetch.Request{URL: base})
			if err != nil {
				t.Fatal(err)
			}
			f := theFault(t, resp.Check(now), fault.HTTPStatus, c.want)
			if (f.RetryAfter == nil) != (c.wantRetry == nil) || f.RetryAfter != nil && *f.RetryAfter != *c.wantRetry {
				t.Errorf("retry after %v, want %v", f.RetryAfter, c.wantRetry)
			}
		})
	}
}

// A connection that nobody answers and one that breaks in the middle are named so.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	client, base := serve(t, fetch.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte("short"))
	})
	_, err := client.Get(t.Context(), fetch.Request{URL: base})
	wantFault(t, err, fault.Unreachable, "broke after 5 bytes")

	dead := httptest.NewServer(http.NotFoundHandler())
	dead.Close()
	_, err = client.Get(t.Context(), fetch.Request{URL: strings.Replace(dead.URL, "http://", "http://me:secret@", 1)})
	if f := theFault(t, err, fault.Unreachable, "does not answer"); strings.Contains(f.Message, "secret") {
		t.Errorf("the password is in %q", f.Message)
	}
}
