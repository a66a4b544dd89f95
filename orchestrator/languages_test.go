package orchestrator_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/protocol/testenv"
)

// onNetwork puts a manager's API on the network, with a certificate of its own and a token of the role submit, and returns its
// address and the variables that name them.
func (m *manager) onNetwork() (address string, env []string) {
	m.t.Helper()
	certificate, key, token := filepath.Join(m.dir, "crt.pem"), filepath.Join(m.dir, "key.pem"), filepath.Join(m.dir, "token")
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		m.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "drover"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &secret.PublicKey, secret)
	if err != nil {
		m.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		m.t.Fatal(err)
	}
	config, err := os.ReadFile(m.config)
	if err != nil {
		m.t.Fatal(err)
	}
	listen := fmt.Sprintf("127.0.0.1:%d", testenv.FreePort(m.t))
	for path, text := range map[string][]byte{
		certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		token:       []byte(rand.Text() + "\n"),
		m.config: fmt.Appendf(config, "api: {listen: %q, certificate: %q, key: %q, tokens: {app: {role: submit, file: %q}}}\n",
			listen, certificate, key, token),
	} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			m.t.Fatal(err)
		}
	}
	return "https://" + listen, []string{"DROVER_TOKEN_FILE=" + token, "DROVER_CA_FILE=" + certificate}
}

// The small clients of protocol/client/examples work as they stand, over the socket and over the network: they print the result, and
// say what failed and that the time ran out, each with its exit code.
func TestClientsInOtherLanguages(t *testing.T) {
	t.Parallel()
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "drain_timeout: 100ms", "slots: 8")
	network, secrets := m.onNetwork()
	m.start()
	examples := filepath.Join(testenv.ModuleRoot(t), "protocol", "client", "examples")
	for _, language := range []struct{ name, program, pack, script string }{
		{"sh", "curl", "curl", "sh/submit.sh"},
		{"php", "php", "php-cli", "php/submit.php"},
		{"python", "python3", "python3", "python/submit.py"},
		{"node", "node", "nodejs", "node/submit.mjs"},
	} {
		for where, address := range map[string]string{"socket": "unix:" + m.socket(), "network": network} {
			t.Run(language.name+" over the "+where, func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath(language.program); err != nil {
					t.Fatalf("%s is not installed: run `make test`, which installs what the tests need, or install the package %s", language.program, language.pack)
				}
				run := func(arguments ...string) (code int, stdout, stderr string) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					program := language.program
					if language.name == "sh" {
						program = "sh"
					}
					cmd := exec.CommandContext(ctx, program, append([]string{filepath.Join(examples, language.script)}, arguments...)...) //nolint:gosec // of this repository
					cmd.Env = append(os.Environ(), "DROVER_ADDRESS="+address)
					if where == "network" {
						cmd.Env = append(cmd.Env, secrets...)
					}
					var out, problems bytes.Buffer
					cmd.Stdout, cmd.Stderr = &out, &problems
					var exit *exec.ExitError
					if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
						t.Fatalf("run %s: %v", language.script, err)
					}
					return cmd.ProcessState.ExitCode(), strings.TrimSpace(out.String()), problems.String()
				}
				key := language.name + where
				for name, c := range map[string]struct {
					payload, seconds string
					code             int
					out, problem     string
				}{
					"result":  {`{"do":"return","value":{"of":"` + key + ` ä"}}`, "30", 0, `{"of":"` + key + ` ä"}`, ""},
					"failure": {`{"do":"permanent","note":"` + key + `"}`, "30", 1, "", "STATE_DEAD"},
					"time":    {`{"do":"sleep","ms":20000,"value":"` + key + `"}`, "1", 4, "", "not done"},
					"refused": {`{"do":5}`, "5", 1, "", "invalid_argument"},
				} {
					if code, out, problem := run("misbehave", c.payload, c.seconds); code != c.code || out != c.out || !strings.Contains(problem, c.problem) {
						t.Errorf("%s: exit code %d, %q, %q; want %d, %q and %q", name, code, out, problem, c.code, c.out, c.problem)
					}
				}
				if code, _, problem := run("none", `{}`); code != 1 || !strings.Contains(problem, "none") {
					t.Errorf("a queue that is not there: exit code %d, %q", code, problem)
				}
			})
		}
	}
}
