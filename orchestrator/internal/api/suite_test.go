package api_test

import (
	"testing"

	"github.com/drover-jobs/drover/protocol/client/clienttest"
)

// The client over the API keeps every promise of the client library.
func TestSuite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serve(t, w.server(0))
	clienttest.Run(t, func(t *testing.T) clienttest.Env {
		t.Helper()
		return clienttest.Env{Client: dial(t, w.socket), Queue: "misbehave"}
	})
}
