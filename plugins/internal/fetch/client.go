package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Config is what a Client is made of. The zero value of a field means its default.
type Config struct {
	// AllowNetworks lists networks in CIDR notation that may be dialled besides public unicast.
	AllowNetworks []string
	// UserAgent is sent with every request. Default DefaultUserAgent.
	UserAgent string
	// Timeout bounds one fetch as a whole, redirects and body included. Default 60 s.
	Timeout time.Duration
	// IdleTimeout bounds the wait for the next bytes of a body. Default 20 s, at most Timeout.
	IdleTimeout time.Duration
	// MaxWire bounds the bytes of a body as they come, MaxBody what they decompress to. Default 32 MiB each.
	MaxWire, MaxBody int64
	// MaxRedirects is how many redirects are followed. Default 10.
	MaxRedirects int
}

// Defaults of Config.
const (
	DefaultUserAgent    = "Drover/1.0 (+https://github.com/drover-jobs/drover)"
	DefaultTimeout      = 60 * time.Second
	DefaultIdleTimeout  = 20 * time.Second
	DefaultMaxBytes     = 32 << 20
	DefaultMaxRedirects = 10
)

const (
	connsPerHost   = 4        // a feed host deserves no more from one process
	errorBodyBytes = 64 << 10 // enough of an error page to name it
	headerBytes    = 256 << 10
)

func (c Config) withDefaults() Config {
	if c.UserAgent == "" {
		c.UserAgent = DefaultUserAgent
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.IdleTimeout <= 0 {
		c.IdleTimeout = DefaultIdleTimeout
	}
	c.IdleTimeout = min(c.IdleTimeout, c.Timeout)
	if c.MaxWire <= 0 {
		c.MaxWire = DefaultMaxBytes
	}
	if c.MaxBody <= 0 {
		c.MaxBody = DefaultMaxBytes
	}
	if c.MaxRedirects <= 0 {
		c.MaxRedirects = DefaultMaxRedirects
	}
	return c
}

// Client fetches. It is safe for concurrent use.
type Client struct {
	cfg       Config
	http      *http.Client
	transport *http.Transport
}

// New returns a client, or an error that names the option that is wrong. It opens nothing.
func New(cfg Config) (*Client, error) {
	g, err := newGuard(cfg.AllowNetworks)
	if err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	dialer := &net.Dialer{Timeout: min(cfg.Timeout, 15*time.Second), KeepAlive: 30 * time.Second, Control: g.control}
	transport := &http.Transport{
		// No proxy from the environment: the guard would then see only the proxy's address.
		Proxy:                  nil,
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    15 * time.Second,
		ResponseHeaderTimeout:  cfg.Timeout,
		IdleConnTimeout:        60 * time.Second,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    2,
		MaxConnsPerHost:        connsPerHost,
		MaxResponseHeaderBytes: headerBytes,
		// Decompression is ours: net/http knows gzip only and sets no limit to it.
		DisableCompression: true,
	}
	return &Client{cfg: cfg, transport: transport, http: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close gives idle connections back. Fetches that are under way go on.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Request says what to fetch.
type Request struct {
	// URL is an absolute http or https address.
	URL string
	// ETag and LastModified are sent back exactly as they were last seen; empty ones are not sent.
	ETag, LastModified string
	// Accept is the Accept header; empty means anything.
	Accept string
}

// Get fetches one address, following redirects. It returns an error (always a *fault.Fault) when there was no complete
// answer, and a Response otherwise, whatever its status. When ctx ends first, the error wraps ctx's cause instead.
func (c *Client) Get(ctx context.Context, req Request) (*Response, error) {
	start := time.Now()
	target, err := ParseURL(req.URL)
	if err != nil {
		return nil, err
	}
	timed, cancel := context.WithTimeoutCause(ctx, c.cfg.Timeout, errTimeout)
	defer cancel()
	resp, err := c.follow(timed, target, req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("fetching %s: %w", target.Redacted(), context.Cause(ctx))
		}
		return nil, c.faultOf(timed, target, err)
	}
	resp.Elapsed = time.Since(start)
	return resp, nil
}

var (
	errTimeout  = errors.New("the time for one fetch ran out")
	errIdle     = errors.New("no more bytes came")
	errTooLarge = errors.New("too large")
)
