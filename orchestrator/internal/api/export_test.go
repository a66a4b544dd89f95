package api

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Handler is what Run serves on the socket with full rights.
func (s *Server) Handler() http.Handler { return s.handler(context.Background(), everything) }

// Quick shortens every limit, so that tests see what happens after them.
func (s *Server) Quick(d time.Duration) {
	s.limits = limits{header: d, body: d, send: d, idle: d, finish: 5 * d, unary: 20 * d, beat: d}
}

// The bounds of requests.
const (
	MaxIDs      = maxIDs
	MaxRequest  = maxRequest
	MaxStreams  = maxStreams
	MaxEventIDs = maxEventIDs
)

// Bounded bounds the connections of a listener, in all and from one address.
func Bounded(l net.Listener, most, perHost int) net.Listener {
	c := bounded(l)
	c.most, c.perHost = most, perHost
	return c
}

// Bounds of what is open at once.
const (
	MaxBodies     = maxBodies
	CallerFollows = callerFollows
)

// MaxFollowers is how many streams of the ControlService there may be.
const MaxFollowers = maxFollowers

// LoadKeyPair returns what shows the certificate, which looks at the files each time.
func LoadKeyPair(certificate, key string, log *slog.Logger) (func() (*tls.Certificate, error), error) {
	p := &keyPair{certificate: certificate, key: key, log: log}
	if err := p.load(); err != nil {
		return nil, err
	}
	return func() (*tls.Certificate, error) {
		p.looked = time.Time{}
		return p.get(nil)
	}, nil
}
