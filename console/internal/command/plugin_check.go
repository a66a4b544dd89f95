package command

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest/conform"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest/launch"
)

// checkJSON is one check of `plugin test` for a program.
type checkJSON struct {
	conform.Result
	TookMS int64 `json:"took_ms"`
}

type checksJSON struct {
	Command   []string    `json:"command"`
	Passed    int         `json:"passed"`
	Failed    int         `json:"failed"`
	NotTested int         `json:"not_tested"`
	Checks    []checkJSON `json:"checks"`
}

func runPluginTest(ctx context.Context, env *Env, args *Args, words []string) error {
	if len(words) == 0 {
		return usageError("plugin test needs a command: drover plugin test COMMAND [ARGUMENT...]")
	}
	command, err := testedCommand(args, words)
	if err != nil {
		return err
	}
	subject, err := testedSubject(env, args, command)
	if err != nil {
		return err
	}
	answer := checksJSON{Command: command, Checks: []checkJSON{}}
	var writing error
	conform.Run(ctx, subject, func(r conform.Result) {
		r = adviseExec(args, words, r)
		answer.Checks = append(answer.Checks, checkJSON{Result: r, TookMS: r.Took.Milliseconds()})
		switch r.State {
		case conform.Pass:
			answer.Passed++
		case conform.Fail:
			answer.Failed++
		case conform.NotTested:
			answer.NotTested++
		}
		if writing == nil && !env.JSON {
			writing = tellCheck(env, r)
		}
	})
	switch {
	case writing != nil:
		return writing
	case env.JSON:
		writing = screen.WriteJSON(env.Out, answer)
	default:
		_, writing = fmt.Fprintf(env.Out, "\n%d passed, %d failed, %d not tested\n", answer.Passed, answer.Failed, answer.NotTested)
	}
	switch {
	case writing != nil:
		return writing
	case ctx.Err() != nil:
		return ctx.Err()
	case answer.Failed > 0:
		return told(Failed)
	}
	return nil
}

// adviseExec adds to the failure of a script, which was started as a worker and is none, what would make one of it.
func adviseExec(args *Args, words []string, r conform.Result) conform.Result {
	script := slices.Contains([]string{"python", "python3", "php", "node", "sh", "bash", "ruby", "perl", "deno", "bun"}, filepath.Base(words[0]))
	switch filepath.Ext(words[0]) {
	case ".py", ".php", ".mjs", ".js", ".sh", ".rb", ".pl":
		script = true
	}
	if script && r.State == conform.Fail && r.Check == "handshake" && !args.Has("exec") {
		r.Advice = fmt.Sprintf("add --exec, if this is a script that the plugin exec is to run: drover plugin test --exec [--schema FILE] %s; else: %s",
			strings.Join(words, " "), r.Advice)
	}
	return r
}

// testedCommand is the command that is started, by way of exec when that is asked for.
func testedCommand(args *Args, words []string) ([]string, error) {
	if !args.Has("exec") {
		for _, flag := range []string{"schema", "once"} {
			if args.Has(flag) {
				return nil, usageError("--%s is for --exec: a program that is a worker says such things itself", flag)
			}
		}
		return words, nil
	}
	path := execPath(args)
	if path == "" {
		return nil, usageError("the plugin exec was not found beside drover: say where it is with --exec=PATH (in the source tree: make build, then bin/plugins/exec)")
	}
	command := []string{path, "--name", "worker-under-test"}
	if schema := args.Text("schema"); schema != "" {
		command = append(command, "--schema", schema)
	}
	if args.Has("once") {
		command = append(command, "--once")
	}
	return append(append(command, "--"), words...), nil
}

// testedSubject is the worker and what the command line says of it.
func testedSubject(env *Env, args *Args, command []string) (conform.Subject, error) {
	var s conform.Subject
	start := func(inherit bool) func(context.Context) (conform.Life, error) {
		return func(ctx context.Context) (conform.Life, error) {
			p, err := launch.Start(ctx, launch.Spec{Command: command, Inherit: inherit})
			if err != nil {
				return nil, err // not p: a nil process is no life
			}
			return p, nil
		}
	}
	s.Start, s.Inherit = start(false), start(true)
	var payload json.RawMessage
	for flag, to := range map[string]*json.RawMessage{"options": &s.Options, "payload": &payload, "slow": &s.Slow, "noisy": &s.Noisy, "panic": &s.Panic} {
		var err error
		if *to, err = jsonFlag(env, args, flag); err != nil {
			return s, err
		}
	}
	if payload != nil {
		s.Payloads = []json.RawMessage{payload}
	}
	timeout, err := args.Duration("timeout")
	s.TaskTimeout = timeout
	return s, err
}

// tellCheck writes one check for a person.
func tellCheck(env *Env, r conform.Result) error {
	word, paint := "pass", screen.Good
	lines := []string{r.Seen}
	switch r.State {
	case conform.Pass:
	case conform.NotTested:
		word, paint = "not tested", screen.Faint
	case conform.Fail:
		word, paint = "FAIL", screen.Bad
		lines = []string{"expected: " + r.Expected, "seen: " + r.Seen, "do: " + r.Advice}
	}
	style := env.style()
	const stateColumns, nameColumns = len("not tested") + gapColumns, len("environment") + gapColumns
	head := style.Paint(paint, screen.Pad(word, stateColumns, false)) + screen.Pad(r.Check, nameColumns, false)
	var b strings.Builder
	for _, line := range lines {
		rows := []string{screen.Clean(line)}
		if style.Width > 0 {
			rows = screen.Wrap(rows[0], max(minText, style.Width-stateColumns-nameColumns))
		}
		for _, row := range rows {
			b.WriteString(head + row + "\n")
			head = screen.Pad("", stateColumns+nameColumns, false)
		}
	}
	_, err := env.Out.Write([]byte(b.String()))
	return err
}

// minText is the least width of a text beside a heading, in columns.
const minText = 20
