package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind is a sort of fault.
type Kind string

// The faults.
const (
	ManagerKill     Kind = "manager-kill"     // kill -9, started again after a while
	ManagerFreeze   Kind = "manager-freeze"   // SIGSTOP, SIGCONT after a while
	ManagerStop     Kind = "manager-stop"     // SIGTERM, started again after a while
	ManagerReload   Kind = "manager-reload"   // another configuration and SIGHUP
	ManagerReplace  Kind = "manager-replace"  // SIGUSR2: all workers are replaced
	WorkerKill      Kind = "worker-kill"      // kill -9
	WorkerFreeze    Kind = "worker-freeze"    // SIGSTOP, SIGCONT after a while, if it still lives
	RedisKill       Kind = "redis-kill"       // kill -9, started again after a while with what it had written
	RedisFreeze     Kind = "redis-freeze"     // SIGSTOP, SIGCONT after a while
	MemcachedKill   Kind = "memcached-kill"   // kill -9, started again after a while, empty
	MemcachedFreeze Kind = "memcached-freeze" // SIGSTOP, SIGCONT after a while
)

// Kinds returns all kinds, in the order in which they are best read.
func Kinds() []Kind {
	return []Kind{
		ManagerKill, ManagerFreeze, ManagerStop, ManagerReload, ManagerReplace, WorkerKill, WorkerFreeze, RedisKill, RedisFreeze,
		MemcachedKill, MemcachedFreeze,
	}
}

// ParseKinds reads a list such as "redis-kill,worker-freeze"; "all" and "none" are lists too, and "worker" is every kind that
// begins with "worker-".
func ParseKinds(list string) ([]Kind, error) {
	var chosen []Kind
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		known := false
		for _, k := range Kinds() {
			if fits := word == "all" || string(k) == word || strings.HasPrefix(string(k), word+"-"); fits {
				known = true
				chosen = append(chosen, k)
			}
		}
		if !known && word != "none" && word != "" {
			return nil, fmt.Errorf("there is no fault %q: use some of %v, or all, or none", word, Kinds())
		}
	}
	slices.Sort(chosen)
	return slices.Compact(chosen), nil
}

// shape says how long a fault lasts.
type shape struct {
	least, most time.Duration
	// long, when not 0, is how long one in four lasts in a run that has the time for it.
	long time.Duration
}

// shapes has a row for each kind that lasts. Those that are long outlast two beats of the leases, 11 s, so that managers take
// each other's tasks.
func shapes() map[Kind]shape {
	return map[Kind]shape{
		ManagerKill:     {least: 100 * time.Millisecond, most: 2 * time.Second},
		ManagerFreeze:   {least: 300 * time.Millisecond, most: 4 * time.Second, long: 16 * time.Second},
		ManagerStop:     {least: 50 * time.Millisecond, most: time.Second},
		WorkerFreeze:    {least: 200 * time.Millisecond, most: 6 * time.Second},
		RedisKill:       {least: 50 * time.Millisecond, most: 2 * time.Second},
		RedisFreeze:     {least: 300 * time.Millisecond, most: 4 * time.Second, long: 14 * time.Second},
		MemcachedKill:   {least: 50 * time.Millisecond, most: 2 * time.Second},
		MemcachedFreeze: {least: 300 * time.Millisecond, most: 4 * time.Second},
	}
}

// Injection is one fault.
type Injection struct {
	Kind Kind
	// At is when it strikes, from the begin of the run; later when the one before it on the same timeline still lasts.
	At time.Duration
	// For is how long the victim stays down or frozen; 0 for faults that do not last.
	For time.Duration
	// Choice picks the victim among those that are there, or the variant of a configuration.
	Choice uint64
}

// Timeline is what strikes one victim, or one sort of victims, one after the other.
type Timeline struct {
	Manager    int // number of the manager, from 0; -1 when it is not about one
	Injections []Injection
}
