package orchestrator_test

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/configs"
	"github.com/drover-jobs/drover/orchestrator"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

// The configuration for development, on disk and built in, is valid: everything embedded, feeds on loopback, two queues.
func TestDevFile(t *testing.T) {
	t.Parallel()
	c, err := orchestrator.Load("../configs/dev.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := orchestrator.Parse("built in", configs.Dev()); err != nil {
		t.Errorf("the one that is built in: %v", err)
	}
	user, err := settings.ResolveQueue(c.Queues["feed-pull"].Settings)
	if err != nil || user.MaxWorkers != 4 || user.Slots != 4 || user.Priority != settings.PriorityUser {
		t.Errorf("feed-pull: %+v, %v", user, err)
	}
	system, err := settings.ResolveQueue(c.Queues["feed-pull-sys"].Settings)
	if err != nil || system.Priority != settings.PrioritySystem || c.Queues["feed-pull-sys"].Plugin != "feed-pull" {
		t.Errorf("feed-pull-sys: %+v, %v", system, err)
	}
	if !c.Redis.Embedded || !strings.Contains(string(c.Plugins["feed-pull"].Options), `"allow_networks":["127.0.0.0/8","::1/128"]`) {
		t.Errorf("redis %+v, options %s", c.Redis, c.Plugins["feed-pull"].Options)
	}
}

// The configuration for production is valid, names every setting of the table with its true default, names every other key,
// and allows no private network.
func TestProductionFile(t *testing.T) {
	t.Parallel()
	const path = "../configs/production.yaml"
	c, err := orchestrator.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, queues, _ := bytes.Cut(text, []byte("\nqueues:")) // other sections have a rate, too
	for _, s := range settings.Describe() {
		section := text
		if s.Scope == settings.ScopeQueue {
			section = queues
		}
		layer := c.Queues["feed-pull"].Settings
		switch s.Scope {
		case settings.ScopeManager:
			layer = c.Manager.Settings
		case settings.ScopeSchedule:
			layer = settings.Layer{}
			for _, schedule := range c.Schedules {
				maps.Copy(layer, schedule.Settings)
			}
		default:
		}
		if s.Kind == settings.KindText { // one of cron and every, and a payload that is YAML: only that the key is there
			if !strings.Contains(string(text), " "+s.Name+":") {
				t.Errorf("the %s's setting %s is missing", s.Scope, s.Name)
			}
			continue
		}
		if _, ok := layer[s.Name]; !ok {
			t.Errorf("the %s's setting %s is missing", s.Scope, s.Name)
			continue
		}
		line := regexp.MustCompile(`(?m)^ +` + s.Name + `: \S+ +# default ([^\s.,]+)`).FindSubmatch(section)
		if line == nil || string(line[1]) != s.Default {
			t.Errorf("%s: the comment should say: default %s", s.Name, s.Default)
		}
	}
	for _, key := range []string{
		"name", "state_dir", "socket", "plugin_socket", "log", "format", "level", "embedded", "address", "username", "password_file", "sentinel_username", "sentinel_password_file", "wait_replicas",
		"command", "env", "options", "plugin", "locks", "memcached", "timeout", "sha256", "user", "limits", "open_files", "processes", "file_size", "cpu", "core", "api", "listen", "certificate", "key", "tokens", "role", "file",
		"rate", "caller_waits", "waits", "origins",
		"schedules", "queue", "cron", "every", "time_zone", "payload",
	} {
		if !slices.ContainsFunc(strings.Split(string(text), "\n"), func(line string) bool {
			return strings.HasPrefix(strings.TrimLeft(line, " #"), key+":")
		}) {
			t.Errorf("the key %s is missing", key)
		}
	}
	if c.Redis.Embedded || c.Redis.Address == "" || strings.Contains(string(c.Plugins["feed-pull"].Options), "allow_networks") {
		t.Errorf("redis %+v, options %s", c.Redis, c.Plugins["feed-pull"].Options)
	}
}
