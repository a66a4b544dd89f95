package bridge_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// envProgram makes the test binary a program to be run by a worker, instead of the tests.
const envProgram = "BRIDGE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if how := os.Getenv(envProgram); how != "" {
		program(how)
		return
	}
	goleak.VerifyTestMain(m)
}
