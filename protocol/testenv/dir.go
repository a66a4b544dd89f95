package testenv

import (
	"os"
	"path/filepath"
	"testing"
)

// maxTempRoot is the longest temporary root, in bytes, that leaves room for a socket's name: the path of a Unix
// socket must stay under 108 bytes.
const maxTempRoot = 48

// ShortDir makes a directory (mode 0700) whose path is short enough for Unix sockets, which that of t.TempDir
// often is not. It is removed when the test ends.
func ShortDir(t testing.TB) string {
	t.Helper()
	root := os.TempDir()
	if len(root) > maxTempRoot {
		root = "/tmp"
	}
	dir, err := os.MkdirTemp(root, "drv")
	if err != nil {
		t.Fatalf("make a short temporary directory: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the temporary directory %s: %v", dir, err)
		}
	})
	return dir
}

// ModuleRoot is the absolute path of the folder that holds go.mod, found upwards from the test's own folder.
func ModuleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatalf("find the working directory: %v", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test's folder: run the tests inside the repository")
		}
		dir = parent
	}
}
