package bridge_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/plugins/exec/internal/bridge"
	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol"
)

// Every mistake in the options is named, with what is allowed; no value of a variable is shown.
func TestOptionsAreStrict(t *testing.T) {
	t.Parallel()
	sh := []string{"sh", "-c", "true"}
	for _, test := range []struct {
		line    bridge.CommandLine
		options string
		want    string
	}{
		{bridge.CommandLine{}, ``, "there is no command"},
		{bridge.CommandLine{}, `[]`, "not a JSON object"},
		{bridge.CommandLine{}, `{"command": "sh -c true"}`, "a list of texts is wanted"},
		{bridge.CommandLine{Command: sh}, `{"command": ["sh"]}`, "give it once"},
		{bridge.CommandLine{Command: sh}, `{"slots": 2}`, "option slots belongs on the command line"},
		{bridge.CommandLine{Command: sh}, `{"comand": ["sh"]}`, `unknown option "comand": allowed are cancel_grace, command, dir`},
		{bridge.CommandLine{Command: sh}, `{"mode": "twice"}`, `"persistent" or "once" is wanted`},
		{bridge.CommandLine{Command: sh, Once: true}, `{"mode": "persistent"}`, "the command line says --once"},
		{bridge.CommandLine{Command: sh}, `{"cancel_grace": 5}`, `5 is not a duration, such as "500ms"`},
		{bridge.CommandLine{Command: sh}, `{"term_grace": "-1s"}`, "is not a duration"},
		{bridge.CommandLine{Command: sh}, `{"dir": 7}`, "7 is not a text"},
		{bridge.CommandLine{Command: sh}, `{"env": {"A": 1, "B": "secret"}}`, "names with texts are wanted"},
		{bridge.CommandLine{Command: sh}, `{"env": {"A=B": "secret"}}`, `"A=B" is not a variable`},
	} {
		t.Run(test.options, func(t *testing.T) {
			t.Parallel()
			test.line.Name = "test"
			w := sdktest.Start(t, bridge.Program(test.line, &buffer{}), sdktest.Unconfigured())
			err := w.Configure(t.Context(), sdk.Config{Queue: "test", Options: json.RawMessage(test.options)})
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v, want it to say %q", err, test.want)
			}
		})
	}
}

// The options alone are enough for everything but the name.
func TestOptionsGiveTheCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := sdktest.Start(t, bridge.Program(bridge.CommandLine{Name: "test"}, &buffer{}), sdktest.Options(t, map[string]any{
		"command": []string{"sh", "-c", `echo "$GREETING from $(pwd)"`}, "mode": "once", "dir": dir, "env": map[string]string{"GREETING": "hello"},
	}))
	want(t, w, `{}`, `"hello from `+dir+`"`)
}

// A child has the worker's environment, but nothing of what lies between the worker and its manager. (It changes the
// environment, so it runs alone.)
func TestEnvironment(t *testing.T) {
	for _, name := range []string{protocol.CookieKey, protocol.EnvLifeline, "PLUGIN_UNIX_SOCKET_DIR", protocol.EnvAPI, "PLAIN", "CHANGED"} {
		t.Setenv(name, "outer")
	}
	w := sdktest.Start(t, bridge.Program(bridge.CommandLine{Name: "test", Once: true, Command: []string{"env"}}, &buffer{}),
		sdktest.Options(t, map[string]any{"env": map[string]string{"CHANGED": "inner"}}))
	text, err := do(t, w, `{}`)
	var env string
	if err != nil || json.Unmarshal(text, &env) != nil {
		t.Fatalf("got %s, %v", text, err)
	}
	lines := strings.Split(env, "\n")
	for _, line := range []string{protocol.EnvAPI + "=outer", "PLAIN=outer", "CHANGED=inner"} {
		if !slices.Contains(lines, line) {
			t.Errorf("%s is missing", line)
		}
	}
	for _, line := range lines {
		for _, name := range []string{protocol.CookieKey, protocol.EnvLifeline, "PLUGIN_", "CHANGED=outer"} {
			if strings.HasPrefix(line, name) {
				t.Errorf("%s is passed on", line)
			}
		}
	}
}

// The command line says all that a manifest holds; the schema may stand in a file.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	schema := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(schema, []byte(`{"type":"object","required":["url"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	line, err := bridge.ParseCommandLine([]string{"--name", "thumbs", "--slots", "3", "--lock-key", "url,size", "--schema", schema,
		"--limit", "task_timeout=2m", "--limit", "max_failures=2", "--", "php", "worker.php", "--help"})
	if err != nil {
		t.Fatal(err)
	}
	m := sdktest.Start(t, bridge.Program(line, &buffer{}), sdktest.Unconfigured()).Describe()
	if m.GetName() != "thumbs" || m.GetSlots() != 3 || !slices.Equal(m.GetLockKey(), []string{"url", "size"}) ||
		m.GetPayloadSchema() != `{"type":"object","required":["url"]}` || m.GetDefaultLimits()["task_timeout"] != "2m" ||
		m.GetDefaultLimits()["max_failures"] != "2" || m.GetDescription() != "Runs php worker.php --help as a worker." {
		t.Errorf("got %v", m)
	}
}

// A wrong command line is refused in words that say what is wrong; a question for help is no mistake.
func TestCommandLineMistakes(t *testing.T) {
	t.Parallel()
	for want, arguments := range map[string][]string{
		"--name is missing":               {"--", "php"},
		"not defined: -nme":               {"--nme", "x"},
		"want NAME=VALUE":                 {"--name", "x", "--limit", "2m"},
		"--schema: give a JSON Schema or": {"--name", "x", "--schema", "no-such-file"},
	} {
		if _, err := bridge.ParseCommandLine(arguments); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want it to say %q", arguments, err, want)
		}
	}
	if _, err := bridge.ParseCommandLine([]string{"--help"}); !errors.Is(err, bridge.ErrHelp) {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(bridge.Usage(), "--name KIND") {
		t.Error("the help does not name its flags")
	}
}
