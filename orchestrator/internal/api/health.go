package api

import (
	"fmt"
	"net/http"
)

// Paths beside the services.
const (
	pathMetrics = "/metrics"
	pathOpenAPI = "/openapi.json"
	pathAlive   = "/healthz"
	pathReady   = "/readyz"
)

// monitored adds to a handler what monitors ask for: whether the process lives, whether it can take and settle tasks, and its
// metrics.
func (s *Server) monitored(next http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", next)
	mux.HandleFunc("GET "+pathAlive, func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") }) // who has gone need not be told
	mux.HandleFunc("GET "+pathReady, func(w http.ResponseWriter, _ *http.Request) {
		if s.options.Ready != nil {
			if err := s.options.Ready(); err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
		}
		_, _ = fmt.Fprintln(w, "ready") // as above
	})
	if s.options.Metrics != nil {
		mux.Handle("GET "+pathMetrics, s.callers.limited(s.options.Metrics))
	}
	return mux
}
