package orchestrator_test

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

const goodConfig = `
manager:
  name: m1
  state_dir: state
  plugin_socket: /run/p.sock
  drain_timeout: 5s
  log: {format: json, level: warn}
locks: {memcached: ["10.0.0.1:11211", /run/m.sock], timeout: 300ms}
redis:
  address: redis://127.0.0.1:6379/3
  username: u
  password_file: secret
plugins:
  echo:
    command: [./bin/echo, --n, 3]
    env: {A: 1, B: "yes", C: ""}
    options: {a: [1, 2.50, 0x10, 12345678901234567890123], b: {c: null, d: true, e: 2020-01-02, f: <&>}}
  plain:
    command: [/bin/plain]
    sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
    user: nobody
    limits: {open_files: 100, processes: 20, file_size: 1GiB, cpu: 10m, core: 1MiB}
queues:
  q.1: {plugin: echo, max_workers: 2, worker_idle: off, rate: 10/s}
  other: {plugin: plain, slots: "3"}
schedules:
  nightly: {queue: q.1, cron: "30 3 * * 1-5", time_zone: Europe/Berlin, jitter: 5m, payload: {url: "x", n: 010, deep: {a: [1]}}}
  often: {queue: elsewhere, every: 10m, overlap: queue, catch_up: none, enabled: false}
`

// What a person writes arrives as written: settings as text, options as JSON with every digit, sockets beside the state.
func TestParse(t *testing.T) {
	t.Parallel()
	c, err := orchestrator.Parse("x.yaml", []byte(goodConfig))
	if err != nil {
		t.Fatal(err)
	}
	wantManager := orchestrator.ManagerConfig{
		Name: "m1", StateDir: "state", Socket: "state/drover.sock", PluginSocket: "/run/p.sock",
		Log: orchestrator.LogConfig{JSON: true, Level: slog.LevelWarn}, Settings: settings.Layer{"drain_timeout": "5s"},
	}
	if !reflect.DeepEqual(c.Manager, wantManager) {
		t.Errorf("manager: %+v\nwant     %+v", c.Manager, wantManager)
	}
	if want := (orchestrator.RedisConfig{Address: "redis://127.0.0.1:6379/3", Username: "u", PasswordFile: "secret"}); c.Redis != want {
		t.Errorf("redis: %+v", c.Redis)
	}
	wantPlugins := map[string]orchestrator.PluginConfig{
		"echo": {
			Command: []string{"./bin/echo", "--n", "3"}, Env: map[string]string{"A": "1", "B": "yes", "C": ""},
			Options: json.RawMessage(`{"a":[1,2.50,16,12345678901234567890123],"b":{"c":null,"d":true,"e":"2020-01-02","f":"<&>"}}`),
		},
		"plain": {
			Command: []string{"/bin/plain"}, Env: map[string]string{}, Options: json.RawMessage(`{}`),
			SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", User: "nobody",
			Limits: orchestrator.ProcessLimits{OpenFiles: 100, Processes: 20, FileSize: settings.GiB, CPU: 10 * time.Minute, Core: settings.MiB},
		},
	}
	if want := (orchestrator.LocksConfig{Memcached: []string{"10.0.0.1:11211", "/run/m.sock"}, Timeout: 300 * time.Millisecond}); !reflect.DeepEqual(c.Locks, want) {
		t.Errorf("locks: %+v", c.Locks)
	}
	if !reflect.DeepEqual(c.Plugins, wantPlugins) {
		t.Errorf("plugins: %+v\nwant     %+v", c.Plugins, wantPlugins)
	}
	wantSource := settings.Source{
		Manager: settings.Layer{"drain_timeout": "5s"},
		Queues: map[string]settings.QueueSource{
			"q.1":   {File: settings.Layer{"max_workers": "2", "worker_idle": "off", "rate": "10/s"}},
			"other": {File: settings.Layer{"slots": "3"}},
		},
		Schedules: map[string]settings.Layer{
			"nightly": {"cron": "30 3 * * 1-5", "time_zone": "Europe/Berlin", "jitter": "5m", "payload": `{"deep":{"a":[1]},"n":8,"url":"x"}`},
			"often":   {"every": "10m", "overlap": "queue", "catch_up": "none", "enabled": "false"},
		},
	}
	if !reflect.DeepEqual(c.Source(), wantSource) || c.Queues["q.1"].Plugin != "echo" || c.Schedules["often"].Queue != "elsewhere" {
		t.Errorf("source: %+v\nqueues: %+v", c.Source(), c.Queues)
	}
	if _, err := settings.NewStore(c.Source(), slog.New(slog.DiscardHandler)); err != nil {
		t.Errorf("the source makes no store: %v", err)
	}
}

// A refusal says file, line, path, value and what is allowed, and guesses what was meant; secrets are not repeated.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	const head = "redis: {embedded: true}\nplugins: {p: {command: [./p]}}\n" // what follows begins in line 3
	tests := []struct {
		name, yaml string
		want       []string
	}{
		{"range", head + "queues:\n  a:\n    plugin: p\n    max_workers: 0", []string{
			`f:6: queues.a.max_workers: "0" is below 1; allowed: a whole number from 1 to 1024`,
		}},
		{"unit", head + "queues:\n  a:\n    plugin: p\n    task_timeout: 90", []string{
			`f:6: queues.a.task_timeout: "90" has no unit; write 90s, 90m or 90h; allowed: a duration from 100ms to 7d`,
		}},
		{"manager's unit", head + "manager: {drain_timeout: 1x}", []string{`f:3: manager.drain_timeout: "1x" is not a duration; allowed: `}},
		{"rule", head + "queues:\n  a:\n    plugin: p\n    slots: 20000\n    buffer: 65000\n    max_workers: 600", []string{
			`f:6: queues.a.slots: "20000" is above 1024`,
		}},
		{"rule shown where it is written", head + "queues:\n  a:\n    plugin: p\n    retry_backoff_max: 1s", []string{
			`f:6: queues.a.retry_backoff: "5s" is more than retry_backoff_max, which is 1s; allowed: `,
		}},
		{"unknown setting", head + "queues:\n  a:\n    plugin: p\n    max-worker: 3", []string{
			`f:6: queues.a.max-worker: is not a known key; did you mean max_workers?; allowed: buffer, `,
		}},
		{"unknown section", head + "queue: {}", []string{`f:3: queue: is not a known key; did you mean queues?; allowed: api, locks, manager, plugins, queues, redis, schedules`}},
		{"unknown key hides its value", "redis: {embedded: true, passwrd: hunter2}", []string{`f:1: redis.passwrd: is not a known key; did you mean password`}},
		{"password", "redis:\n  address: redis://h:1\n  password: hunter2", []string{`f:3: redis.password: does not belong into this file; `}},
		{"address with password", "redis:\n  address: redis://u:hunter2@h:1", []string{`f:2: redis.address: holds a user or password; `}},
		{"address with broken password", "redis:\n  address: redis://u:hunter2%@h:1", []string{`f:2: redis.address: is not an address; `}},
		{"twice", head + "queues:\n  a:\n    plugin: p\n    slots: 2\n    slots: 3\n  a: {plugin: p}", []string{
			`f:7: queues.a.slots: is written twice, first in line 6; keep one`, `f:8: queues.a: is written twice, first in line 4; keep one`,
		}},
		{"types", head + "manager: [1]\nqueues:\n  a:\n    plugin: p\n    slots: [4]\n    rate: {}\n    buffer:\n  b: text", []string{
			`f:3: manager: is a list; allowed: keys with values`, `f:7: queues.a.slots: is a list; allowed: a whole number`,
			`f:8: queues.a.rate: is a mapping`, `f:9: queues.a.buffer: has no value; allowed: `, `f:10: queues.b: is a single value of type str`,
		}},
		{"schedule", head + "schedules:\n  s:\n    cron: 61 3 * * *\n    queue: Q\n  t:\n    queue: q\n    every: 10m\n    cron: '@daily'\n  u: {queue: q}\n  v: {every: 1h}", []string{
			`f:5: schedules.s.cron: "61 3 * * *" is not a cron expression: end of range (61) above maximum (59): 61; allowed: five fields, minute to day of the week`,
			`f:6: schedules.s.queue: "Q" is not the name of a queue`,
			`f:10: schedules.t.cron: "@daily" is there, and so is every, which is 10m; allowed: one of cron and every, and the other off`,
			`f:11: schedules.u.cron: "off" is off, and so is every: it would never be due`, `f:12: schedules.v.queue: is missing`,
		}},
		{"schedule's payload and words", head + "schedules:\n  s:\n    queue: q\n    every: 90\n    payload: [1]\n    overlap: wait\n    when: now\n    jitter: 5m", []string{
			`f:6: schedules.s.every: "90" has no unit`, `f:7: schedules.s.payload: is a list; allowed: keys with values`,
			`f:8: schedules.s.overlap: "wait" is not one of the choices`, `f:9: schedules.s.when: is not a known key`,
		}},
		{"bool", "redis: {embedded: maybe}", []string{`f:1: redis.embedded: "maybe" is not known here; allowed: one of false, true`}},
		{"log", head + "manager: {log: {format: jsn, level: loud}}", []string{
			`f:3: manager.log.format: "jsn" is not known here; did you mean json?; allowed: one of json, text`, `f:3: manager.log.level: "loud" is not known here; allowed: one of debug, error, info, warn`,
		}},
		{"command as text", "redis: {embedded: true}\nplugins:\n  p:\n    command: bin/p --x", []string{
			`f:4: plugins.p.command: "bin/p --x" is a single value of type str; allowed: a list of the program and its arguments`,
		}},
		{"command without path", "redis: {embedded: true}\nplugins: {p: {command: [php]}, q: {}, r: {command: []}}", []string{
			`f:2: plugins.p.command: "php" has no slash; programs are not looked up in PATH; allowed: ./NAME`, `f:2: plugins.q.command: is missing`, `f:2: plugins.r.command: is missing`,
		}},
		{"env", "redis: {embedded: true}\nplugins:\n  p:\n    command: [./p]\n    env:\n      A-B: 1\n      DROVER_X: 2\n      C: [1]\n      D:", []string{
			`f:6: plugins.p.env.A-B: is not the name of an environment variable`, `f:7: plugins.p.env.DROVER_X: is a name that the manager itself uses`,
			`f:8: plugins.p.env.C: is a list`, `f:9: plugins.p.env.D: has no value`,
		}},
		{"options", "redis: {embedded: true}\nplugins:\n  p:\n    command: [./p]\n    options:\n      a: .inf\n      b: [1, !x 2]\n      c: {d: 1, d: 2}\n      e: !!binary aGk=\n      f: &f 1\n      g: *f", []string{
			`f:6: plugins.p.options.a: is not a number that JSON knows`, `f:7: plugins.p.options.b[1]: has the type !x`, `f:8: plugins.p.options.c.d: is written twice`,
			`f:9: plugins.p.options.e: has the type !!binary`, `f:11: plugins.p.options.g: is an alias (*), which is not read`,
		}},
		{"options as list", "redis: {embedded: true}\nplugins:\n  p:\n    command: [./p]\n    options: [1]", []string{`f:5: plugins.p.options: is a list`}},
		{"names", "redis: {embedded: true}\nmanager: {name: My Host}\nplugins: {P: {command: [./p]}}\nqueues:\n  \"a{b}\": {plugin: P}\n  manager: {plugin: P}\n  .x: {plugin: P}", []string{
			`f:2: manager.name: "My Host" is not a valid name; allowed: lower case letters`, `f:3: plugins.P: "P" is not a valid name`, `f:5: queues.a{b}: "a{b}" is not a valid name`,
			`f:6: queues.manager: is a name that stands for the manager itself`, `f:7: queues..x: ".x" is not a valid name`,
		}},
		{"plugin of a queue", head + "queues:\n  a: {plugin: q1}\n  b: {}\n  c: {plugin: pp}", []string{
			`f:4: queues.a.plugin: "q1" is not a plugin of this file; allowed: one of p`, `f:5: queues.b.plugin: is missing; allowed: one of p`, `f:6: queues.c.plugin: "pp" is not a plugin`,
		}},
		{"sockets", "redis: {embedded: true}\nmanager:\n  state_dir: " + strings.Repeat("d", 100) + "\n  plugin_socket: x", []string{
			`f:2: manager.socket: "dddddddddd`,
		}},
		{"same socket", "redis: {embedded: true}\nmanager:\n  socket: x\n  plugin_socket: x", []string{`f:4: manager.plugin_socket: "x" is the same as manager.socket`}},
		{"empty text", "redis: {embedded: true}\nmanager: {state_dir: ''}", []string{`f:2: manager.state_dir: is empty; leave the key out for its default`}},
		{"locks", head + "locks:\n  memcached: [nohost, \"h:0\", h:1]\n  timeout: 1m\n  tmeout: 1s", []string{
			`f:4: locks.memcached[0]: "nohost" is not the address of a server; allowed: HOST:PORT`, `f:4: locks.memcached[1]: "h:0" is not the address`,
			`f:5: locks.timeout: "1m" is out of range; allowed: 10ms to 2s`, `f:6: locks.tmeout: is not a known key; did you mean timeout?`,
		}},
		{"api", head + "api:\n  listen: nowhere\n  key: k\n  tokens:\n    a: {role: king, file: f, token: hunter2}\n    B: {role: submit}", []string{
			`f:3: api.certificate: is missing; the API is on the network with TLS only`, `f:4: api.listen: "nowhere" is not an address to listen on; allowed: HOST:PORT`,
			`f:7: api.tokens.a.role: "king" is not a role; allowed: one of observe, operate, submit`, `f:7: api.tokens.a.token: does not belong into this file`,
			`f:8: api.tokens.B: "B" is not a valid name`,
		}},
		{"api without an address", head + "api: {key: k}", []string{`f:3: api.listen: is missing, so the API is not on the network`}},
		{"api without tokens", head + "api: {listen: 'h:1', key: k, certificate: c}", []string{`f:3: api.tokens: has none, so nobody could call`}},
		{"program", "redis: {embedded: true}\nplugins:\n  p:\n    command: [./p]\n    sha256: abc\n    user: a b\n    limits: {open_files: 0, cpu: 1500ms, core: x}", []string{
			`f:5: plugins.p.sha256: "abc" is not a SHA-256`, `f:6: plugins.p.user: "a b" is not a user`, `f:7: plugins.p.limits.core: "x" `, `f:7: plugins.p.limits.cpu: "1.5s" is not a number of whole seconds`,
			`f:7: plugins.p.limits.open_files: "0" is not a whole number above 0`,
		}},
		{"no redis", "", []string{`f: redis: does not say where Redis is; allowed: embedded: true, or address: redis://HOST:6379/0`}},
		{"two redis", "redis:\n  embedded: true\n  address: redis://h", []string{`f:3: redis.address: is for a Redis at an address, but redis.embedded is true`}},
		{"sentinels", "redis:\n  address: redis-sentinel://a,b/0\n  sentinel_username: u\n  wait_replicas: 17", []string{
			`f:2: redis.address: "redis-sentinel://a,b/0" does not say which primary the sentinels watch`,
			`f:3: redis.sentinel_username: "u" has no password`, `f:4: redis.wait_replicas: "17" is out of range; allowed: 0 to 16`,
		}},
		{"sentinels' password without sentinels", "redis: {address: 'redis-cluster://a,b', sentinel_password_file: x}", []string{`f:1: redis.sentinel_password_file: "x" is for sentinels, but redis.address names none`}},
		{"passwords of a set", "redis:\n  address: redis-sentinel://:hunter2@a,b/0?master=m", []string{`f:2: redis.address: holds a user or password; `}},
		{"password of sentinels", "redis:\n  address: redis-sentinel://a,b/0?master=m&sentinel_password=hunter2", []string{`f:2: redis.address: holds the user or password of the sentinels; `}},
		{"wait in the address", "redis:\n  address: redis-cluster://a,b?wait_replicas=1", []string{`f:2: redis.address: "redis-cluster://a,b?wait_replicas=1" has the parameter wait_replicas; use the key`}},
		{"wait for what", "redis: {embedded: true, wait_replicas: 1}", []string{`f:1: redis.wait_replicas: "1" is for a Redis with replicas, but redis.embedded is true`}},
		{"wait for many", "redis: {address: 'redis://h', wait_replicas: many}", []string{`f:1: redis.wait_replicas: "many" is not a number; allowed: 0 to 16`}},
		{"user without password", "redis: {address: 'redis://h', username: u}", []string{`f:1: redis.username: "u" has no password`}},
		{"merge", head + "manager: {<<: {name: x}}", []string{`f:3: manager: merges (<<) are not read; write the keys out`}},
		{"key that is a list", head + "manager: {[a]: 1}", []string{`f:3: manager: has a key that is a list`}},
		{"key with a line end", head + "manager: {\"a\\nb\": 1}", []string{`f:3: manager."a\nb": is not a known key`}},
		{"two documents", "redis: {embedded: true}\n---\nredis: {}", []string{`f:2: a second document begins here`}},
		{"tab", "redis:\n  embedded: true\n\tx: 1", []string{`f:3: is not valid YAML: found a tab character that violates indentation`}},
		{"indentation", "redis:\n  embedded: true\n x: 1", []string{`f:3: is not valid YAML: did not find expected key`}},
		{"unknown anchor", "redis:\n  address: *x", []string{`f:2: is not valid YAML: unknown anchor 'x' referenced`}},
		{"not even text", "\xff\xfe\xff", []string{`f: is not valid YAML: `}},
		{"too large", "#" + strings.Repeat("x", 1<<20), []string{`f: is too large for a configuration; allowed: up to 1MiB`}},
		{"all at once, in the order of the file", "redis: {embedde: true}\nmanager: {drain_timeout: 5, nme: x}\nqueues:\n  a: {plugin: p, slots: 0, priority: sys}", []string{
			`f:1: redis.embedde: is not a known key; did you mean embedded?`, `f:2: manager.drain_timeout: "5" has no unit`, `f:2: manager.nme: is not a known key; did you mean name?`,
			`f:4: queues.a.plugin: "p" is not a plugin of this file; allowed: a plugin that is described under plugins`,
			`f:4: queues.a.priority: "sys" is not one of the choices`, `f:4: queues.a.slots: "0" is below 1`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := orchestrator.Parse("f", []byte(tt.yaml))
			var invalid *orchestrator.ConfigError
			if c != nil || !errors.As(err, &invalid) {
				t.Fatalf("got %+v, %v", c, err)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the password is repeated: %v", err)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tt.want) {
				t.Fatalf("got %d problems, want %d:\n%v", len(lines), len(tt.want), err)
			}
			for i, want := range tt.want {
				if !strings.HasPrefix(lines[i], want) {
					t.Errorf("\n got %s\nwant %s...", lines[i], want)
				}
			}
		})
	}
}

// The defaults lack only Redis, and a configuration made in code is checked like one from a file.
func TestValidate(t *testing.T) {
	t.Parallel()
	c := orchestrator.Default()
	if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), "redis: does not say where Redis is") || strings.Contains(err.Error(), "\n") {
		t.Errorf("the bare default: %v", err)
	}
	c.Redis.Embedded = true
	if err := c.Validate(); err != nil {
		t.Errorf("the default with a Redis: %v", err)
	}
	c.Plugins["p"] = orchestrator.PluginConfig{Command: []string{"./p\x00"}}
	c.Queues["q"] = orchestrator.QueueConfig{Plugin: "p", Settings: settings.Layer{"slotz": "1"}}
	c.Manager.Socket, c.Manager.StateDir = "", ""
	var invalid *orchestrator.ConfigError
	if err := c.Validate(); !errors.As(err, &invalid) || len(invalid.Problems) != 4 || !strings.Contains(err.Error(), "queues.q.slotz: is not a setting; did you mean slots?") {
		t.Errorf("got %v", err)
	}
}

// A file that is not there is named with the system's reason.
func TestLoad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.yaml")
	if _, err := orchestrator.Load(path); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(path, []byte(goodConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := orchestrator.Load(path); err != nil || c.Manager.Name != "m1" {
		t.Errorf("got %+v, %v", c, err)
	}
	if _, err := orchestrator.Load(t.TempDir()); err == nil {
		t.Error("a directory was read")
	}
}
