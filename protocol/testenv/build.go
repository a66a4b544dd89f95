package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// built remembers what this test process has built.
//
//nolint:gochecknoglobals // one build per test process is the purpose; tests share nothing else to hang it on
var built sync.Map // folder of a main package -> func() (string, error)

// BuildBinaries builds main packages of this module and returns the absolute paths of the programs, in the
// same order. A package is named by its folder from the module's root, such as "./plugins/feed-pull"; a program
// is named like the folder. Each is built once per test process, without cgo, under bin/test, which all test
// processes share: the second one finds it current. A failed build fails the test with the compiler's words.
func BuildBinaries(t testing.TB, folders ...string) []string {
	t.Helper()
	root := ModuleRoot(t)
	programs := make([]string, 0, len(folders))
	for _, folder := range folders {
		folder = path.Clean(filepath.ToSlash(folder))
		once, _ := built.LoadOrStore(folder, sync.OnceValues(func() (string, error) { return build(root, folder) }))
		program, err := once.(func() (string, error))()
		if err != nil {
			t.Fatal(err)
		}
		programs = append(programs, program)
	}
	return programs
}

// build holds a lock between processes, since two linkers must not write one file.
func build(root, folder string) (program string, err error) {
	dir := filepath.Join(root, "bin", "test", strings.ReplaceAll(folder, "/", "."))
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", fmt.Errorf("make a folder for the program of %s: %w", folder, err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("open the build lock of %s: %w", folder, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("wait for another build of %s: %w", folder, err)
	}
	program = filepath.Join(dir, path.Base(folder))
	cmd := exec.Command("go", "build", "-o", program, "./"+folder)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", folder, err, out)
	}
	return program, nil
}
