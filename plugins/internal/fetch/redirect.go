package fetch

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/drover-jobs/drover/protocol/fault"
)

// Hop is one redirect that was followed.
type Hop struct {
	// From is the address that redirected, Status the code it used.
	From   string
	Status int
}

// Permanent is true for a redirect that says "from now on".
func (h Hop) Permanent() bool {
	return h.Status == http.StatusMovedPermanently || h.Status == http.StatusPermanentRedirect
}

// ParseURL reads an absolute http or https address, without its fragment. The error is a *fault.Fault of kind Refused for
// another scheme and InvalidPayload for what is no address.
func ParseURL(text string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return nil, fault.New(fault.InvalidPayload, "%q is not an address: write it like https://example.com/feed.xml", text).AsPermanent()
	}
	if err := checkURL(u); err != nil {
		return nil, err
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// Canonical spells an address the one way by which a store knows it: scheme and host in lower case, no default port, no
// fragment, a slash for an empty path. u is not changed.
func Canonical(u *url.URL) string {
	c := *u
	c.Scheme = strings.ToLower(c.Scheme)
	c.Host = strings.ToLower(c.Host)
	if c.Scheme == "http" {
		c.Host = strings.TrimSuffix(c.Host, ":80")
	} else {
		c.Host = strings.TrimSuffix(c.Host, ":443")
	}
	c.Fragment, c.RawFragment = "", ""
	if c.Path == "" {
		c.Path = "/"
	}
	return c.String()
}

func checkURL(u *url.URL) error {
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
	case "":
		return fault.New(fault.InvalidPayload, "%q has no scheme: write it like https://example.com/feed.xml", u.Redacted()).AsPermanent()
	default:
		return fault.New(fault.Refused, "%s: only http and https are fetched, not %q", u.Redacted(), u.Scheme).AsPermanent()
	}
	if u.Hostname() == "" {
		return fault.New(fault.InvalidPayload, "%q names no host: write it like https://example.com/feed.xml", u.Redacted()).AsPermanent()
	}
	return nil
}

// follow asks target and then wherever it sends us.
func (c *Client) follow(ctx context.Context, target *url.URL, req Request) (*Response, error) {
	var hops []Hop
	for {
		answer, body, err := c.ask(ctx, target, req)
		if err != nil {
			return nil, err
		}
		location := answer.Header.Get("Location")
		if !isRedirect(answer.StatusCode) || location == "" {
			resp, err := c.read(answer, body, target)
			if err != nil {
				return nil, err
			}
			resp.Hops = hops
			return resp, nil
		}
		drain(body)
		hops = append(hops, Hop{From: target.String(), Status: answer.StatusCode})
		if len(hops) > c.cfg.MaxRedirects {
			return nil, fault.New(fault.Unreachable, "%s redirects more than %d times, the last time to %s",
				Redact(hops[0].From), c.cfg.MaxRedirects, Redact(location))
		}
		next, err := target.Parse(strings.TrimSpace(location))
		if err != nil {
			return nil, fault.New(fault.Unreachable, "%s redirects to %q, which is not an address", target.Redacted(), Redact(location))
		}
		if err := checkURL(next); err != nil {
			return nil, fault.New(fault.From(err).Kind, "redirected from %s: %s", target.Redacted(), fault.From(err).Message)
		}
		next.Fragment, next.RawFragment = "", ""
		target = next
	}
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// ask sends one request. The body is guarded against silence from its first byte on.
func (c *Client) ask(ctx context.Context, target *url.URL, req Request) (*http.Response, io.ReadCloser, error) {
	hop, cancel := context.WithCancelCause(ctx)
	r, err := http.NewRequestWithContext(hop, http.MethodGet, target.String(), nil)
	if err != nil {
		cancel(nil)
		return nil, nil, fault.New(fault.InvalidPayload, "%s cannot be asked for: %v", target.Redacted(), err).AsPermanent()
	}
	r.Header.Set("User-Agent", c.cfg.UserAgent)
	r.Header.Set("Accept-Encoding", "gzip, deflate, br, zstd")
	r.Header.Set("Accept", "*/*")
	if req.Accept != "" {
		r.Header.Set("Accept", req.Accept)
	}
	if req.ETag != "" {
		r.Header.Set("If-None-Match", req.ETag)
	}
	if req.LastModified != "" {
		r.Header.Set("If-Modified-Since", req.LastModified)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	return answer, newIdleReader(answer.Body, c.cfg.IdleTimeout, cancel), nil
}

// drain reads the little that stands behind a redirect, so that the connection can be used again.
func drain(body io.ReadCloser) {
	_, _ = io.CopyN(io.Discard, body, 8<<10) // what comes does not matter
	_ = body.Close()
}
