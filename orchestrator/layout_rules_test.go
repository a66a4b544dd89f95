package orchestrator_test

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// testSupport may be imported by _test.go files only.
const testSupport = "protocol/testenv"

// A folderRule says what the packages of a folder may import of ours. Folders are patterns: "a/*" is each folder
// in a, "a/..." is a and all below it. What a pattern names without its "/..." is a unit, and the packages of one
// unit may import each other.
type folderRule struct {
	folder   string
	may      []string
	testsMay []string // besides, for _test.go files; they may always import testSupport
	why      string
}

// folderRules is the table of the layout; the first rule that fits a package holds for it.
func folderRules() []folderRule {
	return []folderRule{
		{
			folder: "protocol/...", may: []string{"protocol/..."},
			why: "the agreement between processes stands alone",
		},
		{
			folder: "configs",
			why:    "it only holds text",
		},
		{
			folder: "plugins/sdk/...", may: []string{"plugins/sdk/...", "protocol/..."},
			why: "the SDK is what other people's workers are built on",
		},
		{
			folder: "plugins/internal/...", may: []string{"plugins/internal/...", "plugins/sdk/...", "protocol/..."},
			why: "what the feed workers share knows no manager",
		},
		{
			folder: "plugins/*/...", may: []string{"plugins/internal/...", "plugins/sdk/...", "protocol/..."},
			why: "a worker is a program of its own: it knows neither the manager nor another worker",
		},
		{
			folder: "console/internal/command", may: []string{"console/...", "plugins/sdk/sdktest/conform", "plugins/sdk/sdktest/launch", "protocol/..."},
			why: "the console speaks to a manager through the client library, like everybody; `plugin test` runs the SDK's conformance kit",
		},
		{
			folder: "console/...", may: []string{"console/...", "protocol/..."},
			why: "the console speaks to a manager through the client library, like everybody",
		},
		{
			folder: "orchestrator/internal/job/...", may: []string{"protocol/..."},
			why: "job is a leaf: one task in this process",
		},
		{
			folder: "orchestrator/internal/settings/...", may: []string{"protocol/..."},
			why: "settings is a leaf: what may change while the manager runs",
		},
		{
			folder: "orchestrator/internal/reaper/...",
			why:    "reaper is a leaf: directories and processes",
		},
		{
			folder: "orchestrator/internal/program/...",
			why:    "program is a leaf: the files of plugins",
		},
		{
			folder:   "orchestrator/internal/worker/...",
			may:      []string{"orchestrator/internal/job", "orchestrator/internal/reaper", "protocol/..."},
			testsMay: []string{"plugins/sdk/..."}, // to be a worker process
			why:      "a stage never knows its siblings, and worker alone starts and ends processes",
		},
		{
			folder: "orchestrator/internal/budget/...", may: []string{"orchestrator/internal/settings", "protocol/..."},
			why: "budget is a leaf: what the queues of a manager share",
		},
		{
			folder:   "orchestrator/internal/pool/...",
			may:      []string{"orchestrator/internal/budget", "orchestrator/internal/job", "orchestrator/internal/settings", "protocol/..."},
			testsMay: []string{"plugins/sdk/..."},
			why:      "a pool asks the budget before it starts a process, and a stage never knows its siblings",
		},
		{
			folder: "orchestrator/internal/schedule/...",
			may:    []string{"orchestrator/internal/settings", "orchestrator/internal/settings/timetable", "protocol/..."},
			why:    "a schedule goes by the timetable that its settings make, and a stage never knows its siblings",
		},
		{
			folder:   "orchestrator/internal/*/...",
			may:      []string{"orchestrator/internal/job", "orchestrator/internal/settings", "protocol/..."},
			testsMay: []string{"plugins/sdk/..."}, // to be a worker process
			why:      "a stage never knows its siblings: it declares the interface that it needs, and package orchestrator wires",
		},
		{
			folder:   "orchestrator",
			may:      []string{"orchestrator/internal/...", "protocol/..."},
			testsMay: []string{"configs", "plugins/sdk/..."},
			why:      "it wires the stages of a manager, and workers are separate programs",
		},
		{
			folder: "orchestrator/cmd/droverd", may: []string{"configs", "orchestrator", "orchestrator/internal/reaper"},
			why: "main holds flags, signals and the exit code, nothing else; its program is also the reaper",
		},
		{
			folder: "orchestrator/cmd/drover-chaos", may: []string{"orchestrator/internal/chaos/..."},
			why: "main holds flags and the exit code; the run is below internal",
		},
		{
			folder: "orchestrator/cmd/drover-bench", may: []string{"orchestrator", "plugins/sdk", "protocol/..."},
			why: "the benchmark is a manager, a worker and a client in one program",
		},
	}
}

// An owner is the only one whose code (not: whose tests) imports a third party's module.
type owner struct {
	module  string
	folders []string
	why     string
}

func owners() []owner {
	return []owner{
		{
			module: "github.com/hibiken/asynq", folders: []string{"orchestrator/internal/intake", "orchestrator/cmd/drover-bench"},
			why: "only intake speaks to asynq, and the benchmark compares with it",
		},
		{
			module: "github.com/hashicorp/go-plugin", folders: []string{"orchestrator/internal/worker/...", "plugins/sdk/..."},
			why: "only worker starts processes, and only the SDK is one",
		},
		{
			module: "github.com/alicebob/miniredis", folders: []string{"orchestrator/internal/embedded/..."},
			why: "only the embedded broker is one",
		},
		{
			module: "github.com/chzyer/readline", folders: []string{"console/..."},
			why: "only the console has a prompt",
		},
	}
}

// bannedNames are package names that say nothing about what is inside.
func bannedNames() []string {
	return []string{"util", "utils", "common", "helper", "helpers", "base", "misc", "shared"}
}

// pkg is one package as the rules see it. Paths of our own packages are relative to the module.
type pkg struct {
	path        string
	name        string
	documented  bool
	generated   bool // all its code is: the comment would have to stand in a .proto file
	imports     []string
	testImports []string
	foreign     []string // packages of third parties, imported outside of tests
	testFiles   bool
	checksLeaks bool // a TestMain calls goleak.VerifyTestMain
}

// checkLayout returns one sentence for each breach, in the order of the packages.
func checkLayout(rules []folderRule, packages []pkg) []string {
	var breaches []string
	add := func(format string, args ...any) { breaches = append(breaches, fmt.Sprintf(format, args...)) }
	for _, p := range packages {
		if code := p.name != ""; code && !p.documented && !p.generated {
			add("%s has no package comment", p.path)
		}
		if slices.Contains(bannedNames(), path.Base(p.path)) {
			add("%s: the name says nothing about what is inside", p.path)
		}
		if p.testFiles && !p.checksLeaks {
			add("%s has tests, but no TestMain that calls goleak.VerifyTestMain", p.path)
		}
		if slices.Contains(p.imports, testSupport) {
			add("%s imports %s outside of a _test.go file", p.path, testSupport)
		}
		breaches = append(breaches, checkForeign(p)...)
		at := slices.IndexFunc(rules, func(r folderRule) bool { return matches(r.folder, p.path) })
		if at < 0 {
			add("%s lies in no folder of the layout", p.path)
			continue
		}
		breaches = append(breaches, checkImports(rules[at], p)...)
	}
	return breaches
}

func checkImports(rule folderRule, p pkg) []string {
	var breaches []string
	own := unit(rule.folder, p.path)
	allowed := func(imported string, extra ...string) bool {
		if imported == own || strings.HasPrefix(imported, own+"/") && strings.HasSuffix(rule.folder, "/...") {
			return true
		}
		may := func(pattern string) bool { return matches(pattern, imported) }
		return slices.ContainsFunc(rule.may, may) || slices.ContainsFunc(extra, may)
	}
	for _, imported := range p.imports {
		if imported != testSupport && !allowed(imported) {
			breaches = append(breaches, fmt.Sprintf("%s imports %s: %s", p.path, imported, rule.why))
		}
	}
	for _, imported := range p.testImports {
		if !allowed(imported, append(rule.testsMay, testSupport)...) {
			breaches = append(breaches, fmt.Sprintf("a test of %s imports %s: %s", p.path, imported, rule.why))
		}
	}
	return breaches
}

func checkForeign(p pkg) []string {
	var breaches []string
	for _, imported := range p.foreign {
		for _, o := range owners() {
			owns := slices.ContainsFunc(o.folders, func(folder string) bool { return matches(folder, p.path) })
			if !owns && (imported == o.module || strings.HasPrefix(imported, o.module+"/")) {
				breaches = append(breaches, fmt.Sprintf("%s imports %s: %s", p.path, imported, o.why))
			}
		}
	}
	return breaches
}

// matches reports whether the path fits the pattern of a folderRule.
func matches(pattern, name string) bool {
	open := strings.HasSuffix(pattern, "/...")
	want := strings.Split(strings.TrimSuffix(pattern, "/..."), "/")
	got := strings.Split(name, "/")
	if len(got) < len(want) || !open && len(got) > len(want) {
		return false
	}
	for i, part := range want {
		if part != "*" && part != got[i] {
			return false
		}
	}
	return true
}

// unit is the part of the path that the pattern's fixed and starred elements cover: plugins/exec for
// plugins/exec/bridge and the pattern plugins/*/... .
func unit(pattern, name string) string {
	n := strings.Count(strings.TrimSuffix(pattern, "/..."), "/") + 1
	return strings.Join(strings.Split(name, "/")[:n], "/")
}

// checkTopLevel returns the entries of the repository's root that are not prescribed. Hidden ones are free.
func checkTopLevel(entries []string) []string {
	prescribed := []string{
		"orchestrator", "plugins", "protocol", "console", "configs",
		"go.mod", "go.sum", "Makefile", "README.md", "LICENSE", "NOTICE",
	}
	return slices.DeleteFunc(slices.Clone(entries), func(entry string) bool {
		return strings.HasPrefix(entry, ".") || slices.Contains(prescribed, entry)
	})
}

// checkLight returns the packages among the dependencies that whoever writes a worker or a client should not
// have to build.
func checkLight(dependencies []string) []string {
	heavy := []string{"redis", "asynq", "memcache", "readline"}
	return slices.DeleteFunc(slices.Clone(dependencies), func(dependency string) bool {
		return !slices.ContainsFunc(heavy, func(word string) bool { return strings.Contains(dependency, word) })
	})
}
