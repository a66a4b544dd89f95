package orchestrator_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every script is made by package broker, which makes what it publishes arrive in a Cluster; in a Cluster, and nowhere else, another
// one would be silent.
func TestLayoutOfScripts(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"../orchestrator", "../protocol", "../plugins"} {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			own := strings.HasPrefix(path, "../protocol/broker/") || strings.HasSuffix(path, "_test.go")
			if err != nil || d.IsDir() || own || !strings.HasSuffix(path, ".go") {
				return err
			}
			text, err := os.ReadFile(path)
			if strings.Contains(string(text), "redis."+"NewScript(") {
				t.Errorf("%s makes a script with redis.NewScript: use broker.Script", path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
