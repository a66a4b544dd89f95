package embedded

import (
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/alicebob/miniredis/v2/server"
)

// databases is how many numbered databases exist and are kept, as in Redis.
const databases = 16

// gate sees each command before it runs, those inside scripts included. It
// counts the ones that may change the content and refuses the ones whose effect
// no snapshot could keep.
type gate struct {
	changes      atomic.Uint64
	fieldsExpire atomic.Bool // a field of a hash may have got a time to live
}

func (g *gate) hook(srv *server.Server) server.Hook {
	return func(c *server.Peer, cmd string, args ...string) bool {
		if why := refusal(cmd, args); why != "" {
			c.WriteError(why)
			return true
		}
		if mayChange(cmd) && !srv.IsReadOnlyCommand(cmd) {
			g.changes.Add(1)
			// HEXPIRE, HSETEX and their relatives, those of later versions included.
			if cmd[0] == 'H' && strings.Contains(cmd, "EX") {
				g.fieldsExpire.Store(true)
			}
		}
		return false
	}
}

// mayChange is false for commands that miniredis does not mark as reading only
// though they never change a key. Scripts are here because each command inside
// one comes through the hook by itself.
func mayChange(cmd string) bool {
	switch cmd {
	case "EVAL", "EVALSHA", "SCRIPT", holdCommand,
		"AUTH", "HELLO", "PING", "ECHO", "QUIT", "SELECT", "CLIENT", "COMMAND", "CLUSTER", "INFO", "TIME", "MEMORY", "OBJECT", "WAIT",
		"SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "PUBLISH", "PUBSUB",
		"MULTI", "DISCARD", "WATCH", "UNWATCH", "XINFO":
		return false
	}
	return true
}

// refusal says why a command is not served, or "".
func refusal(cmd string, args []string) string {
	switch cmd {
	case "PFADD", "PFMERGE":
		return "ERR " + cmd + " is not served by the embedded broker, which cannot keep HyperLogLogs over a restart; use a Redis server"
	case "XGROUP":
		return "ERR " + cmd + " is not served by the embedded broker, which cannot keep consumer groups over a restart; use a Redis server"
	case "SELECT":
		return beyond(at(args, 0))
	case "MOVE":
		return beyond(at(args, 1))
	case "SWAPDB":
		if why := beyond(at(args, 0)); why != "" {
			return why
		}
		return beyond(at(args, 1))
	case "COPY":
		for i := 2; i < len(args); i++ {
			if strings.EqualFold(args[i], "DB") {
				return beyond(at(args, i+1))
			}
		}
	}
	return ""
}

func at(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}

// beyond refuses a database that exists in miniredis but in no snapshot. What
// is not a number is left for the command itself to refuse.
func beyond(db string) string {
	if n, err := strconv.Atoi(db); err == nil && n >= databases {
		return "ERR DB index is out of range"
	}
	return ""
}
