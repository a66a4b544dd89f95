package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Paths of the site that the steps name.
const (
	pathSlow    = "/slow.xml"
	pathStuck   = "/stuck.xml"
	pathNotFeed = "/login.html"
)

// slowness is how long the slow feed thinks.
const slowness = 1500 * time.Millisecond

// site is a web server of our own with feeds of all sorts.
type site struct {
	address string
	server  *http.Server
	// stuckAsked is closed when the stuck feed has been asked for the first time; it does not answer that request.
	stuckAsked chan struct{}

	mu        sync.Mutex
	asked     map[string]int
	unchanged int // answers of 304
}

// openSite opens a port of the loopback network. serve answers on it.
func openSite(ctx context.Context) (*site, net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("open a port for the demonstration's site: %w", err)
	}
	s := &site{address: "http://" + listener.Addr().String(), stuckAsked: make(chan struct{}), asked: map[string]int{}}
	s.server = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 5 * time.Second}
	return s, listener, nil
}

// serve answers until close.
func (s *site) serve(listener net.Listener) error {
	if err := s.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the demonstration's site: %w", err)
	}
	return nil
}

// close ends serve and every answer in progress.
func (s *site) close() { _ = s.server.Close() } // there is nothing left to lose

func (s *site) url(path string) string { return s.address + path }

// counts says how many requests the site has had, and how many it has answered with 304.
func (s *site) counts() (asked, unchanged int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.asked {
		asked += n
	}
	return asked, s.unchanged
}

// note counts a request and returns which one of its path it is, from 1.
func (s *site) note(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[path]++
	return s.asked[path]
}

func (s *site) handler() http.Handler {
	mux := http.NewServeMux()
	page := func(path, contentType, body string) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { answer(w, contentType, body) })
	}
	page("/rss.xml", "application/rss+xml", rss("RSS", 3))
	page("/atom.xml", "application/atom+xml", atom())
	page("/feed.json", "application/feed+json", jsonFeed())
	page("/charset.xml", "application/rss+xml; charset=windows-1251", rss("Grüße aus Köln", 2))
	page("/new-place.xml", "application/rss+xml", rss("Moved", 2))
	page("/broken.xml", "application/rss+xml", cutRSS())
	page(pathNotFeed, "text/html", "<!doctype html><html><head><title>Log in</title></head><body><form>Password</form></body></html>")
	mux.Handle("GET /old-place.xml", http.RedirectHandler("/new-place.xml", http.StatusMovedPermanently))
	mux.HandleFunc("GET /etag.xml", s.etag)
	mux.HandleFunc("GET "+pathSlow, func(w http.ResponseWriter, r *http.Request) {
		if pause(r.Context(), slowness) {
			answer(w, "application/rss+xml", rss("Slow", 1))
		}
	})
	mux.HandleFunc("GET "+pathStuck, s.stuck)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != pathStuck {
			s.note(r.URL.Path)
		}
		mux.ServeHTTP(w, r)
	})
}

// etag answers with 304 when the reader knows the feed already.
func (s *site) etag(w http.ResponseWriter, r *http.Request) {
	const tag = `"demo-1"`
	w.Header().Set("ETag", tag)
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		s.mu.Lock()
		s.unchanged++
		s.mu.Unlock()
		w.WriteHeader(http.StatusNotModified)
		return
	}
	answer(w, "application/rss+xml", rss("ETag", 2))
}

// stuck never answers the first request, and every other one at once.
func (s *site) stuck(w http.ResponseWriter, r *http.Request) {
	if s.note(pathStuck) == 1 {
		close(s.stuckAsked)
		<-r.Context().Done()
		return
	}
	answer(w, "application/rss+xml", rss("Stuck at first", 2))
}

func answer(w http.ResponseWriter, contentType, body string) {
	w.Header().Set("Content-Type", contentType)
	_, _ = io.WriteString(w, body) // a reader that has gone needs no answer
}

// pause waits for d and reports whether ctx still lives.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
