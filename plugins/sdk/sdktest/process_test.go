package sdktest_test

import (
	"testing"

	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// The workers that come with the project keep every promise as processes too.
func TestProgramsConform(t *testing.T) {
	t.Parallel()
	programs := testenv.BuildBinaries(t, "plugins/sdk/sdktest/noop", "plugins/sdk/sdktest/misbehave", "plugins/exec")
	t.Run("noop", func(t *testing.T) {
		t.Parallel()
		sdktest.ConformCommand(t, programs[:1], []any{`{}`, `{"any": "thing"}`})
	})
	t.Run("misbehave", func(t *testing.T) {
		t.Parallel()
		sdktest.ConformCommand(t, programs[1:2], []any{`{"do": "return", "value": 7}`, `{"do": "fail"}`, `{"do": "progress", "ms": 100}`},
			sdktest.Slow(t, `{"do": "sleep", "ms": 60000}`), sdktest.Noisy(t, map[string]any{"do": "print", "bytes": 8 << 20}),
			sdktest.Panic(t, `{"do": "panic", "note": "as asked"}`), sdktest.Slots(3))
	})
	t.Run("exec", func(t *testing.T) {
		t.Parallel()
		const script = `case $(cat) in *slow*) sleep 60 ;; *noisy*) head -c 3000000 /dev/zero >&2 ;; *panic*) kill -9 $$ ;; esac; echo '{}'`
		sdktest.ConformCommand(t, []string{programs[2], "--name", "shell", "--once", "--slots", "2", "--", "sh", "-c", script}, []any{`{}`},
			sdktest.Slow(t, `{"do": "slow"}`), sdktest.Noisy(t, `{"do": "noisy"}`), sdktest.Panic(t, `{"do": "panic"}`))
	})
}
