package orchestrator_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/protocol/testenv"
)

// What somebody else writes in a module of their own, as the README says.
const (
	outsideModule = `module example.org/shop

go 1.26.0

require github.com/drover-jobs/drover v0.0.0

replace github.com/drover-jobs/drover => %s
`
	outsideWorker = `package main

import (
	"context"

	"github.com/drover-jobs/drover/plugins/sdk"
)

type greeting struct {
	Name string ` + "`json:\"name\"`" + `
}

func main() {
	sdk.Serve(sdk.Worker{Name: "misbehave", Version: "1.0.0"}, func(ctx context.Context, in greeting) (string, error) {
		return "hello " + in.Name, nil
	})
}
`
	outsideClient = `package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
)

func main() {
	c, err := client.Dial(os.Args[1])
	if err != nil {
		panic(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	answer, err := client.Call[string](ctx, c, "misbehave", map[string]string{"name": "Ada"})
	if err != nil {
		panic(err)
	}
	fmt.Print(answer)
}
`
)

// A worker and a client in a module of somebody else's are built from what the README says, without Redis in either, and work with a
// real manager.
func TestOutsideModule(t *testing.T) {
	t.Parallel()
	root, dir := testenv.ModuleRoot(t), t.TempDir()
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		"go.mod": fmt.Sprintf(outsideModule, root), "go.sum": string(sums), "worker/main.go": outsideWorker, "app/main.go": outsideClient,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := func(arguments ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "go", arguments...) //nolint:gosec // the test's own arguments
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(arguments, " "), err, out)
		}
		return string(out)
	}
	command("build", "-o", filepath.Join(dir, "bin")+"/", "./worker", "./app")
	for _, module := range []string{"redis", "asynq", "memcache", "readline"} {
		if strings.Contains(command("list", "-deps", "./..."), module) {
			t.Errorf("the client or the worker pulls in %s", module)
		}
	}
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "")
	m.replaceWorker(filepath.Join(dir, "bin", "worker"))
	m.start()
	out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "bin", "app"), "unix:"+m.socket()).CombinedOutput() //nolint:gosec // just built
	if err != nil || string(out) != "hello Ada" {
		t.Errorf("the application says %q, %v", out, err)
	}
}
