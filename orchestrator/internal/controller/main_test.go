package controller_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/drover-jobs/drover/protocol/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, testenv.LateDials()) }
