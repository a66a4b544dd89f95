package orchestrator

import (
	"fmt"
	"path/filepath"

	"github.com/drover-jobs/drover/orchestrator/internal/worker"
)

// lendSockets opens a socket of the API for the workers of each other user, in the directory of worker sockets: they cannot reach the
// one in the state directory. A user that there is not, or that cannot be given a file, only keeps the plugins that name it from
// being started, which say so themselves.
func (o *Orchestrator) lendSockets(dir string) {
	o.lent = map[string]string{}
	open := map[int]string{}
	for name, p := range o.config.Plugins {
		uid, other, err := worker.OtherUser(p.User)
		if err != nil || !other {
			continue
		}
		if open[uid] == "" {
			path := filepath.Join(dir, fmt.Sprintf("api-%d.sock", uid))
			if err := o.api.Lend(path, uid); err != nil {
				o.log.Warn("workers of another user cannot reach the API of the manager", "plugin", name, "user", p.User, "error", err)
				continue
			}
			open[uid] = path
		}
		o.lent[p.User] = open[uid]
	}
}

// pluginSocket is where workers of a user reach the API.
func (o *Orchestrator) pluginSocket(user string) string {
	if path := o.lent[user]; path != "" {
		return path
	}
	return absolute(o.config.Manager.PluginSocket)
}

// unlent reports whether a user of workers has no way to the API, because no plugin named that user when the manager was started.
func (o *Orchestrator) unlent(user string) bool {
	_, other, err := worker.OtherUser(user)
	return err == nil && other && o.lent[user] == ""
}
