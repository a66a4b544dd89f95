package api

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/time/rate"
)

// Remote says how the API is reached over the network: always with TLS, and by those who have a token.
type Remote struct {
	Address          string // HOST:PORT
	Certificate, Key string // PEM files
	Tokens           []Token
	// Origins are whose web pages may call the API from a browser, such as https://app.example.org; none for nobody's.
	Origins []string
}

// Token is one bearer token. Only its sum is kept.
type Token struct {
	name string
	role Role
	sum  [sha256.Size]byte
}

// NewToken returns the token with that name and secret.
func NewToken(name string, role Role, secret string) Token {
	return Token{name: name, role: role, sum: sha256.Sum256([]byte(secret))}
}

// keyPair is a certificate that is read again when its files have changed, so that it can be renewed while the manager runs.
type keyPair struct {
	certificate, key string
	log              *slog.Logger

	mu      sync.Mutex
	pair    *tls.Certificate
	changed time.Time // of the newer file when it was read
	looked  time.Time
}

// lookEvery is how often the files of a certificate are looked at, at most.
const lookEvery = 10 * time.Second

// load reads the files.
func (p *keyPair) load() error {
	pair, err := tls.LoadX509KeyPair(p.certificate, p.key)
	if err != nil {
		return fmt.Errorf("read the certificate of the API (%s, %s): %w", p.certificate, p.key, err)
	}
	p.pair, p.changed = &pair, p.modified()
	return nil
}

// modified is when the newer of the files was changed; zero when that cannot be told.
func (p *keyPair) modified() time.Time {
	var latest time.Time
	for _, path := range []string{p.certificate, p.key} {
		if info, err := os.Stat(path); err == nil && info.ModTime().After(latest) {
			latest = info.ModTime()
		}
	}
	return latest
}

// get returns the certificate. One that cannot be read any more is used as it was.
func (p *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.looked) >= lookEvery {
		p.looked = now
		if !p.modified().Equal(p.changed) {
			if err := p.load(); err != nil {
				p.log.Warn("the old certificate stays", "error", err)
			}
		}
	}
	return p.pair, nil
}

// listenRemote opens the network's socket.
func listenRemote(r *Remote, log *slog.Logger) (net.Listener, error) {
	pair := &keyPair{certificate: r.Certificate, key: r.Key, log: log, looked: time.Now()}
	if err := pair.load(); err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", r.Address)
	if err != nil {
		return nil, fmt.Errorf("open the API's address: %w", err)
	}
	return tls.NewListener(bounded(l), &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: pair.get, NextProtos: []string{"h2", "http/1.1"}}), nil
}

// doorman lets in who has a token, to what its role allows.
type doorman struct {
	tokens []Token
	next   http.Handler
	log    *slog.Logger
	told   map[string]*rate.Limiter // by a token's name; "" is everybody without a known one
}

// refusalsLogged is how many refused calls of one token are logged at once; then it is one a second.
const refusalsLogged = 10

func (s *Server) doorman(next http.Handler) http.Handler {
	d := &doorman{tokens: s.options.Remote.Tokens, next: next, log: s.options.Log, told: map[string]*rate.Limiter{}}
	for _, t := range append([]Token{{}}, d.tokens...) {
		d.told[t.name] = rate.NewLimiter(rate.Every(time.Second), refusalsLogged)
	}
	return d
}

var (
	errNoToken    = errors.New("no token: send the header Authorization: Bearer TOKEN")
	errWrongToken = errors.New("the token is not known here")
)

// ServeHTTP implements http.Handler.
func (d *doorman) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == pathAlive || r.URL.Path == pathReady { // probes have no token, and learn nothing but that
		d.next.ServeHTTP(w, r)
		return
	}
	t, err := d.recognise(r.Header.Get("Authorization"))
	code := connect.CodeUnauthenticated
	if err == nil && !t.role.may(r.URL.Path) {
		code, err = connect.CodePermissionDenied, fmt.Errorf("the role %s does not allow %s", t.role, strings.TrimPrefix(r.URL.Path, "/"))
	}
	if err == nil {
		r.Header.Del("Authorization") // nothing behind the door needs it
		d.next.ServeHTTP(w, r.WithContext(known(r.Context(), "token "+t.name+" from "+r.RemoteAddr, "token "+t.name)))
		return
	}
	if d.told[t.name].Allow() { // each its own, so that a stranger who knocks for ever hides nobody else
		d.log.Warn("a call of the API was refused", "from", r.RemoteAddr, "token", t.name, "procedure", r.URL.Path, "error", err)
	}
	refuse(w, r, connect.NewError(code, err))
}

// recognise finds the token of a header. It takes as long for a wrong one as for a right one.
func (d *doorman) recognise(header string) (Token, error) {
	secret, ok := strings.CutPrefix(header, "Bearer ")
	if !ok || secret == "" {
		return Token{}, errNoToken
	}
	sum := sha256.Sum256([]byte(secret))
	found := -1
	for i := range d.tokens {
		if subtle.ConstantTimeCompare(sum[:], d.tokens[i].sum[:]) == 1 {
			found = i
		}
	}
	if found < 0 {
		return Token{}, errWrongToken
	}
	return d.tokens[found], nil
}
