package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// maxConfigSize bounds a configuration file, in bytes; a larger one is a mistake.
const maxConfigSize = 1 << 20

// Config is what a person writes in YAML. What may change while the manager runs is kept as text, so that the default limits
// of a plugin can lie under it; it has been checked against the table of settings all the same.
type Config struct {
	Manager ManagerConfig
	Redis   RedisConfig
	Locks   LocksConfig
	API     APIConfig
	Plugins map[string]PluginConfig
	Queues  map[string]QueueConfig
	// Schedules are those that this manager fires, together with all others that have them.
	Schedules map[string]ScheduleConfig

	// file and marks say where each path of a parsed configuration was written.
	file  string
	marks map[string]mark
}

// ManagerConfig is the manager itself.
type ManagerConfig struct {
	// Name tells managers apart that share one Redis; the host's name by default.
	Name string
	// StateDir is created with mode 0700. A relative path, here and below, is relative to the working directory.
	StateDir string
	// Socket is where the console and clients reach the manager with full rights (mode 0600).
	Socket string
	// PluginSocket is where workers reach the manager, to submit and wait only.
	PluginSocket string
	Log          LogConfig
	// Settings are the manager's live settings, as written.
	Settings settings.Layer
}

// LogConfig says how the manager writes its log, on standard error.
type LogConfig struct {
	// JSON writes one JSON object a line instead of text.
	JSON  bool
	Level slog.Level
}

// RedisConfig says where the broker is: in the manager itself, or at an address.
type RedisConfig struct {
	Embedded bool
	// Address is redis://HOST:PORT/DB, unix:///PATH?db=DB, redis-sentinel://HOST:PORT,HOST:PORT/DB?master=NAME or
	// redis-cluster://HOST:PORT,HOST:PORT; rediss... for TLS. It holds no password.
	Address  string
	Username string
	// PasswordFile names the file that holds the password; see Password.
	PasswordFile string
	// SentinelUsername and SentinelPasswordFile are those of the sentinels themselves.
	SentinelUsername     string
	SentinelPasswordFile string
	// WaitReplicas is how many replicas must have a task before its submit through this manager is answered.
	WaitReplicas int
}

// LocksConfig says where the locks of tasks lie.
type LocksConfig struct {
	// Memcached are HOST:PORT or /PATH of memcached servers; none for locks in Redis.
	Memcached []string
	// Timeout bounds one call to memcached; half a second when nothing is written.
	Timeout time.Duration
}

// APIConfig is the API over the network, which is there when Listen says where, and the limits of all who call, also on the sockets.
type APIConfig struct {
	// Listen is HOST:PORT.
	Listen string
	// Certificate and Key are PEM files for TLS; they are read again when they have changed.
	Certificate, Key string
	// Tokens are who may call, by name.
	Tokens map[string]TokenConfig
	// Origins are whose web pages may call the API from a browser; none by default.
	Origins []string
	// Rate, CallerWaits and Waits bound what callers may ask for, on the sockets as well: see api.Allowance.
	Rate               settings.Rate
	CallerWaits, Waits int
}

// TokenConfig is one bearer token.
type TokenConfig struct {
	// Role is what may be done with it: "submit", "observe" or "operate".
	Role string
	// File holds the token: at least 20 characters in one line, readable by the manager alone.
	File string
}

// PluginConfig is one worker program.
type PluginConfig struct {
	// Command is the program and its arguments. It is never given to a shell nor looked up in PATH.
	Command []string
	// Env is all of the environment that the program gets beyond the basics.
	Env map[string]string
	// Options is a JSON object for the program itself; {} when nothing is written.
	Options json.RawMessage
	// SHA256 is the sum, in hexadecimal, that the program must have to be started; empty takes any.
	SHA256 string
	// User is who its processes run as, by name or number; empty is the manager's own user. It takes a manager that runs as root.
	User string
	// Limits are what the kernel holds each process to; nothing written is the manager's own, and no core dumps.
	Limits ProcessLimits
}

// ProcessLimits are limits of the kernel for one process (setrlimit(2)); 0 is the manager's own.
type ProcessLimits struct {
	OpenFiles uint64
	Processes uint64 // of the user, not of the worker alone
	FileSize  settings.Bytes
	CPU       time.Duration // whole seconds; the process is killed after it
	// Core is the size of a core dump; 0 for none, because one holds what tasks hold.
	Core settings.Bytes
}

// QueueConfig is one queue of this manager.
type QueueConfig struct {
	// Plugin names the program that runs the queue's tasks.
	Plugin string
	// Settings are the queue's live settings, as written.
	Settings settings.Layer
}

// Default returns what holds for everything that a file does not say. It is not complete: which Redis to use has no default,
// so that nobody runs on the embedded one by an oversight.
func Default() *Config {
	c := &Config{
		Manager: ManagerConfig{Name: hostName(), StateDir: "var", Log: LogConfig{Level: slog.LevelInfo}, Settings: settings.Layer{}},
		API:     defaultAPI(),
		Plugins: map[string]PluginConfig{},
		Queues:  map[string]QueueConfig{}, Schedules: map[string]ScheduleConfig{},
	}
	c.placeSockets()
	return c
}

// Load reads and checks the file. The error is a *ConfigError when the file could be read.
func Load(path string) (*Config, error) {
	f, err := os.Open(path) //nolint:gosec // The path is the operator's own.
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxConfigSize+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return Parse(path, data)
}

// Parse reads a configuration and checks it; name stands for the file in errors. The error is a *ConfigError with every
// problem that was found.
func Parse(name string, data []byte) (*Config, error) {
	d := newDecoder(name)
	c := d.decode(data)
	// What could not be read is not complained about a second time for being absent or wrong.
	for _, p := range c.check() {
		if !d.refused(p.Path) {
			d.problems = append(d.problems, p)
		}
	}
	if err := configError(d.problems); err != nil {
		return nil, err
	}
	return c, nil
}

// Validate checks a configuration that was put together or changed in code. The error is a *ConfigError with every problem.
func (c *Config) Validate() error { return configError(c.check()) }

// Source is what the store of live settings is made from. The caller adds the default limits of the plugins.
func (c *Config) Source() settings.Source {
	source := settings.Source{Manager: c.Manager.Settings, Queues: make(map[string]settings.QueueSource, len(c.Queues))}
	for name, q := range c.Queues {
		source.Queues[name] = settings.QueueSource{File: q.Settings}
	}
	source.Schedules = make(map[string]settings.Layer, len(c.Schedules))
	for name, s := range c.Schedules {
		source.Schedules[name] = s.Settings
	}
	return source
}

// placeSockets puts the sockets that have no place into the state directory.
func (c *Config) placeSockets() {
	if c.Manager.Socket == "" {
		c.Manager.Socket = filepath.Join(c.Manager.StateDir, "drover.sock")
	}
	if c.Manager.PluginSocket == "" {
		c.Manager.PluginSocket = filepath.Join(c.Manager.StateDir, "plugin.sock")
	}
}

// hostName makes a valid name out of the host's.
func hostName() string {
	host, err := os.Hostname()
	if err != nil {
		return "drover"
	}
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && nameByte(byte(r)) {
			return r
		}
		return '-'
	}, strings.ToLower(host))
	name = strings.TrimLeft(name, "._-")
	name = name[:min(len(name), maxNameLength)]
	if name == "" {
		return "drover"
	}
	return name
}
