package session

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"strings"

	"github.com/drover-jobs/drover/protocol/client"
)

// Names of the variables for a manager that is reached over the network.
const (
	EnvTokenFile = "DROVER_TOKEN_FILE" // a file that holds the bearer token
	EnvCAFile    = "DROVER_CA_FILE"    // certificates to believe in, in PEM, instead of the system's
)

// RemoteOptions is how a manager at an address is spoken to. For a socket there is nothing to say.
func RemoteOptions(address string, getenv func(string) string, readFile func(string) ([]byte, error)) ([]client.DialOption, error) {
	if !strings.HasPrefix(address, "https:") {
		return nil, nil
	}
	var options []client.DialOption
	if name := getenv(EnvTokenFile); name != "" {
		text, err := readFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the token that %s names: %w", EnvTokenFile, err)
		}
		options = append(options, client.WithToken(strings.TrimSpace(string(text))))
	}
	if name := getenv(EnvCAFile); name != "" {
		text, err := readFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the certificates that %s names: %w", EnvCAFile, err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s names %s, which holds no certificate in PEM", EnvCAFile, name)
		}
		options = append(options, client.WithTLS(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}))
	}
	return options, nil
}
