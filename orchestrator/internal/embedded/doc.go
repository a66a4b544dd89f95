// Package embedded is a Redis that lives inside the manager: a broker for a
// machine that has none. It speaks the Redis protocol on a random loopback
// port behind a random password, keeps its content in memory, and writes all
// of it to the state directory every few seconds and at the end.
//
// It owns the state directory's redis.* files, the life of the server and the
// expiry of keys. It knows nothing of queues or tasks: to everybody else it is
// a Redis address and a password. The orchestrator's wiring starts it before
// everything that speaks to Redis and stops it after all of that.
//
// # Files
//
//	redis.lock               held while a broker runs; the kernel lets go of it when the process dies
//	redis.json               address, password and pid of the running broker, mode 0600; gone after a stop
//	redis.snapshot           the content, with version and checksum
//	redis.snapshot.previous  the one before it, used when the newest is damaged
//	redis.snapshot.damaged-* what could not be read, kept for a person to look at
//
// # What it promises
//
// After a clean stop everything is kept. After kill -9 or a power cut at most
// the last Options.SnapshotEvery is lost; above some tens of thousands of keys
// the interval stretches so that taking snapshots never costs more than a
// tenth of the time. A snapshot is one point in time: it is taken under the
// lock under which scripts run, so no script is ever seen half done.
// Expiry is counted in wall-clock time and goes on while the broker is down;
// a key may go up to a tenth of a second early (a second with much content).
// What it could not bring back after a restart (HyperLogLogs, consumer groups
// of streams, databases above 15) it refuses instead of forgetting.
//
// # Stop
//
// Run returns when its context ends: it closes the listener and every
// connection, waits for the commands under way, writes the last snapshot,
// removes redis.json and lets go of the lock.
package embedded
