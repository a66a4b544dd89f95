package child_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// envRole makes the test binary a worker that starts a child and is killed.
const envRole = "CHILD_TEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(envRole) != "" {
		parent()
		return
	}
	goleak.VerifyTestMain(m)
}
