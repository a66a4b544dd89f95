package api

import (
	"context"
	"net/http"
	"time"
)

// Handler is what Run serves on the socket with full rights.
func (s *Server) Handler() http.Handler { return s.handler(context.Background(), everything) }

// Quick shortens every limit, so that tests see what happens after them.
func (s *Server) Quick(d time.Duration) {
	s.limits = limits{header: d, body: d, send: d, idle: d, finish: 5 * d, unary: 20 * d}
}

// The bounds of requests.
const (
	MaxIDs     = maxIDs
	MaxRequest = maxRequest
	MaxStreams = maxStreams
)

// MaxFollowers is how many streams of the ControlService there may be.
const MaxFollowers = maxFollowers
