package testenv_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/protocol/testenv"
)

// fatal is a test that records why it was ended instead of failing.
type fatal struct {
	testing.TB
	why string
}

func (f *fatal) Helper() {}

func (f *fatal) Fatalf(format string, args ...any) { f.Fatal(fmt.Sprintf(format, args...)) }

func (f *fatal) Fatal(args ...any) {
	f.why = fmt.Sprint(args...)
	runtime.Goexit()
}

// reason runs the function as the body of a test and returns why that was ended.
func reason(t *testing.T, body func(t testing.TB)) string {
	t.Helper()
	f, done := &fatal{TB: t}, make(chan struct{})
	go func() {
		defer close(done)
		body(f)
	}()
	<-done
	return f.why
}

// A program of the module is built, runs, and is not built twice by one test process.
func TestBuildBinaries(t *testing.T) {
	t.Parallel()
	programs := testenv.BuildBinaries(t, "./protocol/testenv/testdata/hello", "protocol/testenv/testdata/hello")
	if programs[0] != programs[1] || filepath.Base(programs[0]) != "hello" || !filepath.IsAbs(programs[0]) {
		t.Errorf("got %q, want twice one absolute path that ends in hello", programs)
	}
	out, err := exec.Command(programs[0]).CombinedOutput()
	if err != nil || string(out) != "hello, cgo 0\n" {
		t.Errorf("the program wrote %q, %v", out, err)
	}
}

// A program that does not compile ends the test with what the compiler said.
func TestBuildBinariesBroken(t *testing.T) {
	t.Parallel()
	why := reason(t, func(t testing.TB) { testenv.BuildBinaries(t, "./protocol/testenv/testdata/absent") })
	if !strings.Contains(why, "build protocol/testenv/testdata/absent") || !strings.Contains(why, "directory not found") {
		t.Errorf("the test was ended with %q", why)
	}
}

// A server that is not installed ends the test with what to do about it. (It changes PATH, so it runs alone.)
func TestMissingServer(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	tests := map[string]func(testing.TB){
		"redis-server": func(t testing.TB) { testenv.StartRedis(t, testenv.RedisOptions{}) },
		"memcached":    func(t testing.TB) { testenv.StartMemcached(t) },
	}
	for program, start := range tests {
		why := reason(t, start)
		if !strings.Contains(why, program+" is not installed") || !strings.Contains(why, "make test") {
			t.Errorf("without %s the test was ended with %q", program, why)
		}
	}
}
