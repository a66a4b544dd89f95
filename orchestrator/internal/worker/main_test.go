package worker_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// roleVariable makes the test binary another program: a worker with a flaw, or a small manager.
const roleVariable = "DROVER_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		goleak.VerifyTestMain(m)
	case roleManager:
		os.Exit(manage(os.Args[1:]))
	default:
		fmt.Fprintln(os.Stderr, "the worker's role is", role)
		serve(role)
	}
}
