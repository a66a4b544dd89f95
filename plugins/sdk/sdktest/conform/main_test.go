package conform_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if flaw, isWorker := os.LookupEnv(flawVariable); isWorker {
		os.Exit(flawed(flaw))
	}
	goleak.VerifyTestMain(m)
}
