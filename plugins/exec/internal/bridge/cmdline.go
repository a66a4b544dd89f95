package bridge

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// CommandLine is what the manager must know before it gives any options, since a worker describes itself first, and
// optionally the command.
type CommandLine struct {
	// Name is the kind of task.
	Name        string
	Description string
	Version     string
	// Slots is how many tasks run at once, each in a child of its own.
	Slots int
	// LockKey names payload fields, as in sdk.Worker.
	LockKey []string
	// Schema is the payload's JSON Schema; empty accepts any object.
	Schema string
	// Limits are default settings of the queue.
	Limits map[string]string
	// Once asks for a child for each task.
	Once bool
	// Command is what stands behind "--"; empty when the options hold it.
	Command []string
	// Describe asks for the manifest instead of work.
	Describe bool
}

// ErrHelp says that the command line asks for Usage.
var ErrHelp = flag.ErrHelp

// defaultVersion is shown of a program that says none.
const defaultVersion = "1"

// ParseCommandLine reads the arguments of the program. The error is ErrHelp, or says what is wrong. A schema that is not
// given in place is read from its file.
func ParseCommandLine(arguments []string) (CommandLine, error) {
	c := CommandLine{Limits: map[string]string{}}
	var schema string
	flags := flag.NewFlagSet("exec", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&c.Name, "name", "", "")
	flags.StringVar(&c.Description, "description", "", "")
	flags.StringVar(&c.Version, "version", defaultVersion, "")
	flags.IntVar(&c.Slots, "slots", 1, "")
	flags.StringVar(&schema, "schema", "", "")
	flags.BoolVar(&c.Once, "once", false, "")
	flags.BoolVar(&c.Describe, "describe", false, "")
	flags.Func("lock-key", "", func(value string) error {
		c.LockKey = strings.Split(value, ",")
		return nil
	})
	flags.Func("limit", "", func(value string) error {
		name, limit, ok := strings.Cut(value, "=")
		if !ok || name == "" || limit == "" {
			return errors.New("want NAME=VALUE, such as task_timeout=2m")
		}
		c.Limits[name] = limit
		return nil
	})
	if err := flags.Parse(arguments); err != nil {
		return c, err
	}
	c.Command = flags.Args()
	if c.Name == "" {
		return c, errors.New("--name is missing: it is the kind of task that the command runs, such as --name thumbs")
	}
	if c.Description == "" {
		c.Description = "Runs a command as a worker."
		if len(c.Command) > 0 {
			c.Description = "Runs " + strings.Join(c.Command, " ") + " as a worker."
		}
	}
	c.Schema = schema
	if schema != "" && !strings.HasPrefix(strings.TrimSpace(schema), "{") {
		text, err := os.ReadFile(schema) //nolint:gosec // the operator names the file
		if err != nil {
			return c, fmt.Errorf("--schema: give a JSON Schema or the name of a file that holds one: %w", err)
		}
		c.Schema = string(text)
	}
	return c, nil
}

// Usage is the help text of the program.
func Usage() string {
	return `exec runs any command as a worker of Drover. A manager starts it and gives it tasks; it does nothing by itself.

  exec --name KIND [flags] -- COMMAND [ARGUMENT...]

  --name KIND           the kind of task that the command runs (needed here, not in the options: the manager asks first)
  --once                start the command for each task: payload on standard input, result from standard output,
                        exit code 0 for success; without it the command serves many tasks over lines of JSON
  --slots N             tasks at once, each in a process of its own; default 1
  --lock-key A,B        payload fields of which two running tasks never have the same values
  --schema FILE|JSON    JSON Schema of the payload; default any object
  --limit NAME=VALUE    a default for a setting of the queue, such as task_timeout=2m; may be repeated
  --description TEXT, --version TEXT
  --describe            print what the worker says of itself as JSON

In the manager's configuration:

  plugins:
    thumbs:
      command: [bin/plugins/exec, --name, thumbs, --, php, worker.php]
      options: {dir: /srv/thumbs, cancel_grace: 5s}
  queues:
    thumbs: {plugin: thumbs}

PROTOCOL.md describes the lines, the exit codes and the options; examples/ has workers in PHP, Python, Node and sh.
`
}
