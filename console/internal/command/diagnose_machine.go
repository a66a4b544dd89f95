package command

import (
	"fmt"
	"path/filepath"
	"strings"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

// What doctor can see of the manager's machine by itself, for a manager that does not say.

// checkMachine looks at the manager's process and disk where they are on this machine.
func checkMachine(env *Env, s *apiv1.StatusResponse) []finding {
	path := strings.TrimPrefix(env.Address, "unix:")
	if strings.Contains(path, "://") {
		return []finding{{Check: "machine", Verdict: uncertain, Found: "the manager is reached over a network: its limits and its disk cannot be seen from here"}}
	}
	findings := []finding{checkFiles(env, s.GetManager().GetPid())}
	if env.Machine.FreeDisk != nil {
		findings = append(findings, checkDisk(env, filepath.Dir(path)))
	}
	return findings
}

func checkFiles(env *Env, pid int32) finding {
	f := finding{Check: "open files", Verdict: uncertain}
	program, err := env.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || !strings.Contains(string(program), "drover") {
		f.Found = fmt.Sprintf("process %d cannot be seen from here", pid)
		return f
	}
	limits, err := env.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		f.Found = err.Error()
		return f
	}
	const enough = 4096
	n, unlimited, known := openFiles(string(limits))
	switch {
	case unlimited:
		f.Verdict, f.Found = sound, "no limit"
	case !known:
		f.Found = "the limit cannot be read"
	case n < enough:
		f.Verdict, f.Found = doubtful, fmt.Sprintf("the manager may open %d", n)
		f.Do = fmt.Sprintf("start it with at least %d (LimitNOFILE in its unit, or ulimit -n): each worker needs a few", enough)
	default:
		f.Verdict, f.Found = sound, fmt.Sprintf("the manager may open %d", n)
	}
	return f
}

// openFiles reads the soft limit of open files from the text of /proc/PID/limits.
func openFiles(limits string) (n int, unlimited, known bool) {
	for line := range strings.Lines(limits) {
		rest, found := strings.CutPrefix(line, "Max open files")
		if !found {
			continue
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			return 0, false, false
		}
		if fields[0] == "unlimited" {
			return 0, true, true
		}
		_, err := fmt.Sscan(fields[0], &n)
		return n, false, err == nil
	}
	return 0, false, false
}

func checkDisk(env *Env, dir string) finding {
	f := finding{Check: "disk", Verdict: uncertain}
	free, all, err := env.Machine.FreeDisk(dir)
	if err != nil || all == 0 {
		f.Found = fmt.Sprintf("the room beside the socket in %s is not known", dir)
		return f
	}
	const little, share = 1 << 30, 20
	f.Verdict, f.Found = sound, fmt.Sprintf("%s of %s free beside the socket in %s", bytesOf(free), bytesOf(all), dir)
	if free < little || free < all/share {
		f.Verdict, f.Do = doubtful, "make room: the embedded broker and saved settings are written to the state directory"
	}
	return f
}

func bytesOf(n uint64) string { return screen.Bytes(int64(min(n, 1<<62))) } //nolint:gosec // clamped
