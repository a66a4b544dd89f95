package discover

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/drover-jobs/drover/plugins/internal/fetch"
	"github.com/drover-jobs/drover/protocol/fault"
)

const (
	acceptFeed = "application/rss+xml, application/atom+xml, application/feed+json, application/rdf+xml;q=0.9, " +
		"application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, */*;q=0.5"
	acceptPage = "text/html, application/xhtml+xml, application/rss+xml, application/atom+xml, application/xml;q=0.9, */*;q=0.8"
)

const (
	maxRequests = 80 // of a task
	maxRefusals = 2  // 401 and 403 of a host, after which it is left alone
)

// asker makes the requests of one task and stops asking a host that does not want it.
type asker struct {
	client *fetch.Client
	gate   chan struct{}

	mu       sync.Mutex
	requests int
	refusals map[string]int
	closed   map[string]string // host to why it is not asked any more
}

func newAsker(client *fetch.Client, gate chan struct{}) *asker {
	return &asker{client: client, gate: gate, refusals: map[string]int{}, closed: map[string]string{}}
}

// blocked says why a host is not asked any more, or "".
func (a *asker) blocked(host string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed[host]
}

// get asks for one address. The error is a *fault.Fault, or wraps what ended ctx.
func (a *asker) get(ctx context.Context, u *url.URL, accept string) (*fetch.Response, error) {
	select {
	case a.gate <- struct{}{}:
		defer func() { <-a.gate }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := a.allow(u.Host); err != nil {
		return nil, err
	}
	response, err := a.client.Get(ctx, fetch.Request{URL: u.String(), Accept: accept})
	if err == nil {
		a.judge(u.Host, response)
	}
	return response, err
}

func (a *asker) allow(host string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if why := a.closed[host]; why != "" {
		return fault.New(fault.HTTPStatus, "not asked: %s %s", host, why)
	}
	if a.requests++; a.requests > maxRequests {
		return fault.New(fault.TooLarge, "not asked: %d requests for one task are enough", maxRequests)
	}
	return nil
}

// judge remembers what an answer says about the host as a whole.
func (a *asker) judge(asked string, r *fetch.Response) {
	host := asked
	if final, err := url.Parse(r.URL); err == nil {
		host = final.Host
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	why := ""
	switch {
	case challengeOf(r) != "":
		why = "answers with " + challengeOf(r)
	case r.Status == http.StatusTooManyRequests || r.Status == http.StatusServiceUnavailable:
		why = "answers " + http.StatusText(r.Status)
	case r.Status == http.StatusForbidden || r.Status == http.StatusUnauthorized:
		if a.refusals[host]++; a.refusals[host] >= maxRefusals {
			why = "forbids it again and again"
		}
	}
	if why != "" {
		a.closed[host], a.closed[asked] = why, why
	}
}

// shortPage is the size of a body up to which a good answer may be a challenge; a longer one is a page that speaks of them.
const shortPage = 32 << 10

// challengeOf names the bot check that answered, or returns "".
func challengeOf(r *fetch.Response) string {
	if !failed(r.Status) && len(r.Body) > shortPage && r.Header.Get("Cf-Mitigated") == "" {
		return ""
	}
	return r.Challenge()
}

// faultOf is nil for a good answer, and else says what is wrong; a challenge is called by its name and with what to do.
func faultOf(r *fetch.Response) error {
	name := challengeOf(r)
	err := r.Check(time.Now())
	switch {
	case name != "" && err == nil:
		return fault.New(fault.WrongContent, "%s answers with %s; if you know the address of its feed, try that", fetch.Redact(r.URL), name)
	case name != "":
		f := fault.From(err)
		f.Message += "; if you know the address of its feed, try that"
		return f
	}
	if err == nil && r.NotModified() {
		return fault.New(fault.HTTPStatus, "%s answers 304 Not Modified to a request without conditions", fetch.Redact(r.URL))
	}
	return err
}
