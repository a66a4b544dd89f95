package client_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/protocol/testenv"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		testenv.StopSharedManager()
		os.Exit(code)
	}))
}
