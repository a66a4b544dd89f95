package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drover-jobs/drover/orchestrator/internal/lock"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// Verdicts of a finding.
const (
	wellFound    = "ok"
	doubtFound   = "warning"
	badFound     = "bad"
	nothingFound = "unknown"
)

// examineTimeout bounds each question to another server.
const examineTimeout = time.Second

// examination collects what is found.
type examination struct {
	o        *Orchestrator
	findings []*apiv1.Finding
}

func (e *examination) add(check, verdict, advice, format string, args ...any) {
	if verdict == wellFound {
		advice = ""
	}
	e.findings = append(e.findings, &apiv1.Finding{Check: check, Verdict: verdict, Found: fmt.Sprintf(format, args...), Advice: advice})
}

// Examine looks at what the manager stands on. It changes nothing.
func (c *control) Examine(ctx context.Context) (*apiv1.ExamineResponse, error) {
	e := &examination{o: c.o}
	e.redis(ctx)
	e.managers(ctx)
	e.deaths(ctx)
	e.locks(ctx)
	e.programs()
	e.sockets()
	e.files()
	e.disks()
	e.memory()
	return &apiv1.ExamineResponse{Findings: e.findings}, nil
}

// redis asks the servers about their versions and about what would make them lose tasks.
func (e *examination) redis(ctx context.Context) {
	if e.o.config.Redis.Embedded {
		verdict := wellFound
		if err := e.o.broker.Err(); err != nil {
			e.add("broker", badFound, "make room for manager.state_dir, or give it to the manager's user", "the embedded broker cannot write its content: %v", err)
			return
		}
		e.add("broker", verdict, "", "embedded; what was submitted since it last wrote its content, a second or so ago, is lost when the machine or the manager is killed")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	servers, err := e.o.primaries(ctx)
	if err != nil {
		e.add("Redis", badFound, "start it, or mend redis.address", "it does not answer: %v", err)
		return
	}
	e.redisServers(servers)
	e.redisSet(ctx)
}

// clockDoubt is from which difference on clocks are worth a word: delays and deadlines are in whole seconds.
const clockDoubt = 2 * time.Second

// managers looks for managers that are absent or bear one name, and at the clocks.
func (e *examination) managers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	all, ahead, err := e.o.roster.List(ctx)
	if err != nil {
		e.add("managers", nothingFound, "", "%v", err)
		return
	}
	e.unserved(ctx, all)
	twins, absent := 0, []string{}
	for _, m := range all {
		switch {
		case m.Absent():
			absent = append(absent, m.Name)
		case !m.Own && m.Name == e.o.config.Manager.Name:
			twins++
		}
	}
	switch {
	case twins > 0:
		e.add("managers", badFound, "give each manager its own manager.name", "another one is named %s as well", e.o.config.Manager.Name)
	case len(absent) > 0:
		e.add("managers", doubtFound, "look after them, or wait ten minutes until they are forgotten", "not heard of lately: %s", strings.Join(absent, ", "))
	default:
		e.add("managers", wellFound, "", "%d share this broker", len(all))
	}
	if ahead.Abs() > clockDoubt {
		e.add("clocks", doubtFound, "set the clocks by NTP: delays and deadlines are off by the difference", "the clock of Redis and this machine's differ by %s", ahead.Abs().Round(time.Millisecond))
		return
	}
	e.add("clocks", wellFound, "", "this machine's and that of Redis agree within %s", clockDoubt)
}

// locks gives up a lock that nobody has: that is a question and an answer.
func (e *examination) locks(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, examineTimeout)
	defer cancel()
	key, err := lock.NewKey("drover-examine", []string{"at"}, []byte(`{"at":1}`))
	if err == nil {
		err = e.o.lockStoreAt.Release(ctx, key, lock.NewToken())
	}
	if err != nil {
		if inner := errors.Unwrap(err); inner != nil {
			err = inner // the lock that was asked for is nobody's
		}
		e.add("locks", badFound, "start the servers, or mend locks in the configuration; tasks with a lock key wait or run without, as lock_missing says", "%s does not answer: %v", e.o.lockStore(), err)
		return
	}
	e.add("locks", wellFound, "", "%s answers", e.o.lockStore())
}

// programs says which plugins run whatever lies at their path.
func (e *examination) programs() {
	var loose []string
	plugins := e.o.present.Load().plugins
	for _, name := range sortedKeys(plugins) {
		if plugins[name].SHA256 == "" {
			loose = append(loose, name)
		}
	}
	if len(loose) == 0 {
		e.add("checksums", wellFound, "", "every plugin is pinned to a checksum")
		return
	}
	e.add("checksums", wellFound, "", "not pinned, so whoever may write the file decides what runs: %s", strings.Join(loose, ", "))
}

// sockets compares the lengths of paths with what a Unix socket takes.
func (e *examination) sockets() {
	const scarce = 10 // bytes that are left
	longest := max(len(e.o.config.Manager.Socket), len(e.o.config.Manager.PluginSocket))
	if longest > maxSocketPath-scarce {
		e.add("socket paths", doubtFound, "use a shorter manager.state_dir", "the longest has %d bytes of %d", longest, maxSocketPath)
		return
	}
	e.add("socket paths", wellFound, "", "the longest has %d bytes of %d", longest, maxSocketPath)
}

// filesPerWorker is about what the manager needs for one process: its pipes, its socket and the look at its memory.
const filesPerWorker = 8

// files compares the limit of open files with what the settings may need.
func (e *examination) files() {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		e.add("open files", nothingFound, "", "%v", err)
		return
	}
	const ground = 200
	need := uint64(ground)
	for _, q := range e.o.store.Load().Queues {
		need += uint64(q.MaxWorkers) * filesPerWorker //nolint:gosec // not negative
	}
	if limit.Cur < need {
		e.add("open files", badFound, "raise the limit (LimitNOFILE= in the unit, or ulimit -n)", "the manager may open %d, and with max_workers processes it needs about %d", limit.Cur, need)
		return
	}
	e.add("open files", wellFound, "", "the manager may open %d and needs at most about %d", limit.Cur, need)
}

// disks looks for room where the manager and its workers write.
func (e *examination) disks() {
	const least, few = 64 << 20, 1 << 30
	for _, place := range []struct{ what, path string }{{"state directory", e.o.config.Manager.StateDir}, {"temporary files", os.TempDir()}} {
		var s unix.Statfs_t
		if err := unix.Statfs(place.path, &s); err != nil {
			e.add("disk", nothingFound, "", "%s %s: %v", place.what, place.path, err)
			continue
		}
		free := s.Bavail * uint64(s.Bsize) //nolint:gosec // not negative
		verdict := wellFound
		switch {
		case free < least:
			verdict = badFound
		case free < few:
			verdict = doubtFound
		}
		e.add("disk", verdict, "make room", "%.1f GiB free for the %s in %s", float64(free)/float64(settings.GiB), place.what, place.path)
	}
}

// memory compares what the limits allow with what the machine has.
func (e *examination) memory() {
	has := machineMemory()
	if has == 0 {
		e.add("memory", nothingFound, "", "how much this machine has cannot be read")
		return
	}
	snapshot := e.o.store.Load()
	var may settings.Bytes
	var open []string
	for _, name := range sortedKeys(snapshot.Queues) {
		q := snapshot.Queues[name]
		if q.MemoryMax == 0 {
			open = append(open, name)
		}
		may += q.MemoryMax * settings.Bytes(q.MaxWorkers)
	}
	if m := snapshot.Manager.MaxMemory; m > 0 {
		may, open = min(max(may, m), m), nil
	}
	switch {
	case len(open) > 0:
		e.add("memory", doubtFound, "set memory_max for them, or max_memory for the manager, so that the kernel never has to choose whom to kill", "no limit for the workers of: %s", strings.Join(open, ", "))
	case may > has:
		e.add("memory", doubtFound, "lower memory_max or max_workers, or set the manager's max_memory", "the limits allow %.1f GiB, this machine has %.1f GiB", inGiB(may), inGiB(has))
	default:
		e.add("memory", wellFound, "", "the limits allow %.1f GiB, this machine has %.1f GiB", inGiB(may), inGiB(has))
	}
}

func inGiB(b settings.Bytes) float64 { return float64(b) / float64(settings.GiB) }

// machineMemory is what this machine has, or the group of processes that the manager is in, if that may use less; 0 when it
// cannot be read (proc(5), cgroups(7)).
func machineMemory() settings.Bytes {
	var has settings.Bytes
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemTotal:" {
				kib, _ := strconv.ParseInt(fields[1], 10, 64)
				has = settings.Bytes(kib) << 10
			}
		}
	}
	data, err := os.ReadFile("/sys/fs/cgroup/memory.max")
	if err != nil {
		return has
	}
	if limit, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil && limit > 0 && settings.Bytes(limit) < has {
		return settings.Bytes(limit)
	}
	return has
}
