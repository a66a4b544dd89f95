package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"text/template"

	"github.com/drover-jobs/drover/protocol/task"
)

//go:embed templates
var templates embed.FS

// Plan is what is to be made.
type Plan struct {
	// Name is the kind of task, the plugin and the queue.
	Name string
	// Lang is one of Langs.
	Lang string
	// Dir is the directory to make; empty for one of the worker's name.
	Dir string
	// SDK is the directory of a copy of Drover's module; only Go needs it.
	SDK string
	// Exec is the path of the plugin exec; Go does not need it.
	Exec string
}

// Made is what there is now.
type Made struct {
	Dir string
	// Files are relative to Dir.
	Files []string
	// YAML is what to paste into the configuration.
	YAML string
	// Next are the commands to type, in their order; the last one needs the manager with that configuration.
	Next []string
	// Notes are what a person should know besides.
	Notes []string
}

// Langs are the languages that there are templates for.
func Langs() []string { return []string{"go", "python", "php", "node", "sh"} }

// dirName is what a worker's name must be to name a directory, a program and a Go module as well.
var dirName = regexp.MustCompile(`^[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*$`)

// Check says what is wrong with a plan, as far as can be said without looking at the disk.
func (p Plan) Check() error {
	if err := task.CheckName(p.Name); err != nil {
		return err
	}
	if !dirName.MatchString(p.Name) {
		return fmt.Errorf("%q cannot name a program: begin with a letter, and have letters, digits, '_' or '-' on both sides of each '.'", p.Name)
	}
	if _, err := languageOf(p.Lang); err != nil {
		return err
	}
	return nil
}

// Write makes the directory. An error leaves none behind, unless it says otherwise.
func Write(p Plan) (*Made, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	lang, err := languageOf(p.Lang)
	if err != nil {
		return nil, err
	}
	if p.Dir == "" {
		p.Dir = p.Name
	}
	absolute, err := filepath.Abs(p.Dir)
	if err != nil {
		return nil, fmt.Errorf("find the directory %s: %w", p.Dir, err)
	}
	data, made, err := lang.prepare(p, absolute)
	if err != nil {
		return nil, err
	}
	files, err := render(p.Lang, lang, data)
	if err != nil {
		return nil, err
	}
	for name, text := range data.more {
		files = append(files, file{name: name, text: text})
	}
	if err := put(p.Dir, files); err != nil {
		return nil, err
	}
	made.Dir = p.Dir
	for _, f := range files {
		made.Files = append(made.Files, f.name)
	}
	return made, nil
}

// file is one that is to be written.
type file struct {
	name string
	text []byte
	mode fs.FileMode
}

// render fills the templates of a language.
func render(name string, lang language, data *data) ([]file, error) {
	all, err := template.ParseFS(templates, "templates/"+name+"/*.tmpl", "templates/common/*.tmpl")
	if err != nil {
		return nil, fmt.Errorf("read the templates: %w", err)
	}
	files := make([]file, 0, len(lang.files))
	for _, name := range lang.files {
		var text bytes.Buffer
		if err := all.ExecuteTemplate(&text, name+".tmpl", data); err != nil {
			return nil, fmt.Errorf("fill the template of %s: %w", name, err)
		}
		f := file{name: name, text: text.Bytes()}
		if bytes.HasPrefix(f.text, []byte("#!")) {
			f.mode = 0o111
		}
		files = append(files, f)
	}
	return files, nil
}

// put makes the directory, which must not be there or be empty, and the files.
func put(dir string, files []file) (err error) {
	const dirMode, fileMode = 0o755, 0o644
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(dir, dirMode); err != nil { //nolint:gosec // source code, for everybody to read
			return fmt.Errorf("make the directory: %w", err)
		}
		defer func() {
			if err != nil {
				_ = os.Remove(dir) // not when something of somebody else's is in it
			}
		}()
	case err != nil:
		return fmt.Errorf("look into the directory %s: %w", dir, err)
	case len(entries) > 0:
		return fmt.Errorf("%s is there and not empty: nothing was written; choose another directory with --dir, or another name", dir)
	}
	var written []string
	defer func() {
		if err != nil {
			for _, name := range written {
				_ = os.Remove(name) // the first error says it all
			}
		}
	}()
	for _, f := range files {
		name := filepath.Join(dir, path.Clean(f.name))
		to, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode|f.mode) //nolint:gosec // below the new directory
		if err != nil {
			return fmt.Errorf("write a new file: %w", err)
		}
		written = append(written, name)
		_, err = to.Write(f.text)
		if err := errors.Join(err, to.Close()); err != nil {
			return fmt.Errorf("write a new file: %w", err)
		}
	}
	return nil
}

// plainYAML is what YAML takes for a text without quotes, with words that it does not excluded by word.
var plainYAML = regexp.MustCompile(`^[A-Za-z/.][A-Za-z0-9/._+-]*$|^--[a-z0-9-]*$`)

// scalar is a text as YAML reads it in a list.
func scalar(text string) string {
	switch strings.ToLower(text) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return `"` + text + `"`
	}
	if plainYAML.MatchString(text) {
		return text
	}
	return fmt.Sprintf("%q", text)
}

// shellWord is a text as sh reads it.
func shellWord(text string) string {
	if regexp.MustCompile(`^[A-Za-z0-9/._=+-]+$`).MatchString(text) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// shellLine is a command as sh reads it.
func shellLine(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellWord(word)
	}
	return strings.Join(quoted, " ")
}
