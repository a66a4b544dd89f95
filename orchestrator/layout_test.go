package orchestrator_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/protocol/testenv"
)

const module = "github.com/drover-jobs/drover/"

// listed is what `go list -json` says about a package.
type listed struct {
	Dir, ImportPath, Name, Doc         string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
}

// goList runs go list in the module's root. A package that does not compile is listed like any other.
func goList(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-e"}, args...)...)
	cmd.Dir = testenv.ModuleRoot(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %q: %v", args, err)
	}
	return string(out)
}

// loadPackages reads the packages of the module, without those in testdata.
func loadPackages(t *testing.T) []pkg {
	t.Helper()
	var packages []pkg
	decoder := json.NewDecoder(strings.NewReader(goList(t, "-json", "./...")))
	for {
		var l listed
		err := decoder.Decode(&l)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("read the answer of go list: %v", err)
		}
		p := pkg{
			path: strings.TrimPrefix(l.ImportPath, module), documented: l.Doc != "",
			imports: ours(l.Imports), testImports: ours(slices.Concat(l.TestImports, l.XTestImports)),
		}
		p.foreign = slices.DeleteFunc(slices.Clone(l.Imports), func(i string) bool { return strings.HasPrefix(i, module) })
		if len(l.GoFiles) > 0 {
			p.name = l.Name
		}
		code, tests := parse(t, l.Dir, l.GoFiles), parse(t, l.Dir, slices.Concat(l.TestGoFiles, l.XTestGoFiles))
		p.generated = len(code) > 0 && !slices.ContainsFunc(code, func(f *ast.File) bool { return !ast.IsGenerated(f) })
		p.testFiles = len(tests) > 0
		p.checksLeaks = slices.ContainsFunc(tests, verifiesLeaks)
		packages = append(packages, p)
	}
}

// ours keeps the module's own packages, each once and without the module's name.
func ours(imports []string) []string {
	var own []string
	for _, path := range imports {
		if relative, found := strings.CutPrefix(path, module); found {
			own = append(own, relative)
		}
	}
	slices.Sort(own)
	return slices.Compact(own)
}

func parse(t *testing.T, dir string, names []string) []*ast.File {
	t.Helper()
	var files []*ast.File
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.ParseComments)
		if err != nil {
			t.Fatalf("parse: %v", err)
		}
		files = append(files, file)
	}
	return files
}

// verifiesLeaks reports whether the file has a TestMain that calls goleak.VerifyTestMain.
func verifiesLeaks(file *ast.File) bool {
	found := false
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok || function.Recv != nil || function.Name.Name != "TestMain" {
			continue
		}
		ast.Inspect(function, func(node ast.Node) bool {
			call, ok := node.(*ast.SelectorExpr)
			if !ok || call.Sel.Name != "VerifyTestMain" {
				return true
			}
			owner, ok := call.X.(*ast.Ident)
			found = found || ok && owner.Name == "goleak"
			return true
		})
	}
	return found
}

// Dependencies point one way, every package says what it is, every package with tests looks for leaked
// goroutines: the table of folderRules holds for the tree as it is.
func TestLayout(t *testing.T) {
	t.Parallel()
	for _, breach := range checkLayout(folderRules(), loadPackages(t)) {
		t.Error(breach)
	}
}

// The root of the repository holds what is prescribed and nothing else.
func TestLayoutTopLevel(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = testenv.ModuleRoot(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files, which the test of the layout needs: %v", err)
	}
	var entries []string
	for file := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		entry, _, _ := strings.Cut(file, "/")
		entries = append(entries, entry)
	}
	for _, entry := range checkTopLevel(slices.Compact(entries)) {
		t.Errorf("%s lies in the root of the repository", entry)
	}
}

// Whoever writes a worker or talks to a manager's API builds no Redis, asynq, memcached or readline.
func TestLayoutLightDependencies(t *testing.T) {
	t.Parallel()
	for _, folder := range []string{"./plugins/sdk", "./plugins/sdk/sdktest", "./protocol/client"} {
		dependencies := strings.Fields(goList(t, "-deps", folder))
		if heavy := checkLight(dependencies); len(heavy) > 0 {
			t.Errorf("%s pulls in %d packages that it must not, such as %s", folder, len(heavy), heavy[0])
		}
	}
}

// NOTICE names every module that go.mod requires directly.
func TestLayoutNotice(t *testing.T) {
	t.Parallel()
	root := testenv.ModuleRoot(t)
	cmd := exec.Command("go", "mod", "edit", "-json")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("read go.mod: %v", err)
	}
	var requirements struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &requirements); err != nil {
		t.Fatalf("read go.mod: %v", err)
	}
	notice, err := os.ReadFile(filepath.Join(root, "NOTICE"))
	if err != nil {
		t.Fatal(err)
	}
	named := strings.Fields(string(notice))
	for _, module := range requirements.Require {
		if !module.Indirect && !slices.Contains(named, module.Path) {
			t.Errorf("NOTICE lacks %s: name it under its license", module.Path)
		}
	}
}
