package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/drover-jobs/drover/protocol"
)

// settings is what the command line and the options come to.
type settings struct {
	command      []string
	once         bool
	dir          string
	env          map[string]string
	startTimeout time.Duration // until a persistent child says that it is ready
	cancelGrace  time.Duration // from asking for the end of a run to the harder way
	termGrace    time.Duration // from SIGTERM to SIGKILL of a persistent child
}

// The defaults end a child within 7 s, before the 10 s of a queue's default kill_grace, and say that a child is not ready
// before a manager's default start_timeout of 10 s does.
const (
	defaultStartTimeout = 8 * time.Second
	defaultCancelGrace  = 5 * time.Second
	defaultTermGrace    = 2 * time.Second
)

// setters says what each option does with its value: the one list of what is allowed.
func (s *settings) setters() map[string]func(json.RawMessage) error {
	return map[string]func(json.RawMessage) error{
		"command":       s.setCommand,
		"mode":          s.setMode,
		"dir":           func(v json.RawMessage) error { return text(v, &s.dir) },
		"env":           s.setEnv,
		"start_timeout": func(v json.RawMessage) error { return duration(v, &s.startTimeout) },
		"cancel_grace":  func(v json.RawMessage) error { return duration(v, &s.cancelGrace) },
		"term_grace":    func(v json.RawMessage) error { return duration(v, &s.termGrace) },
	}
}

// parseOptions reads the plugin's options strictly: every mistake is named, with what is allowed.
func parseOptions(line CommandLine, raw json.RawMessage) (settings, error) {
	s := settings{
		command: line.Command, once: line.Once,
		startTimeout: defaultStartTimeout, cancelGrace: defaultCancelGrace, termGrace: defaultTermGrace,
	}
	var given map[string]json.RawMessage
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return s, fmt.Errorf("the options of exec are not a JSON object: %w", err)
		}
	}
	setters := s.setters()
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(given)) {
		set, ok := setters[name]
		if !ok {
			problems = append(problems, unknown(name, slices.Sorted(maps.Keys(setters))))
			continue
		}
		if err := set(given[name]); err != nil {
			problems = append(problems, fmt.Errorf("option %s: %w", name, err))
		}
	}
	if len(problems) == 0 && len(s.command) == 0 {
		problems = append(problems, errors.New("there is no command: put it behind -- on the command line, or into the option command"))
	}
	return s, errors.Join(problems...)
}

// unknown says what is allowed, and of what belongs to the command line that it does.
func unknown(name string, allowed []string) error {
	switch name {
	case "name", "description", "version", "slots", "lock_key", "schema", "limits":
		return fmt.Errorf("option %s belongs on the command line (see exec --help): the manager asks for it before it gives the options", name)
	}
	return fmt.Errorf("unknown option %q: allowed are %s", name, strings.Join(allowed, ", "))
}

func (s *settings) setCommand(raw json.RawMessage) error {
	if len(s.command) > 0 {
		return errors.New("the command line has a command as well: give it once")
	}
	if err := json.Unmarshal(raw, &s.command); err != nil || len(s.command) == 0 || s.command[0] == "" {
		return errors.New(`a list of texts is wanted, such as ["php", "worker.php"]`)
	}
	return nil
}

func (s *settings) setMode(raw json.RawMessage) error {
	var mode string
	_ = json.Unmarshal(raw, &mode) // what is no text is none of the modes
	switch {
	case s.once && mode != "once":
		return errors.New("the command line says --once")
	case mode == "once":
		s.once = true
	case mode != "persistent":
		return errors.New(`"persistent" or "once" is wanted`)
	}
	return nil
}

// setEnv never shows a value: it may be a secret.
func (s *settings) setEnv(raw json.RawMessage) error {
	if err := json.Unmarshal(raw, &s.env); err != nil {
		return errors.New(`names with texts are wanted, such as {"APP_ENV": "prod"}`)
	}
	for name, value := range s.env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return fmt.Errorf("%q is not a variable that a process can have", name)
		}
	}
	return nil
}

func text(raw json.RawMessage, to *string) error {
	if err := json.Unmarshal(raw, to); err != nil || strings.TrimSpace(*to) == "" {
		return fmt.Errorf("%s is not a text", raw)
	}
	return nil
}

func duration(raw json.RawMessage, to *time.Duration) error {
	var value string
	err := json.Unmarshal(raw, &value)
	if err == nil {
		*to, err = time.ParseDuration(value)
	}
	if err != nil || *to <= 0 {
		return fmt.Errorf("%s is not a duration, such as \"500ms\" or \"5s\"", raw)
	}
	return nil
}

// environment is that of the children: the worker's, without what is between it and its manager, and the options' variables.
func (s *settings) environment() []string {
	var env []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		_, replaced := s.env[name]
		if !replaced && name != protocol.CookieKey && name != protocol.EnvLifeline && !strings.HasPrefix(name, "PLUGIN_") {
			env = append(env, variable)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.env)) {
		env = append(env, name+"="+s.env[name])
	}
	return env
}
