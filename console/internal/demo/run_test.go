package demo

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/drover-jobs/drover/protocol/testenv"
)

// The demonstration holds with the programs as they are now.
func TestDemonstration(t *testing.T) {
	t.Parallel()
	programs := testenv.BuildBinaries(t, "./orchestrator/cmd/droverd", "./console/cmd/drover", "./plugins/feed-pull", "./plugins/sdk/sdktest/misbehave")
	bin := testenv.ShortDir(t)
	if err := os.Mkdir(filepath.Join(bin, "plugins"), 0o700); err != nil {
		t.Fatal(err)
	}
	for i, name := range []string{"droverd", "drover", filepath.Join("plugins", "feed-pull")} {
		if err := os.Symlink(programs[i], filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	err := Run(t.Context(), Options{
		Bin: bin, Config: filepath.Join(testenv.ModuleRoot(t), "configs", "dev.yaml"), Misbehave: programs[3], Out: &out,
	})
	if err != nil {
		t.Fatalf("%s\n%v", out.String(), err)
	}
}
