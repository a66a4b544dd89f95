package fetch

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/drover-jobs/drover/protocol/fault"
)

// faultOf says in a person's words why there was no answer.
func (c *Client) faultOf(ctx context.Context, target *url.URL, err error) *fault.Fault {
	where := target.Redacted()
	var (
		known   *fault.Fault
		refused *RefusedError
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &known):
		if strings.Contains(known.Message, "://") {
			return known
		}
		return fault.New(known.Kind, "%s: %s", where, known.Message)
	case errors.As(err, &refused):
		return fault.New(fault.Refused, "%s: %s", where, refused.Error()).AsPermanent()
	case errors.Is(err, errTooLarge):
		return fault.New(fault.TooLarge, "%s: %v", where, err)
	case errors.Is(err, errIdle):
		return fault.New(fault.Unreachable, "%s went silent: no more bytes for %v", where, c.cfg.IdleTimeout)
	case errors.Is(context.Cause(ctx), errTimeout):
		return fault.New(fault.Unreachable, "%s was not read within %v (option timeout)", where, c.cfg.Timeout)
	case errors.As(err, &dns) && dns.IsNotFound:
		return fault.New(fault.Unreachable, "%s: there is no host %s", where, dns.Name)
	case errors.As(err, &dns):
		return fault.New(fault.Unreachable, "%s: the name %s could not be looked up: %s", where, dns.Name, dns.Err)
	case errors.As(err, &cert):
		return fault.New(fault.Unreachable, "%s: its certificate is not valid: %v", where, cert.Err)
	}
	var inner *url.Error
	if errors.As(err, &inner) {
		err = inner.Err // without the address, which stands in front already
	}
	return fault.New(fault.Unreachable, "%s does not answer: %v", where, err)
}

// Check returns nil for a 2xx or 304 and else a *fault.Fault of kind HTTPStatus that names the status and, where it can be
// seen, the challenge page behind it. now is needed for a Retry-After that is a date.
func (r *Response) Check(now time.Time) error {
	if r.Status >= 200 && r.Status <= 299 || r.NotModified() {
		return nil
	}
	message := fmt.Sprintf("%s answers %d %s", Redact(r.URL), r.Status, http.StatusText(r.Status))
	if name := r.Challenge(); name != "" {
		message += ": " + name
	}
	f := fault.New(fault.HTTPStatus, "%s", strings.TrimSpace(message))
	if d, ok := r.RetryAfter(now); ok {
		f = f.WithRetryAfter(d)
	}
	return f
}

// RetryAfter reads the Retry-After header, in seconds or as a date. 0 is a value; a missing or unreadable header is not.
func (r *Response) RetryAfter(now time.Time) (time.Duration, bool) {
	const most = 7 * 24 * time.Hour // beyond that it is a mistake
	text := strings.TrimSpace(r.Header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, most), true
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), most), true
	}
	return 0, false
}

// Challenge names the bot check that answered instead of the site, or returns "".
func (r *Response) Challenge() string {
	if strings.EqualFold(r.Header.Get("Cf-Mitigated"), "challenge") {
		return "a Cloudflare challenge that only a browser passes"
	}
	head := bytes.ToLower(r.Body[:min(len(r.Body), errorBodyBytes)])
	for _, mark := range []struct{ text, name string }{
		{"/cdn-cgi/challenge-platform/", "a Cloudflare challenge that only a browser passes"},
		{"<title>just a moment...</title>", "a Cloudflare challenge that only a browser passes"},
		{"<title>attention required! | cloudflare</title>", "a Cloudflare block page"},
		{"_incapsula_resource", "an Imperva challenge that only a browser passes"},
		{"ddos-guard", "a DDoS-Guard challenge that only a browser passes"},
		{"cf-browser-verification", "a Cloudflare challenge that only a browser passes"},
		{"checking your browser before accessing", "a challenge that only a browser passes"},
		{"enable javascript and cookies to continue", "a challenge that only a browser passes"},
		{"anubis_challenge", "an Anubis challenge that only a browser passes"},
	} {
		if bytes.Contains(head, []byte(mark.text)) && !looksLikeFeed(head) {
			return mark.name
		}
	}
	return ""
}

// looksLikeFeed keeps a feed that writes about challenges from being taken for one.
func looksLikeFeed(lower []byte) bool {
	head := lower[:min(len(lower), 2048)]
	for _, root := range []string{"<rss", "<feed", "<rdf:rdf", "{"} {
		if bytes.Contains(head, []byte(root)) && !bytes.Contains(head, []byte("<html")) {
			return true
		}
	}
	return false
}

// Redact returns an address without its password, for people and logs.
func Redact(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Redacted()
}
