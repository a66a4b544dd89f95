package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/drover-jobs/drover/protocol/drover/api/v1/apiv1connect"
)

const (
	dialTimeout = 5 * time.Second
	// A connection that is silent for pingAfter is asked, and given up when no answer comes within pingTimeout: so long may a wait
	// not hear that its manager is gone, when nothing else says so.
	pingAfter   = 5 * time.Second
	pingTimeout = 10 * time.Second
	// So many calls that are answered at once are under way over HTTP/1.1, and so long a connection of theirs is kept: shorter than
	// a manager keeps it.
	quickConnections = 8
	quickIdle        = 30 * time.Second
)

// DialOption changes how a manager is spoken to.
type DialOption func(*dialing)

type dialing struct {
	token string
	tls   *tls.Config
}

// WithToken sends a bearer token with every call. It takes an address with https.
func WithToken(token string) DialOption { return func(d *dialing) { d.token = token } }

// WithTLS says whose certificates are believed, and everything else about TLS; without it those that the system believes.
func WithTLS(config *tls.Config) DialOption { return func(d *dialing) { d.tls = config } }

// Dial returns a client for the API of the manager at an address: "unix:/run/drover.sock", "unix:var/drover.sock"
// relative to the working directory, or "https://jobs.example.org:7171" with a token. It connects when it is first used; the
// error says what is wrong with the address. A subscription outlives a restart of the manager.
func Dial(address string, options ...DialOption) (Client, error) {
	l, err := newLink(address, options)
	if err != nil {
		return nil, err
	}
	a := &api{
		link:   l,
		tasks:  apiv1connect.NewTaskServiceClient(l.http, l.base, connectOptions()...),
		quick:  apiv1connect.NewTaskServiceClient(l.quick, l.base, connectOptions()...),
		calls:  calls{cancels: map[*context.CancelFunc]struct{}{}},
		gather: gatherer{queues: map[string]*gathering{}},
	}
	a.gather.submit = a.submitTogether
	return a, nil
}

// ControlClient shows and changes a running manager.
type ControlClient struct {
	apiv1connect.ControlServiceClient
	link *link
}

// Control returns a client for the control service of the manager at an address, as Dial does. Its errors are those of
// connect; Explain turns them into the errors of this package.
func Control(address string, options ...DialOption) (*ControlClient, error) {
	l, err := newLink(address, options)
	if err != nil {
		return nil, err
	}
	return &ControlClient{ControlServiceClient: apiv1connect.NewControlServiceClient(l.http, l.base, connectOptions()...), link: l}, nil
}

// Close ends the calls in progress and frees the connections.
func (c *ControlClient) Close() error { return c.link.close() }

// connectOptions: nothing is compressed on the way to a manager of the same machine.
func connectOptions() []connect.ClientOption {
	return []connect.ClientOption{connect.WithAcceptCompression("gzip", nil, nil)}
}

// link is the connections to one manager. HTTP/2 carries any number of calls over one of them, and its pings tell when the manager is
// gone; for calls that are answered at once, on the same machine, HTTP/1.1 costs two thirds of that.
type link struct {
	http  *http.Client
	quick *http.Client // for calls that are answered at once
	base  string

	mu     sync.Mutex
	closed bool
	conns  map[*linkConn]struct{}
}

// linkConn is a connection that its link knows of until it is closed.
type linkConn struct {
	net.Conn
	link *link
}

// Close closes the connection.
func (c *linkConn) Close() error {
	c.link.mu.Lock()
	delete(c.link.conns, c)
	c.link.mu.Unlock()
	return c.Conn.Close()
}

// dialError says that nobody listens at an address.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

func newLink(address string, options []DialOption) (*link, error) {
	var how dialing
	for _, option := range options {
		option(&how)
	}
	network, target, base, err := parseAddress(address)
	if err != nil {
		return nil, err
	}
	if how.token != "" && !strings.HasPrefix(base, "https:") {
		return nil, fmt.Errorf("a token is sent over TLS only: write https://host:port instead of %q", address)
	}
	l := &link{base: base, conns: map[*linkConn]struct{}{}}
	dialer := net.Dialer{Timeout: dialTimeout}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	protocols.SetHTTP2(true)
	transport := &http.Transport{
		Protocols:          protocols,
		TLSClientConfig:    how.tls,
		Proxy:              nil, // a manager is reached straight
		HTTP2:              &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, target)
			if err != nil {
				return nil, &dialError{err: err}
			}
			return l.keep(conn)
		},
	}
	l.http = &http.Client{Transport: transport}
	if how.token != "" {
		l.http.Transport = &bearer{token: how.token, next: transport}
	}
	l.quick = l.http
	if network == "unix" {
		l.quick = &http.Client{Transport: &http.Transport{
			DialContext: transport.DialContext, DisableCompression: true, MaxIdleConns: quickConnections, MaxIdleConnsPerHost: quickConnections,
			MaxConnsPerHost: quickConnections, IdleConnTimeout: quickIdle, ResponseHeaderTimeout: pingAfter + pingTimeout,
		}}
	}
	return l, nil
}

// bearer sends a token with every request.
type bearer struct {
	token string
	next  *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (b *bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}

// CloseIdleConnections lets http.Client do so.
func (b *bearer) CloseIdleConnections() { b.next.CloseIdleConnections() }

// keep remembers a new connection.
func (l *link) keep(conn net.Conn) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errors.Join(ErrClosed, conn.Close())
	}
	kept := &linkConn{Conn: conn, link: l}
	l.conns[kept] = struct{}{}
	return kept, nil
}

// close closes all connections, those in use included.
func (l *link) close() error {
	l.mu.Lock()
	l.closed = true
	conns := make([]*linkConn, 0, len(l.conns))
	for c := range l.conns {
		conns = append(conns, c)
	}
	l.mu.Unlock()
	for _, c := range conns {
		_ = c.Close() // whatever it says, the connection is gone
	}
	l.http.CloseIdleConnections()
	l.quick.CloseIdleConnections()
	return nil
}

// parseAddress returns how to dial an address and the base of its URLs.
func parseAddress(address string) (network, target, base string, err error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		path = strings.TrimPrefix(path, "//")
		if path == "" {
			return "", "", "", fmt.Errorf("%q is not the address of a manager: the path of its socket is missing", address)
		}
		return "unix", path, "http://drover", nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Port() == "" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" {
		return "", "", "", fmt.Errorf("%q is not the address of a manager: write unix:/path/to/drover.sock or https://host:port", address)
	}
	return "tcp", u.Host, u.Scheme + "://" + u.Host, nil
}
