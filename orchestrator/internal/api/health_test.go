package api_test

import (
	"errors"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
)

// Monitors learn on the manager's own socket whether it lives, whether it is ready and why not, and its metrics; workers do not.
func TestHealth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var away atomic.Bool
	serve(t, api.New(api.Options{
		Socket: w.socket, PluginSocket: w.plugin, Tasks: w.tasks, Control: &panel{}, Log: quiet(),
		Ready: func() error {
			if away.Load() {
				return errors.New("Redis is away")
			}
			return nil
		},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "drover_up 1\n") }),
	}))
	get := func(socket, path string) (int, string) {
		t.Helper()
		answer, err := plain(t, socket).Get("http://drover" + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(text)
	}
	expect := func(socket, path string, code int, text string) {
		t.Helper()
		if gotCode, got := get(socket, path); gotCode != code || text != "" && got != text {
			t.Errorf("%s on %s: %d %q, want %d %q", path, socket, gotCode, got, code, text)
		}
	}
	expect(w.socket, "/healthz", 200, "ok\n")
	expect(w.socket, "/readyz", 200, "ready\n")
	expect(w.socket, "/metrics", 200, "drover_up 1\n")
	away.Store(true)
	expect(w.socket, "/healthz", 200, "ok\n")
	expect(w.socket, "/readyz", 503, "Redis is away\n")
	expect(w.plugin, "/metrics", 404, "")
	expect(w.plugin, "/readyz", 404, "")
}
