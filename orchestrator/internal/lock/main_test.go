package lock_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/protocol/testenv"
)

// roleVariable makes the test binary a process that contends for a lock: see contention_test.go.
const roleVariable = "DROVER_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "contender" {
		os.Exit(contend(os.Args[1:]))
	}
	goleak.VerifyTestMain(m, testenv.LateDials())
}
