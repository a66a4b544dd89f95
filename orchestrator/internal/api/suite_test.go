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
	t.Run("suite", func(t *testing.T) {
		clienttest.Run(t, func(t *testing.T) clienttest.Env {
			return clienttest.Env{Client: dial(t, w.socket), Queue: "misbehave"}
		})
	})
}
