package session_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/console/internal/session"
)

// The token and the certificates are read for a manager on the network only, and what is wrong with them is said.
func TestRemoteOptions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		address, token, ca string
		options            int
		says               string
	}{
		"socket":    {"unix:/a.sock", "none", "none", 0, ""},
		"neither":   {"https://h:1", "", "", 0, ""},
		"token":     {"https://h:1", "token", "", 1, ""},
		"no token":  {"https://h:1", "none", "", 0, "DROVER_TOKEN_FILE"},
		"no file":   {"https://h:1", "", "none", 0, "DROVER_CA_FILE"},
		"not a PEM": {"https://h:1", "token", "token", 0, "no certificate"},
	} {
		options, err := session.RemoteOptions(c.address, func(name string) string {
			return map[string]string{"DROVER_TOKEN_FILE": c.token, "DROVER_CA_FILE": c.ca}[name]
		}, func(name string) ([]byte, error) {
			if name == "token" {
				return []byte("secret\n"), nil
			}
			return nil, errors.New("no such file")
		})
		if len(options) != c.options || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %d options, %v", name, len(options), err)
		}
	}
}
