package session

import (
	"path/filepath"
	"strings"
)

// EnvSocket names the variable that holds the manager's socket.
const EnvSocket = "DROVER_SOCKET"

// chosen is where the manager should be.
type chosen struct {
	address string // as the client library wants it
	tried   string // for messages
	absent  bool   // no socket is there at all
}

// choose returns the manager's address: the one asked for, else the variable's, else the first usual place that exists.
func choose(flag string, getenv func(string) string, exists func(path string) bool) chosen {
	for _, named := range []string{flag, getenv(EnvSocket)} {
		if named != "" {
			return chosen{address: addressOf(named), tried: named, absent: isPath(named) && !exists(strings.TrimPrefix(named, "unix:"))}
		}
	}
	places := []string{filepath.Join("var", "drover.sock")}
	if dir := getenv("XDG_RUNTIME_DIR"); dir != "" {
		places = append(places, filepath.Join(dir, "drover", "drover.sock"))
	}
	places = append(places, "/run/drover/drover.sock")
	for _, place := range places {
		if exists(place) {
			return chosen{address: addressOf(place), tried: place}
		}
	}
	return chosen{address: addressOf(places[0]), tried: strings.Join(places, ", "), absent: true}
}

// addressOf accepts a path or an address.
func addressOf(named string) string {
	if isPath(named) && !strings.HasPrefix(named, "unix:") {
		return "unix:" + named
	}
	return named
}

func isPath(named string) bool { return !strings.Contains(named, "://") }
