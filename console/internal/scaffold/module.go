package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Module is the name of Drover's Go module.
const Module = "github.com/drover-jobs/drover"

// FindSDK looks for a copy of Drover's module in the directories and above them, and returns the first; empty when there is none.
func FindSDK(directories ...string) string {
	for _, dir := range directories {
		for dir != "" {
			if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && moduleOf(text) == Module { //nolint:gosec // only its first lines matter
				return dir
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
		}
	}
	return ""
}

// directive is a line of a go.mod: a word, what follows it, and perhaps a comment.
var directive = regexp.MustCompile(`^\s*(\S+)\s+([^/]\S*(?:\s+v\S+)?)\s*(?://.*)?$`)

func moduleOf(text []byte) string {
	for line := range strings.Lines(string(text)) {
		if found := directive.FindStringSubmatch(strings.TrimSpace(line)); found != nil && found[1] == "module" {
			return found[2]
		}
	}
	return ""
}

// readModule takes the versions that the copy of the module was tested with, so that the new one builds without a network.
func (d *data) readModule(sdk string) error {
	if sdk == "" {
		return errors.New("a worker in Go needs a copy of the module " + Module + ", which is not published: say where one is with --sdk DIR")
	}
	absolute, err := filepath.Abs(sdk)
	if err != nil {
		return fmt.Errorf("find the directory %s: %w", sdk, err)
	}
	mod, err := os.ReadFile(filepath.Join(absolute, "go.mod")) //nolint:gosec // named by the person
	if err != nil {
		return fmt.Errorf("--sdk: read the module's go.mod: %w", err)
	}
	if name := moduleOf(mod); name != Module {
		return fmt.Errorf("--sdk: %s holds the module %q: name a copy of %s", sdk, name, Module)
	}
	sum, err := os.ReadFile(filepath.Join(absolute, "go.sum")) //nolint:gosec // as above
	if err != nil {
		return fmt.Errorf("--sdk: read the module's go.sum: %w", err)
	}
	d.Module, d.SDK = Module, absolute
	if strings.ContainsFunc(absolute, func(r rune) bool { return !strings.ContainsRune("/._-+~@", r) && !isWord(r) }) {
		d.SDK = strconv.Quote(absolute)
	}
	goVersion, all := requirements(mod)
	d.GoVersion = goVersion
	d.Requires = slices.DeleteFunc(all, func(r string) bool {
		name, _, _ := strings.Cut(r, " ")
		return !slices.Contains(needed(), name)
	})
	d.more = map[string][]byte{"go.sum": sumsOf(sum, d.Requires)}
	return nil
}

// needed are the modules that a worker and its test are made of, beside Drover's own.
func needed() []string {
	return []string{
		"connectrpc.com/connect", "github.com/fatih/color", "github.com/golang/protobuf", "github.com/google/jsonschema-go", "github.com/hashicorp/go-hclog",
		"github.com/hashicorp/go-plugin", "github.com/hashicorp/yamux", "github.com/mattn/go-colorable", "github.com/mattn/go-isatty", "github.com/oklog/run",
		"golang.org/x/net", "golang.org/x/sys", "golang.org/x/text", "google.golang.org/genproto/googleapis/rpc", "google.golang.org/grpc", "google.golang.org/protobuf",
	}
}

// sumsOf leaves the checksums of what is required, and those of the go.mod of every module: Go reads them all.
func sumsOf(sum []byte, requires []string) []byte {
	var kept []byte
	for line := range bytes.Lines(sum) {
		fields := strings.Fields(string(line))
		if len(fields) < 2 || strings.HasSuffix(fields[1], "/go.mod") || slices.Contains(requires, fields[0]+" "+fields[1]) {
			kept = append(kept, line...)
		}
	}
	return kept
}

func isWord(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// requirements are the Go version and the required modules, each with its version, of a go.mod.
func requirements(mod []byte) (goVersion string, modules []string) {
	within := false
	for line := range bytes.Lines(mod) {
		text, _, _ := strings.Cut(string(line), "//")
		fields := strings.Fields(text)
		switch {
		case len(fields) == 0:
		case within && fields[0] == ")":
			within = false
		case within && len(fields) == 2:
			modules = append(modules, strings.Join(fields, " "))
		case fields[0] == "require" && len(fields) == 2 && fields[1] == "(":
			within = true
		case fields[0] == "require" && len(fields) == 3:
			modules = append(modules, fields[1]+" "+fields[2])
		case fields[0] == "go" && len(fields) == 2:
			goVersion = fields[1]
		}
	}
	return goVersion, modules
}
