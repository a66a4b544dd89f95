package orchestrator_test

import (
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// Each rule of the layout fails on a tree that breaks it, and says which package and why; a sound tree passes.
func TestLayoutRulesBite(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		path    string
		imports []string
		tests   []string
		change  func(*pkg)
		want    string // part of the only breach; empty for none
	}{
		{name: "protocol, sound", path: "protocol/client", imports: []string{"protocol/task"}, tests: []string{testSupport}},
		{name: "protocol knows the SDK", path: "protocol/client", imports: []string{"plugins/sdk"}, want: "stands alone"},
		{name: "protocol knows the manager", path: "protocol/task", imports: []string{"orchestrator"}, want: "stands alone"},
		{name: "its test does", path: "protocol/task", tests: []string{"orchestrator"}, want: "a test of protocol/task"},
		{name: "SDK, sound", path: "plugins/sdk/sdktest", imports: []string{"plugins/sdk", "protocol/task"}},
		{name: "SDK knows what workers share", path: "plugins/sdk", imports: []string{"plugins/internal/fetch"}, want: "other people's workers"},
		{name: "SDK knows a stage", path: "plugins/sdk", imports: []string{"orchestrator/internal/job"}, want: "other people's workers"},
		{name: "worker, sound", path: "plugins/exec", imports: []string{"plugins/sdk", "plugins/internal/fetch", "plugins/exec/bridge"}},
		{name: "worker's part, sound", path: "plugins/exec/bridge", imports: []string{"plugins/exec/line"}},
		{name: "worker knows another", path: "plugins/exec", imports: []string{"plugins/push"}, want: "nor another worker"},
		{name: "worker knows the manager", path: "plugins/exec", imports: []string{"orchestrator"}, want: "nor another worker"},
		{name: "shared part knows a worker", path: "plugins/internal/fetch", imports: []string{"plugins/push"}, want: "knows no manager"},
		{name: "console, sound", path: "console/cmd/drover", imports: []string{"console/internal/command", "protocol/client"}},
		{name: "console knows the manager", path: "console/internal/repl", imports: []string{"orchestrator/internal/settings"}, want: "client library"},
		{name: "console knows the SDK", path: "console/cmd/drover", imports: []string{"plugins/sdk"}, want: "client library"},
		{name: "job is no leaf", path: "orchestrator/internal/job", imports: []string{"orchestrator/internal/settings"}, want: "job is a leaf"},
		{name: "settings is no leaf", path: "orchestrator/internal/settings", imports: []string{"orchestrator/internal/job"}, want: "settings is a leaf"},
		{name: "stage, sound", path: "orchestrator/internal/pool", imports: []string{"orchestrator/internal/job", "orchestrator/internal/settings", "orchestrator/internal/pool/size"}, tests: []string{testSupport, "plugins/sdk"}},
		{name: "stage knows its sibling", path: "orchestrator/internal/pool", imports: []string{"orchestrator/internal/worker"}, want: "never knows its siblings"},
		{name: "its test does", path: "orchestrator/internal/pool", tests: []string{"orchestrator/internal/worker"}, want: "a test of orchestrator/internal/pool"},
		{name: "stage with a name that starts alike", path: "orchestrator/internal/pool", imports: []string{"orchestrator/internal/pooling"}, want: "never knows its siblings"},
		{name: "stage knows the SDK", path: "orchestrator/internal/worker", imports: []string{"plugins/sdk"}, want: "never knows its siblings"},
		{name: "stage knows the wiring", path: "orchestrator/internal/worker", imports: []string{"orchestrator"}, want: "never knows its siblings"},
		{name: "wiring, sound", path: "orchestrator", imports: []string{"orchestrator/internal/pool", "protocol/client"}},
		{name: "wiring knows a worker", path: "orchestrator", imports: []string{"plugins/push"}, want: "separate programs"},
		{name: "main, sound", path: "orchestrator/cmd/droverd", imports: []string{"configs", "orchestrator"}},
		{name: "configurations, sound", path: "configs"},
		{name: "configurations know who reads them", path: "configs", imports: []string{"orchestrator"}, want: "only holds text"},
		{name: "main knows a stage", path: "orchestrator/cmd/droverd", imports: []string{"orchestrator/internal/pool"}, want: "nothing else"},
		{name: "unlisted command", path: "orchestrator/cmd/other", want: "no folder of the layout"},
		{name: "new top folder", path: "tools", want: "no folder of the layout"},
		{name: "test support in code", path: "protocol/client", imports: []string{testSupport}, want: "outside of a _test.go file"},
		{name: "intake speaks to asynq", path: "orchestrator/internal/intake", change: imports("github.com/hibiken/asynq")},
		{name: "controller speaks to asynq", path: "orchestrator/internal/controller", change: imports("github.com/hibiken/asynq"), want: "only intake speaks to asynq"},
		{name: "pool starts processes", path: "orchestrator/internal/pool", change: imports("github.com/hashicorp/go-plugin/runner"), want: "only worker starts processes"},
		{name: "client holds a miniredis", path: "protocol/client", change: imports("github.com/alicebob/miniredis/v2"), want: "only the embedded broker"},
		{name: "manager has a prompt", path: "orchestrator", change: imports("github.com/chzyer/readline"), want: "only the console"},
		{name: "no comment", path: "protocol/task", change: func(p *pkg) { p.documented = false }, want: "no package comment"},
		{name: "no comment, generated", path: "protocol/task", change: func(p *pkg) { p.documented, p.generated = false, true }},
		{name: "no code at all", path: "orchestrator", change: func(p *pkg) { p.documented, p.name = false, "" }},
		{name: "name that says nothing", path: "plugins/internal/util", want: "says nothing"},
		{name: "leaks unseen", path: "protocol/task", change: func(p *pkg) { p.checksLeaks = false }, want: "goleak.VerifyTestMain"},
		{name: "no tests, no leaks", path: "protocol/task", change: func(p *pkg) { p.checksLeaks, p.testFiles = false, false }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := pkg{
				path: test.path, name: "x", documented: true, imports: test.imports, testImports: test.tests,
				testFiles: true, checksLeaks: true,
			}
			if test.change != nil {
				test.change(&p)
			}
			got := checkLayout(folderRules(), []pkg{p})
			if test.want == "" {
				if len(got) > 0 {
					t.Errorf("a sound package is refused: %q", got)
				}
				return
			}
			if len(got) != 1 || !strings.Contains(got[0], test.want) || !strings.Contains(got[0], test.path) {
				t.Errorf("got %q, want one breach that names %s and says %q", got, test.path, test.want)
			}
		})
	}
}

// imports adds third parties' packages to the code of a package.
func imports(foreign ...string) func(*pkg) {
	return func(p *pkg) { p.foreign = foreign }
}

// A file or folder that is not prescribed is found, and the prescribed and hidden ones are left alone.
func TestLayoutTopLevelBites(t *testing.T) {
	t.Parallel()
	got := checkTopLevel([]string{".ci", "Makefile", "docs", "go.mod", "orchestrator", "pkg", "run.sh"})
	if want := []string{"docs", "pkg", "run.sh"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Each heavy dependency is found, whoever wrote it.
func TestLayoutLightDependenciesBite(t *testing.T) {
	t.Parallel()
	heavy := []string{
		"github.com/redis/go-redis/v9/internal", "github.com/hibiken/asynq", "github.com/alicebob/miniredis/v2",
		"github.com/bradfitz/gomemcache/memcache", "github.com/chzyer/readline", module + "protocol/client/redis",
	}
	light := []string{"context", "google.golang.org/grpc", "github.com/hashicorp/go-plugin", module + "protocol/task"}
	if got := checkLight(slices.Concat(light, heavy)); !slices.Equal(got, heavy) {
		t.Errorf("got %q, want %q", got, heavy)
	}
}

// Only a TestMain that really calls goleak counts.
func TestLayoutLeakCheckBites(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }":                         true,
		"func TestMain(m *testing.M) { if !child() { goleak.VerifyTestMain(m, option) } }": true,
		"func TestMain(m *testing.M) { m.Run() }":                                          false,
		"func TestOther(m *testing.M) { goleak.VerifyTestMain(m) }":                        false,
		"func (x) TestMain(m *testing.M) { goleak.VerifyTestMain(m) }":                     false,
		"func TestMain(m *testing.M) { other.VerifyTestMain(m) }":                          false,
		"// goleak.VerifyTestMain":                                                         false,
	}
	for code, want := range tests {
		file, err := parser.ParseFile(token.NewFileSet(), "x_test.go", "package x\n"+code, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if got := verifiesLeaks(file); got != want {
			t.Errorf("%s: got %t, want %t", code, got, want)
		}
	}
}
