package api_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// certify writes a certificate for this machine and returns who believes in it.
func certify(t *testing.T, certificate, key string) *x509.CertPool {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "drover"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return roots
}

// journal is a log that tests read.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func secretOf(role api.Role) string { return "a-secret-of-" + string(role) + "-0123456789" }

// remote is a server on the network.
func remote(t *testing.T, w *world, log io.Writer) (address string, roots *x509.CertPool) {
	t.Helper()
	dir := testenv.ShortDir(t)
	r := &api.Remote{Address: fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(t)), Certificate: filepath.Join(dir, "crt.pem"), Key: filepath.Join(dir, "key.pem")}
	roots = certify(t, r.Certificate, r.Key)
	for _, role := range []api.Role{api.RoleSubmit, api.RoleObserve, api.RoleOperate} {
		r.Tokens = append(r.Tokens, api.NewToken(string(role), role, secretOf(role)))
	}
	serve(t, api.New(api.Options{Socket: w.socket, Tasks: w.tasks, Control: &panel{}, Remote: r, Log: slog.New(slog.NewTextHandler(log, nil))}))
	return "https://" + r.Address, roots
}

// Over the network each role may do what it is for and nothing else; without a token, with a wrong one or without TLS nobody gets
// in; what was refused is in the log, and no token is.
func TestRoles(t *testing.T) {
	t.Parallel()
	w, log := newWorld(t), &journal{}
	address, roots := remote(t, w, log)
	// A stranger who knocks for ever is logged now and then, and hides nobody else's refusal.
	stranger, err := client.Dial(address, client.WithTLS(&tls.Config{RootCAs: roots}), client.WithToken("a-secret-of-nobody-0123456789"))
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		_, _ = stranger.Get(t.Context(), task.ID{Queue: "misbehave", Key: "x"})
	}
	_ = stranger.Close()
	if n := strings.Count(log.String(), "not known here"); n == 0 || n > 20 {
		t.Errorf("50 refusals of a stranger gave %d lines, want some and not all", n)
	}
	for name, c := range map[string]struct {
		token                           string
		submit, get, cancel, status, op connect.Code // 0 is allowed
	}{
		"submit":   {secretOf(api.RoleSubmit), 0, 0, 0, connect.CodePermissionDenied, connect.CodePermissionDenied},
		"observe":  {secretOf(api.RoleObserve), connect.CodePermissionDenied, 0, connect.CodePermissionDenied, 0, connect.CodePermissionDenied},
		"operate":  {secretOf(api.RoleOperate), 0, 0, 0, 0, 0},
		"wrong":    {"a-secret-of-nobody-0123456789", connect.CodeUnauthenticated, connect.CodeUnauthenticated, connect.CodeUnauthenticated, connect.CodeUnauthenticated, connect.CodeUnauthenticated},
		"no token": {"", connect.CodeUnauthenticated, connect.CodeUnauthenticated, connect.CodeUnauthenticated, connect.CodeUnauthenticated, connect.CodeUnauthenticated},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := []client.DialOption{client.WithTLS(&tls.Config{RootCAs: roots}), client.WithToken(c.token)}
			tasks, err := client.Dial(address, options...)
			if err != nil {
				t.Fatal(err)
			}
			control, err := client.Control(address, options...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tasks.Close(); _ = control.Close() })
			known, err := w.tasks.Submit(t.Context(), "misbehave", map[string]any{"do": "return", "value": name}, client.Delay(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			expect := func(what string, want connect.Code, err error) {
				t.Helper()
				if want == 0 && err != nil || want != 0 && !errors.Is(err, client.ErrForbidden) && connect.CodeOf(err) != want {
					t.Errorf("%s: %v, want code %d", what, err, want)
				}
			}
			_, err = tasks.Submit(t.Context(), "misbehave", map[string]any{"do": "return", "value": name + " again"})
			expect("submit", c.submit, err)
			_, err = tasks.Get(t.Context(), known.ID)
			expect("get", c.get, err)
			_, err = tasks.Cancel(t.Context(), known.ID)
			expect("cancel", c.cancel, err)
			_, err = control.Status(t.Context(), &apiv1.StatusRequest{})
			expect("status", c.status, err)
			_, err = control.Pause(t.Context(), &apiv1.PauseRequest{Queue: "misbehave"})
			if c.op == 0 {
				if code := connect.CodeOf(err); code == connect.CodePermissionDenied || code == connect.CodeUnauthenticated {
					t.Errorf("who operates may not pause: %v", err)
				}
			} else {
				expect("pause", c.op, err)
			}
		})
	}
	t.Run("without TLS", func(t *testing.T) {
		t.Parallel()
		if _, err := client.Dial("http://"+strings.TrimPrefix(address, "https://"), client.WithToken("x")); err == nil {
			t.Error("a token would be sent in the clear")
		}
		answer, err := http.Post("http://"+strings.TrimPrefix(address, "https://")+"/drover.api.v1.TaskService/Get", "application/json", strings.NewReader("{}")) //nolint:gosec // a test's own address
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode != http.StatusBadRequest {
				t.Errorf("plain HTTP is answered with %s", answer.Status)
			}
		}
	})
	t.Run("a certificate that nobody vouches for", func(t *testing.T) {
		t.Parallel()
		c, err := client.Dial(address, client.WithToken(secretOf(api.RoleOperate)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := c.Submit(ctx, "misbehave", map[string]any{"do": "return"}); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("it is believed: %v", err)
		}
	})
	t.Cleanup(func() {
		text := log.String()
		if !strings.Contains(text, "a call of the API was refused") || !strings.Contains(text, "token=observe") {
			t.Errorf("what was refused is not in the log:\n%s", text)
		}
		if strings.Contains(text, "a-secret") {
			t.Error("a token is in the log")
		}
	})
}

// A certificate that was renewed on disk is shown to the next caller; one that cannot be read leaves the old one.
func TestCertificateIsRenewed(t *testing.T) {
	t.Parallel()
	dir := testenv.ShortDir(t)
	certificate, key := filepath.Join(dir, "crt.pem"), filepath.Join(dir, "key.pem")
	certify(t, certificate, key)
	pair, err := api.LoadKeyPair(certificate, key, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	shown := func() string {
		t.Helper()
		c, err := pair()
		if err != nil {
			t.Fatal(err)
		}
		return string(c.Certificate[0])
	}
	first := shown()
	certify(t, certificate, key)
	later := time.Now().Add(time.Minute)
	if err := os.Chtimes(certificate, later, later); err != nil {
		t.Fatal(err)
	}
	second := shown()
	if second == first {
		t.Error("the old certificate is still shown")
	}
	if err := os.WriteFile(key, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(key, later.Add(time.Minute), later.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if shown() != second {
		t.Error("a key that cannot be read took the certificate away")
	}
}
