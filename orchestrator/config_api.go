package orchestrator

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// minToken is the shortest token that is taken, in bytes: one that cannot be guessed.
const minToken = 20

// mostWaits is the most that can be written for waits: each takes some ten thousand bytes.
const mostWaits = 100_000

// defaultAPI is not on the network.
func defaultAPI() APIConfig {
	a := api.DefaultAllowance()
	return APIConfig{Rate: a.Rate, CallerWaits: a.CallerWaits, Waits: a.Waits}
}

// allowance is what callers may ask for.
func (a APIConfig) allowance() api.Allowance {
	return api.Allowance{Rate: a.Rate, CallerWaits: a.CallerWaits, Waits: a.Waits}
}

// waits reads a number of waits.
func waits(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostWaits {
		return 0, fmt.Errorf("is not a number from 1 to %d", mostWaits)
	}
	return n, nil
}

// api reads how the API is reached over the network, and the limits of its callers.
func (d *decoder) api(path string, n *yaml.Node, a *APIConfig) {
	a.Tokens = map[string]TokenConfig{}
	d.section(path, n, map[string]reader{
		"listen":      d.into(&a.Listen, "HOST:PORT"),
		"certificate": d.into(&a.Certificate, "a path"),
		"key":         d.into(&a.Key, "a path"),
		"origins": func(path string, n *yaml.Node) {
			a.Origins = d.list(path, n, "a list of origins, such as [https://app.example.org]")
		},
		"rate":         parsed(d, &a.Rate, "calls in a period, such as 2000/s, or off", settings.ParseRate),
		"caller_waits": parsed(d, &a.CallerWaits, "a number", waits),
		"waits":        parsed(d, &a.Waits, "a number", waits),
		"tokens": func(path string, n *yaml.Node) {
			for _, e := range d.entries(path, n) {
				var t TokenConfig
				d.section(e.path, e.value, map[string]reader{
					"role": d.into(&t.Role, rolesAllowed),
					"file": d.into(&t.File, "a path"),
					"token": func(path string, n *yaml.Node) {
						d.add(n, ConfigProblem{Path: path, Reason: "does not belong into this file; write it into a file that only the manager can read, and name that with file"})
					},
				})
				a.Tokens[e.key] = t
			}
		},
	})
}

const rolesAllowed = "one of observe, operate, submit"

// api checks how the API is reached over the network: with TLS and tokens, or not at all.
func (k *checker) api() {
	a := k.c.API
	if a.Listen == "" {
		if a.Certificate != "" || a.Key != "" || len(a.Tokens) > 0 || len(a.Origins) > 0 {
			k.add("api.listen", "", "is missing, so the API is not on the network", "HOST:PORT, or no section api at all")
		}
		return
	}
	host, port, err := net.SplitHostPort(a.Listen)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" {
		k.add("api.listen", a.Listen, "is not an address to listen on", "HOST:PORT, such as 0.0.0.0:7171")
	}
	for key, path := range map[string]string{"certificate": a.Certificate, "key": a.Key} {
		if path == "" {
			k.add("api."+key, "", "is missing; the API is on the network with TLS only", "a PEM file")
		}
	}
	for _, origin := range a.Origins {
		if u, err := url.Parse(origin); err != nil || u.Scheme == "" || u.Host == "" || u.Scheme+"://"+u.Host != origin || strings.Contains(origin, "*") {
			k.add("api.origins", origin, "is not an origin", "SCHEME://HOST or SCHEME://HOST:PORT, in full")
		}
	}
	if len(a.Tokens) == 0 {
		k.add("api.tokens", "", "has none, so nobody could call", "NAME: {role: operate, file: PATH}")
	}
	for _, name := range sortedKeys(a.Tokens) {
		at, t := join("api.tokens", name), a.Tokens[name]
		k.name(at, name)
		if _, err := api.ParseRole(t.Role); err != nil {
			k.add(join(at, "role"), t.Role, "is not a role", rolesAllowed)
		}
		if t.File == "" {
			k.add(join(at, "file"), "", "is missing", "a path")
		}
	}
}

// remote reads the tokens. Their files are no part of the configuration that is checked before anything starts.
func (a APIConfig) remote() (*api.Remote, error) {
	if a.Listen == "" {
		return nil, nil
	}
	r := &api.Remote{Address: a.Listen, Certificate: a.Certificate, Key: a.Key, Origins: a.Origins}
	for _, name := range sortedKeys(a.Tokens) {
		role, err := api.ParseRole(a.Tokens[name].Role)
		if err != nil {
			return nil, err
		}
		secret, err := readToken(a.Tokens[name].File)
		if err != nil {
			return nil, fmt.Errorf("read api.tokens.%s.file %s: %w", name, a.Tokens[name].File, err)
		}
		r.Tokens = append(r.Tokens, api.NewToken(name, role, secret))
	}
	return r, nil
}

func readToken(path string) (string, error) {
	f, err := os.Open(path) //nolint:gosec // the operator's own configuration
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	secret, err := readSecret(f)
	if err == nil && len(secret) < minToken {
		err = fmt.Errorf("it is shorter than %d characters and could be guessed; make one with: openssl rand -hex 32", minToken)
	}
	return secret, err
}
