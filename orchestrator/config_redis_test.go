package orchestrator_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/orchestrator"
)

// Every kind of address that is promised is taken, and what only looks like one is not.
func TestRedisAddress(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"redis://127.0.0.1:6379/0": true, "redis://host": true, "rediss://host:1/15": true, "redis://[::1]:6379": true, "unix:///run/r.sock": true,
		"unix:///run/r.sock?db=3":                   true,
		"redis-sentinel://a:1,b,[::1]:3/2?master=m": true, "rediss-sentinel://a?master=m": true, "redis-cluster://a,b:2": true, "rediss-cluster://a/": true,
		"redis-sentinel://a,b": false, "redis-sentinel://?master=m": false, "redis-sentinel://a,,b?master=m": false, "redis-sentinel://a/x?master=m": false,
		"redis-sentinel://a,a:26379?master=m": false, "redis-sentinel://a?master=m&x=1": false, "redis-cluster://a/1": false, "redis-cluster://a:0,b": false,
		"redis-cluster://": false, "redis-cluster://a?db=1": false, "redis-both://a": false,
		"127.0.0.1:6379": false, "http://h": false, "redis://": false, "redis://h/x": false, "redis://h:0": false, "redis://h:99999": false, "redis://h?db=1": false,
		"unix://run/r.sock": false, "unix:run/r.sock": false, "unix:///r?db=x": false, "unix:///r?x=1": false, "unix:///r?db=1&db=2": false, "redis://u@h": false,
	} {
		c := orchestrator.Default()
		c.Redis.Address = address
		if err := c.Validate(); (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// The password comes from a file that nobody else can read; every other file is refused with what to do, and never shown.
func TestPassword(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, content string
		mode          os.FileMode
		want, wrong   string
	}{
		{"plain", "hunter2\n", 0o600, "hunter2", ""},
		{"group", "hunter2", 0o640, "hunter2", ""},
		{"windows", "hunter2\r\n", 0o400, "hunter2", ""},
		{"world", "hunter2", 0o644, "", "run chmod 0600"},
		{"empty", "\n", 0o600, "", "it is empty"},
		{"lines", "hunter2\nx\n", 0o600, "", "more than one line"},
		{"large", strings.Repeat("hunter2", 1000), 0o600, "", "larger than 4096 bytes"},
	}
	for _, tt := range tests {
		path := filepath.Join(t.TempDir(), "password")
		if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, tt.mode); err != nil {
			t.Fatal(err)
		}
		got, err := orchestrator.RedisConfig{PasswordFile: path}.Password()
		if got != tt.want || (err == nil) != (tt.wrong == "") {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
		if err != nil && (!strings.Contains(err.Error(), tt.wrong) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if _, err := (orchestrator.RedisConfig{PasswordFile: "/nowhere/at/all"}).Password(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if got, err := (orchestrator.RedisConfig{}).Password(); got != "" || err != nil {
		t.Errorf("no file: %q, %v", got, err)
	}
}
