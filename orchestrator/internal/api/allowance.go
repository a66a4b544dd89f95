package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/time/rate"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/drover/api/v1/apiv1connect"
)

// Allowance is what one caller may ask for, and all together. A caller is a token, or a process of this machine.
type Allowance struct {
	// Rate is how many calls a caller may make, and twice of it at once; off is no limit.
	Rate settings.Rate
	// CallerWaits is how many waits and streams a caller may have open, Waits how many all callers together.
	CallerWaits, Waits int
}

// DefaultAllowance is what holds when nothing else is said.
func DefaultAllowance() Allowance {
	return Allowance{Rate: settings.Rate{Tasks: 2000, Per: time.Second}, CallerWaits: 2000, Waits: 8000}
}

const (
	// callerCalls and allCalls bound the calls in progress that are no waits: who sends its bodies slowly has many of them.
	callerCalls, allCalls = 1000, 4000
	// callerFollows and allFollows bound the tasks that are followed at once, over all subscriptions; each costs some hundred bytes.
	callerFollows, allFollows = 2 * maxIDs, 10 * maxIDs
	// maxBodies bounds the bodies of requests that are in memory at once, in bytes; decoding takes about twice as much besides.
	maxBodies = 16 * maxRequest
	// rateBurst is how many times the calls of a second may come at once.
	rateBurst = 2
	// comeBack is when a caller that has too much open should try again.
	comeBack = time.Second
	// forgetAt is how many callers are remembered before those that do nothing are forgotten.
	forgetAt = 1000
	// overTold is how often a caller that is over a limit is spoken of in the log.
	overTold = 10 * time.Second
)

// callers keeps what each caller has open.
type callers struct {
	allowance Allowance
	log       *slog.Logger

	mu                           sync.Mutex
	known                        map[string]*caller
	waits, calls, follows, bytes int
}

// caller is one of them. The mutex of callers guards it.
type caller struct {
	name                  string
	limiter               *rate.Limiter // nil for no limit
	told                  time.Time
	waits, calls, follows int
}

func newCallers(a Allowance, log *slog.Logger) *callers {
	return &callers{allowance: a, log: log, known: map[string]*caller{}}
}

// of returns the caller with a name. mu is held.
func (c *callers) of(name string) *caller {
	who := c.known[name]
	if who != nil {
		return who
	}
	if len(c.known) >= forgetAt {
		for other, o := range c.known {
			if o.waits+o.calls == 0 && (o.limiter == nil || o.limiter.Tokens() >= float64(o.limiter.Burst())) {
				delete(c.known, other)
			}
		}
	}
	who = &caller{name: name}
	if r := c.allowance.Rate; !r.Off() {
		who.limiter = rate.NewLimiter(rate.Limit(r.PerSecond()), max(1, int(rateBurst*r.PerSecond())))
	}
	c.known[name] = who
	return who
}

// isWait reports whether a call is one that may stay open for hours.
func isWait(path string) bool {
	switch path {
	case apiv1connect.TaskServiceWaitProcedure, apiv1connect.TaskServiceSubscribeProcedure, pathEvents,
		apiv1connect.ControlServiceWatchProcedure, apiv1connect.ControlServiceLogsProcedure:
		return true
	default:
		return false
	}
}

// begin counts a call, or says over which limit it is, and when to try again.
func (c *callers) begin(name string, wait bool) (*call, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	who := c.of(name)
	if who.limiter != nil && !who.limiter.Allow() {
		pause := time.Duration((1 - who.limiter.Tokens()) / float64(who.limiter.Limit()) * float64(time.Second))
		return nil, c.over(who, pause, fmt.Errorf("more than %s calls, which is what one caller may make; send many tasks with one SubmitBatch, or ask for api.rate to be raised", c.allowance.Rate))
	}
	switch {
	case wait && who.waits >= c.allowance.CallerWaits:
		return nil, c.over(who, comeBack, fmt.Errorf("%d waits and streams are open, which is what one caller may have; follow many tasks with one Subscribe, or ask for api.caller_waits to be raised", who.waits))
	case wait && c.waits >= c.allowance.Waits:
		return nil, c.over(who, comeBack, fmt.Errorf("%d waits and streams of all callers are open, which is what this manager serves; ask for api.waits to be raised", c.waits))
	case !wait && who.calls >= callerCalls:
		return nil, c.over(who, comeBack, fmt.Errorf("%d calls are in progress, which is what one caller may have", who.calls))
	case !wait && c.calls >= allCalls:
		return nil, c.over(who, comeBack, fmt.Errorf("%d calls of all callers are in progress, which is what this manager does at once", c.calls))
	case wait:
		who.waits++
		c.waits++
	default:
		who.calls++
		c.calls++
	}
	return &call{callers: c, who: who, wait: wait}, nil
}

// over is the error of a caller that is over a limit. mu is held.
func (c *callers) over(who *caller, pause time.Duration, why error) error {
	if now := time.Now(); now.Sub(who.told) >= overTold {
		who.told = now
		c.log.Warn("a caller of the API is over its limit", "caller", who.name, "reason", why)
	}
	return tooMuch(pause, why)
}

// tooMuch says that a call is over a limit, and when to try again: in whole seconds, which is what the header has.
func tooMuch(pause time.Duration, why error) *connect.Error {
	err := connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("over a limit: %w", why))
	err.Meta().Set("Retry-After", strconv.Itoa(max(1, int((pause+time.Second-1)/time.Second))))
	return err
}

// call is one call that counts.
type call struct {
	callers        *callers
	who            *caller
	wait           bool
	bytes, follows int // guarded by the callers' mutex
}

// end takes the call away.
func (c *call) end() {
	c.callers.mu.Lock()
	defer c.callers.mu.Unlock()
	if c.wait {
		c.who.waits--
		c.callers.waits--
	} else {
		c.who.calls--
		c.callers.calls--
	}
	c.callers.bytes -= c.bytes
	c.callers.follows -= c.follows
	c.who.follows -= c.follows
}

// take counts bytes of the body.
func (c *call) take(n int) error {
	c.callers.mu.Lock()
	defer c.callers.mu.Unlock()
	if c.callers.bytes+n > maxBodies {
		return c.callers.over(c.who, comeBack, errors.New("the requests that are being read are as large together as this manager takes at once"))
	}
	c.bytes += n
	c.callers.bytes += n
	return nil
}

// follow counts tasks that the call follows from now on; its body has been read and is counted no more.
func (c *call) follow(n int) error {
	if c == nil { // outside of a server
		return nil
	}
	c.callers.mu.Lock()
	defer c.callers.mu.Unlock()
	c.callers.bytes -= c.bytes
	c.bytes = 0
	switch {
	case c.who.follows+n > callerFollows:
		return c.callers.over(c.who, comeBack, fmt.Errorf("%d tasks are followed already, and one caller may follow %d", c.who.follows, callerFollows))
	case c.callers.follows+n > allFollows:
		return c.callers.over(c.who, comeBack, fmt.Errorf("%d tasks are followed already by all callers, and this manager follows %d", c.callers.follows, allFollows))
	}
	c.follows += n
	c.who.follows += n
	c.callers.follows += n
	return nil
}

type callKey struct{}

// callOf returns the call of a context; nil outside of a server.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// counted is the body of a request, as far as it has been read.
type counted struct {
	io.ReadCloser
	call *call
}

func (b *counted) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if over := b.call.take(n); over != nil {
		return 0, over
	}
	return n, err
}

// limited lets a call through to the handler when its caller is within its limits.
func (c *callers) limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served, err := c.begin(callerOf(r.Context()), isWait(r.URL.Path))
		if err != nil {
			refuse(w, r, connectError(err))
			return
		}
		defer served.end()
		r = r.WithContext(context.WithValue(r.Context(), callKey{}, served))
		if r.Body != nil {
			r.Body = &counted{ReadCloser: r.Body, call: served}
		}
		next.ServeHTTP(w, r)
	})
}
