package scaffold

import (
	"fmt"
	"path/filepath"
	"strings"
)

// language is how a worker is written and run in one.
type language struct {
	files   []string // as they are written, in their order
	program []string // what exec runs, before the script; none for Go
	script  string
	once    bool
	about   string
}

func languageOf(name string) (language, error) {
	const lines = "The plugin exec runs it and speaks to it in lines of JSON: see plugins/exec/PROTOCOL.md."
	all := map[string]language{
		"go":     {files: []string{"go.mod", "main.go", "main_test.go", "README.md"}, about: "It is a program of its own, with Drover's SDK for Go."},
		"python": {files: []string{"worker.py", "schema.json", "README.md"}, program: []string{"python3"}, script: "worker.py", about: lines},
		"php":    {files: []string{"worker.php", "schema.json", "README.md"}, program: []string{"php"}, script: "worker.php", about: lines},
		"node":   {files: []string{"worker.mjs", "schema.json", "README.md"}, program: []string{"node"}, script: "worker.mjs", about: lines},
		"sh": {files: []string{"worker.sh", "schema.json", "README.md"}, program: []string{"sh"}, script: "worker.sh", once: true,
			about: "The plugin exec runs it once for each task: see plugins/exec/PROTOCOL.md, \"Once\"."},
	}
	lang, ok := all[name]
	if !ok {
		return lang, fmt.Errorf("there is no template for the language %q: choose one of %s", name, strings.Join(Langs(), ", "))
	}
	return lang, nil
}

// data is what the templates are filled with.
type data struct {
	Name, About string
	Steps       []string // commands that make and test it, in its own directory
	Lines       []string // the YAML
	Submit      string
	// For Go.
	GoVersion, Module, SDK string
	Requires               []string
	more                   map[string][]byte // files that are no templates
}

// slowPayload is a payload of every template whose task takes long.
const slowPayload = `{"name":"Ada","seconds":30}`

// prepare makes what the templates need and what the person is told.
func (l language) prepare(p Plan, absolute string) (*data, *Made, error) {
	d, m := &data{Name: p.Name, About: l.about}, &Made{}
	command := []string{filepath.Join(absolute, p.Name)}
	if l.script == "" {
		if err := d.readModule(p.SDK); err != nil {
			return nil, nil, err
		}
		d.Steps = []string{"go test ./...", shellLine("go", "build", "-o", p.Name, "."), shellLine("drover", "plugin", "test", "--slow", slowPayload, "./"+p.Name)}
		m.Next = []string{
			shellLine("go", "build", "-C", p.Dir, "-o", p.Name, ".") + " && " +
				shellLine("drover", "plugin", "test", "--slow", slowPayload, local(p.Dir, p.Name)),
		}
		m.Notes = append(m.Notes, fmt.Sprintf("The module %s is not published: go.mod names the copy in %s.", d.Module, p.SDK))
	} else {
		exec := p.Exec
		if exec == "" {
			exec = "/path/to/plugins/exec"
			m.Notes = append(m.Notes, "The plugin exec was not found beside drover: put its path into the configuration (in the source tree: make build, then bin/plugins/exec).")
		}
		command = append([]string{exec, "--name", p.Name, "--version", "0.1.0", "--description", "greets people", "--schema", filepath.Join(absolute, "schema.json")}, l.onceFlag()...)
		command = append(append(command, "--"), append(l.program, filepath.Join(absolute, l.script))...)
		d.Steps = []string{l.test("schema.json", l.script)}
		m.Next = []string{l.test(local(p.Dir, "schema.json"), local(p.Dir, l.script))}
	}
	d.Submit = shellLine("drover", "submit", p.Name, "name=Ada", "--wait")
	m.Next = append(m.Next, d.Submit)
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = scalar(word)
	}
	name := scalar(p.Name)
	d.Lines = []string{
		"plugins:", fmt.Sprintf("  %s:", name), fmt.Sprintf("    command: [%s]", strings.Join(words, ", ")),
		"queues:", fmt.Sprintf("  %s: {plugin: %s, max_workers: 2}", name, name),
	}
	m.YAML = strings.Join(d.Lines, "\n") + "\n"
	return d, m, nil
}

func (l language) onceFlag() []string {
	if l.once {
		return []string{"--once"}
	}
	return nil
}

// test is the line that tests the worker by way of exec.
func (l language) test(schema, script string) string {
	words := append([]string{"drover", "plugin", "test", "--exec", "--schema", schema}, l.onceFlag()...)
	return shellLine(append(append(words, "--slow", slowPayload), append(l.program, script)...)...)
}

// local is a file below a directory as a person types it, so that it is a path and not the name of a program.
func local(dir, name string) string {
	joined := filepath.Join(dir, name)
	if filepath.IsAbs(joined) || strings.HasPrefix(joined, "..") {
		return joined
	}
	return "./" + joined
}
