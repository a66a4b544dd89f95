package scaffold_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/drover-jobs/drover/console/internal/scaffold"
)

var update = flag.Bool("update", false, "write the golden files anew")

// fakeSDK is a directory that looks like a copy of Drover's module.
func fakeSDK(t *testing.T, parent string) string {
	t.Helper()
	dir := filepath.Join(parent, "drover")
	mod := "// a comment\nmodule " + scaffold.Module + " // ours\n\ngo 1.26.0\n\nrequire example.com/a v1.2.3\n\nrequire (\n\texample.com/b v0.1.0\n\texample.com/c v2.0.0+incompatible // indirect\n\tgolang.org/x/sys v0.50.0 // indirect\n)\n"
	write(t, filepath.Join(dir, "go.mod"), mod)
	write(t, filepath.Join(dir, "go.sum"), "example.com/a v1.2.3 h1:sum=\nexample.com/a v1.2.3/go.mod h1:mod=\ngolang.org/x/sys v0.50.0 h1:sys=\n")
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What is written and said for each language stays as it is.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, lang := range scaffold.Langs() {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			made, err := scaffold.Write(scaffold.Plan{Name: "thumbs", Lang: lang, Dir: filepath.Join(root, "new"), SDK: fakeSDK(t, root), Exec: "/opt/drover/plugins/exec"})
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, name := range made.Files {
				text, err := os.ReadFile(filepath.Join(made.Dir, name))
				if err != nil {
					t.Fatal(err)
				}
				info, err := os.Stat(filepath.Join(made.Dir, name))
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&b, "-- %s (executable: %v) --\n%s", name, info.Mode()&0o100 != 0, text)
			}
			fmt.Fprintf(&b, "-- yaml --\n%s-- next --\n%s\n-- notes --\n%s\n", made.YAML, strings.Join(made.Next, "\n"), strings.Join(made.Notes, "\n"))
			golden(t, lang, strings.ReplaceAll(b.String(), root, "/ROOT"))
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		write(t, file, got)
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (-update writes it)", err)
	}
	if got != string(want) {
		t.Errorf("%s differs; -update writes it anew. Got:\n%s", file, got)
	}
}

// A new go.mod requires what a worker and its test are made of, and nothing else.
func TestNeeded(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}",
		scaffold.Module+"/plugins/sdk", scaffold.Module+"/plugins/sdk/sdktest").Output()
	if err != nil {
		t.Fatal(err)
	}
	used := strings.Fields(string(out))
	slices.Sort(used)
	if used = slices.Compact(used); !slices.Equal(used, scaffold.Needed()) {
		t.Errorf("used are\n%q, required\n%q", used, scaffold.Needed())
	}
}

// Names that cannot name a program, a directory and a module are refused, and so are unknown languages.
func TestCheck(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "A", "a b", "../x", "a/b", ".hidden", "-flag", "9lives", "a..b", "a.", "ä", strings.Repeat("a", 65)} {
		if err := (scaffold.Plan{Name: name, Lang: "sh"}).Check(); err == nil {
			t.Errorf("%q is taken for a name", name)
		}
	}
	for _, name := range []string{"a", "feed-pull", "a_b.c-d", "v2", "true", strings.Repeat("a", 64)} {
		if err := (scaffold.Plan{Name: name, Lang: "sh"}).Check(); err != nil {
			t.Error(err)
		}
	}
	if err := (scaffold.Plan{Name: "a", Lang: "cobol"}).Check(); err == nil || !strings.Contains(err.Error(), "python") {
		t.Errorf("got %v", err)
	}
}

// Nothing that is there is overwritten, and a failure leaves nothing behind.
func TestNothingIsOverwritten(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	taken := filepath.Join(root, "taken")
	write(t, filepath.Join(taken, "mine"), "x")
	if _, err := scaffold.Write(scaffold.Plan{Name: "a", Lang: "sh", Dir: taken}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("got %v", err)
	}
	write(t, filepath.Join(root, "file"), "x")
	if _, err := scaffold.Write(scaffold.Plan{Name: "a", Lang: "sh", Dir: filepath.Join(root, "file")}); err == nil {
		t.Error("a file is taken for a directory")
	}
	for name, plan := range map[string]scaffold.Plan{
		"no SDK":    {Name: "a", Lang: "go"},
		"other SDK": {Name: "a", Lang: "go", SDK: taken},
	} {
		plan.Dir = filepath.Join(root, "none")
		if _, err := scaffold.Write(plan); err == nil || !strings.Contains(err.Error(), "--sdk") {
			t.Errorf("%s: got %v", name, err)
		}
		if _, err := os.Stat(plan.Dir); err == nil {
			t.Errorf("%s: the directory is there", name)
		}
	}
	empty := filepath.Join(root, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.Write(scaffold.Plan{Name: "a", Lang: "sh", Dir: empty}); err != nil {
		t.Errorf("an empty directory: %v", err)
	}
	entries, err := os.ReadDir(taken)
	if err != nil || len(entries) != 1 {
		t.Errorf("in the directory that was taken: %v, %v", entries, err)
	}
}

// Whatever the paths and names look like, the configuration has them as they are, and so has the shell.
func TestQuoting(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"true", "no", "e3", "null", "thumbs"} {
		dir := filepath.Join(t.TempDir(), `it's "odd": #1, ünïcode`)
		made, err := scaffold.Write(scaffold.Plan{Name: name, Lang: "sh", Dir: dir, Exec: "/opt/a b/exec"})
		if err != nil {
			t.Fatal(err)
		}
		var config struct {
			Plugins map[string]struct{ Command []string }
			Queues  map[string]struct{ Plugin string }
		}
		if err := yaml.Unmarshal([]byte(made.YAML), &config); err != nil {
			t.Fatalf("%v\n%s", err, made.YAML)
		}
		command := config.Plugins[name].Command
		if len(command) < 3 || command[0] != "/opt/a b/exec" || command[2] != name || command[len(command)-1] != filepath.Join(dir, "worker.sh") || config.Queues[name].Plugin != name {
			t.Errorf("%s: %+v\n%s", name, config, made.YAML)
		}
		out, err := exec.Command("sh", "-c", "drover() { printf '%s\\n' \"$@\"; }; "+made.Next[0]).Output()
		if words := strings.Split(string(out), "\n"); err != nil || len(words) < 3 || words[len(words)-2] != filepath.Join(dir, "worker.sh") {
			t.Errorf("the shell reads %q, %v", out, err)
		}
	}
}

// A copy of the module is found from below, and no other module is taken for it.
func TestFindSDK(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	sdk := fakeSDK(t, root)
	below := filepath.Join(sdk, "bin", "plugins")
	if err := os.MkdirAll(below, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "other", "go.mod"), "module "+scaffold.Module+"/else\n")
	if got := scaffold.FindSDK(filepath.Join(root, "other"), below); got != sdk {
		t.Errorf("got %q, want %q", got, sdk)
	}
	if got := scaffold.FindSDK("", filepath.Join(root, "other")); got != "" {
		t.Errorf("got %q", got)
	}
}
