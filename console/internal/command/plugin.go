package command

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/drover-jobs/drover/console/internal/scaffold"
)

func pluginCommand() *Command {
	return &Command{
		Section: SectionConsole,
		Name:    "plugin",
		Args:    "new NAME | test COMMAND [ARGUMENT...]",
		Summary: "make a new worker program, and test one",
		Help: `"new" writes a directory with a small worker that works, and says what to add to the configuration and what to type next.
It overwrites nothing.

"test" starts a program as a manager would and checks, promise by promise, what a worker owes its manager; it needs no
manager. Each check passes, fails (with what was expected, what was seen and what to do), or was not tested (with why). The
exit code is 1 when one failed. A payload is made from the worker's schema unless one is given; --slow, --noisy and --panic
name tasks without which something cannot be tested. JSON that begins with @ is read from a file. Put -- before a command
that has flags of its own.`,
		Examples: []Example{
			{`drover plugin new thumbs --lang python`, "make the directory thumbs"},
			{`drover plugin test ./thumbs --slow '{"seconds":60}'`, "test a program that is a worker"},
			{`drover plugin test --exec --schema schema.json python3 worker.py`, "test a script that the plugin exec runs"},
		},
		Flags: []Flag{
			{Name: "lang", Value: "LANG", Help: "new: " + strings.Join(scaffold.Langs(), ", ") + "; go when left out"},
			{Name: "dir", Value: "DIR", Help: "new: the directory to make; one named like the worker when left out"},
			{Name: "sdk", Value: "DIR", Help: "new, for go: a copy of Drover's module; found from here or from drover when left out"},
			{Name: "exec", Value: "PATH", Optional: true, Help: "the plugin exec; test: run the command by way of it; found beside drover when left out"},
			{Name: "schema", Value: "FILE", Help: "test with --exec: the JSON Schema of the payload"},
			{Name: "once", Help: "test with --exec: the command is started for each task"},
			{Name: "options", Value: "JSON", Help: "test: the plugin's options"},
			{Name: "payload", Value: "JSON", Help: "test: a payload that the worker accepts"},
			{Name: "slow", Value: "JSON", Help: "test: a payload whose task takes long, to cancel it"},
			{Name: "noisy", Value: "JSON", Help: "test: a payload whose task writes 1 MiB without a line's end"},
			{Name: "panic", Value: "JSON", Help: "test: a payload whose task panics, or kills its program"},
			{Name: "timeout", Value: "TIME", Help: "test: how long a task may take; 30s when left out"},
		},
		Min:      1,
		Max:      -1,
		Offline:  true,
		Files:    true,
		Complete: completePlugin,
		Run:      runPlugin,
	}
}

func completePlugin(_ context.Context, _ *Env, words []string) []string {
	if len(words) == 1 {
		return []string{"new", "test"}
	}
	return nil
}

// flagsOf are the flags that one of the two takes; the other's are errors.
func flagsOf(verb string) []string {
	if verb == "new" {
		return []string{"lang", "dir", "sdk", "exec"}
	}
	return []string{"exec", "schema", "once", "options", "payload", "slow", "noisy", "panic", "timeout"}
}

func runPlugin(ctx context.Context, env *Env, args *Args) error {
	verb, words := args.Words[0], args.Words[1:]
	verbs := []string{"new", "test"}
	if verb != verbs[0] && verb != verbs[1] {
		return usageError("no such thing to do with a plugin: %.60q%s See: drover help plugin", verb, orDot(didYouMean(verb, verbs)))
	}
	own := strings.Join(flagsOf(verb), " ") + " "
	for _, f := range pluginCommand().Flags {
		if args.Has(f.Name) && !strings.Contains(own, f.Name+" ") {
			return usageError("plugin %s takes no --%s (there are --%s)", verb, f.Name, strings.Join(flagsOf(verb), ", --"))
		}
	}
	if verb == "new" {
		return runPluginNew(env, args, words)
	}
	return runPluginTest(ctx, env, args, words)
}

// execPath is the program of the plugin exec: as asked, else where an installation has it beside this program; empty when it
// is not there.
func execPath(args *Args) string {
	if path := args.Text("exec"); path != "" {
		if absolute, err := filepath.Abs(path); err == nil {
			return absolute
		}
		return path
	}
	dir := programDir()
	for _, path := range []string{filepath.Join(dir, "plugins", "exec"), filepath.Join(dir, "exec")} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && dir != "" {
			return path
		}
	}
	return ""
}

// programDir is the directory of this program; empty when that cannot be found.
func programDir() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	if target, err := filepath.EvalSymlinks(self); err == nil {
		self = target
	}
	return filepath.Dir(self)
}

// jsonFlag is a flag's JSON, of a file when it begins with @; nil when the flag was not given.
func jsonFlag(env *Env, args *Args, flag string) (json.RawMessage, error) {
	text := []byte(args.Text(flag))
	if len(text) == 0 {
		return nil, nil
	}
	if name, isFile := strings.CutPrefix(string(text), "@"); isFile {
		var err error
		if text, err = env.ReadFile(name); err != nil {
			return nil, usageError("--%s: %v", flag, err)
		}
	}
	var object map[string]any
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, usageError("--%s: %.60q is not a JSON object: %v", flag, text, err)
	}
	return text, nil
}
