package orchestrator

import (
	"encoding/hex"
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/drover-jobs/drover/orchestrator/internal/settings"
)

const (
	sumsAllowed = "the 64 hexadecimal digits that `sha256sum PROGRAM` prints"
	// lockTimeout is how long a call to memcached may take when nothing is written, and longestLockTimeout the longest that makes
	// sense: a lock must be renewed several times within its eight seconds.
	lockTimeout         = 500 * time.Millisecond
	longestLockTimeout  = 2 * time.Second
	shortestLockTimeout = 10 * time.Millisecond
	memcachedMost       = 64
)

// locks reads where the locks of tasks lie.
func (d *decoder) locks(path string, n *yaml.Node, l *LocksConfig) {
	d.section(path, n, map[string]reader{
		"memcached": func(path string, n *yaml.Node) {
			l.Memcached = d.list(path, n, "a list of servers, such as [127.0.0.1:11211]")
		},
		"timeout": parsed(d, &l.Timeout, "a time such as 500ms", settings.ParseDuration),
	})
}

// processLimits reads what the kernel holds a plugin's processes to.
func (d *decoder) processLimits(path string, n *yaml.Node, l *ProcessLimits) {
	d.section(path, n, map[string]reader{
		"open_files": parsed(d, &l.OpenFiles, "a number", wholeNumber),
		"processes":  parsed(d, &l.Processes, "a number", wholeNumber),
		"file_size":  parsed(d, &l.FileSize, "a size such as 1GiB", settings.ParseBytes),
		"cpu":        parsed(d, &l.CPU, "a time such as 10m", settings.ParseDuration),
		"core":       parsed(d, &l.Core, "a size such as 100MiB", settings.ParseBytes),
	})
}

// parsed reads a text with its parser.
func parsed[T any](d *decoder, field *T, allowed string, parse func(string) (T, error)) reader {
	return func(path string, n *yaml.Node) {
		text, ok := d.text(path, n, allowed)
		if !ok {
			return
		}
		value, err := parse(text)
		if err != nil {
			d.add(n, ConfigProblem{Path: path, Value: text, Reason: err.Error(), Allowed: allowed})
			return
		}
		*field = value
	}
}

func wholeNumber(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("is not a whole number above 0")
	}
	return n, nil
}

// locks checks where the locks lie.
func (k *checker) locks() {
	l := k.c.Locks
	if len(l.Memcached) > memcachedMost {
		k.add("locks.memcached", "", fmt.Sprintf("has %d servers", len(l.Memcached)), fmt.Sprintf("up to %d", memcachedMost))
	}
	for i, server := range l.Memcached {
		if strings.HasPrefix(server, "/") {
			continue
		}
		host, port, err := net.SplitHostPort(server)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || n == 0 {
			k.add(fmt.Sprintf("locks.memcached[%d]", i), server, "is not the address of a server", "HOST:PORT, or the absolute path of a Unix socket")
		}
	}
	if l.Timeout != 0 && (l.Timeout < shortestLockTimeout || l.Timeout > longestLockTimeout) {
		k.add("locks.timeout", settings.FormatDuration(l.Timeout), "is out of range", fmt.Sprintf("%s to %s", shortestLockTimeout, longestLockTimeout))
	}
}

// program checks what a plugin's program must be, and what it may use.
func (k *checker) program(path string, p PluginConfig) {
	if sum, err := hex.DecodeString(p.SHA256); p.SHA256 != "" && (err != nil || len(sum) != 32) {
		k.add(join(path, "sha256"), p.SHA256, "is not a SHA-256", sumsAllowed)
	}
	if strings.ContainsAny(p.User, "\x00:\n/ ") {
		k.add(join(path, "user"), p.User, "is not a user", "a name or a number")
	}
	at := join(path, "limits")
	if p.Limits.CPU != 0 && (p.Limits.CPU < time.Second || p.Limits.CPU%time.Second != 0) {
		k.add(join(at, "cpu"), settings.FormatDuration(p.Limits.CPU), "is not a number of whole seconds", "1s and more")
	}
	if p.Limits.FileSize > math.MaxInt64/2 {
		k.add(join(at, "file_size"), p.Limits.FileSize.String(), "is out of range", "less")
	}
}
