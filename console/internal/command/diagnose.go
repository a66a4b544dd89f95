package command

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

// The checks of doctor. Each says what it found and what a person should do.

const longestSocket = 100 // bytes; the system's limit is 107, and some systems have less

func checkSocket(env *Env) finding {
	f := finding{Check: "socket", Verdict: sound, Found: env.Address}
	path := strings.TrimPrefix(env.Address, "unix:")
	if strings.Contains(path, "://") || env.Machine.Stat == nil {
		return f
	}
	info, err := env.Machine.Stat(path)
	switch {
	case err != nil:
		f.Verdict, f.Found = uncertain, fmt.Sprintf("%s answers, but cannot be looked at: %v", path, err)
	case info.Mode()&fs.ModeSocket == 0:
		f.Verdict, f.Found, f.Do = doubtful, path+" is no socket", "name the manager's socket with --socket PATH"
	case info.Mode().Perm()&0o077 != 0:
		f.Verdict, f.Found = bad, fmt.Sprintf("%s has mode %04o: others may do everything with the manager", path, info.Mode().Perm())
		f.Do = "chmod 600 " + path
	case len(path) > longestSocket:
		f.Verdict, f.Found, f.Do = doubtful, fmt.Sprintf("the path has %d bytes", len(path)), "use a shorter state directory: systems allow about 107 bytes"
	default:
		f.Found = fmt.Sprintf("%s, mode %04o", path, info.Mode().Perm())
	}
	return f
}

func checkManager(env *Env, s *apiv1.StatusResponse) finding {
	m := s.GetManager()
	f := finding{Check: "manager", Verdict: sound, Found: fmt.Sprintf("%s answers, version %s", m.GetName(), m.GetVersion())}
	switch {
	case m.GetState() != "running":
		f.Verdict, f.Found, f.Do = doubtful, m.GetName()+" is "+m.GetState(), "wait until it has ended, or start another"
	case m.GetVersion() != env.Version:
		f.Verdict = doubtful
		f.Found = fmt.Sprintf("%s has version %s, this console %s", m.GetName(), m.GetVersion(), env.Version)
		f.Do = "use the console of the manager's release if a command is refused"
	}
	return f
}

func checkBroker(s *apiv1.StatusResponse) finding {
	m := s.GetManager()
	if why := m.GetBrokerError(); why != "" {
		return finding{Check: "broker", Verdict: bad, Found: fmt.Sprintf("%s does not answer: %s", m.GetBroker(), why),
			Do: "start Redis, or mend redis.address or its password in the configuration; nothing is lost, and work goes on by itself"}
	}
	return finding{Check: "broker", Verdict: sound, Found: m.GetBroker() + " answers"}
}

func checkLocks(ctx context.Context, env *Env) []finding {
	l, err := ask(ctx, "list the locks", env.Control.Locks, &apiv1.LocksRequest{})
	switch {
	case err != nil:
		return []finding{{Check: "locks", Verdict: uncertain, Found: err.Error()}}
	case l.GetStoreError() != "":
		return []finding{{Check: "locks", Verdict: bad, Found: fmt.Sprintf("%s does not answer: %s", l.GetStore(), l.GetStoreError()),
			Do: "start it; until then tasks that need a lock wait, or run without where lock_missing says so"}}
	}
	return []finding{{Check: "locks", Verdict: sound, Found: fmt.Sprintf("%s; %d held, %d tasks wait for one", l.GetStore(), len(l.GetHeld()), len(l.GetWaiting()))}}
}

func checkQueues(s *apiv1.StatusResponse) []finding {
	var findings []finding
	for _, q := range s.GetQueues() {
		name := q.GetName()
		switch q.GetState() {
		case "ok":
		case "circuit-open":
			why := q.GetReason()
			if slices.ContainsFunc(s.GetPlugins(), func(p *apiv1.Plugin) bool { return p.GetName() == q.GetPlugin() && p.GetError() == why }) {
				why = "its plugin " + q.GetPlugin() + " is not usable"
			}
			findings = append(findings, finding{Check: "queue " + name, Verdict: bad, Found: "its workers cannot start: " + why,
				Do: "mend the worker's program, then: resume " + name})
		default:
			findings = append(findings, finding{Check: "queue " + name, Verdict: doubtful, Found: strings.TrimSuffix(q.GetState()+": "+q.GetReason(), ": "),
				Do: "resume " + name + " takes its tasks again"})
		}
		if n := q.GetDead(); n > 0 {
			findings = append(findings, finding{Check: "queue " + name, Verdict: doubtful, Found: fmt.Sprintf("%d dead letters", n),
				Do: fmt.Sprintf("tasks %s --state dead lists them, why ID tells their story; then retry or drop them", name)})
		}
	}
	if len(findings) == 0 {
		return []finding{{Check: "queues", Verdict: sound, Found: fmt.Sprintf("%d, none paused, no dead letters", len(s.GetQueues()))}}
	}
	return findings
}

func checkPlugins(s *apiv1.StatusResponse) []finding {
	var findings []finding
	for _, p := range s.GetPlugins() {
		if why := pluginError(p); why != "" {
			findings = append(findings, finding{Check: "plugin " + p.GetName(), Verdict: bad, Found: why,
				Do: startAdvice(p.GetCommand())})
		}
		if why := p.GetRefused(); why != "" {
			findings = append(findings, finding{Check: "plugin " + p.GetName(), Verdict: doubtful, Found: "a newer program on disk is not used: " + why,
				Do: "mend or replace the program; the old one goes on working"})
		}
	}
	if len(findings) == 0 {
		return []finding{{Check: "plugins", Verdict: sound, Found: fmt.Sprintf("%d, all sound", len(s.GetPlugins()))}}
	}
	return findings
}

// startAdvice says how to see what is wrong with a plugin that does not start. The plugin exec only explains itself when it is
// run by hand: what has to be tried is the command behind it.
func startAdvice(command []string) string {
	if i := slices.Index(command, "--"); i > 0 && filepath.Base(command[0]) == "exec" {
		words := []string{"drover plugin test --exec"}
		if slices.Contains(command[:i], "--once") {
			words = append(words, "--once")
		}
		return "try its command: " + strings.Join(append(words, command[i+1:]...), " ") + " (in the directory of its option dir, if it has one)"
	}
	return "run its command by hand: " + strings.Join(command, " ")
}

func checkWorkers(s *apiv1.StatusResponse) []finding {
	var findings []finding
	for _, w := range s.GetWorkers() {
		name := fmt.Sprintf("worker %d", w.GetId())
		if w.GetFrozen() {
			findings = append(findings, finding{Check: name, Verdict: doubtful, Found: fmt.Sprintf("its process %d is stopped by a signal", w.GetPid()),
				Do: fmt.Sprintf("kill -CONT %d lets it go on, kill %d ends it", w.GetPid(), w.GetId())})
		}
		if most := w.GetMemoryMaxBytes(); most > 0 && w.GetRssBytes() > most/10*9 {
			findings = append(findings, finding{Check: name, Verdict: doubtful,
				Found: fmt.Sprintf("%s of %s memory: it will be killed soon", screen.Bytes(w.GetRssBytes()), screen.Bytes(most)),
				Do:    fmt.Sprintf("set %s.memory_max higher, or %s.memory_soft lower, so that it is replaced in time", w.GetQueue(), w.GetQueue())})
		}
	}
	if len(findings) == 0 {
		return []finding{{Check: "workers", Verdict: sound, Found: workersText(s.GetWorkers())}}
	}
	return findings
}

// checkSettings reminds of changes that a restart would lose.
func checkSettings(ctx context.Context, env *Env) []finding {
	s, err := ask(ctx, "list the settings", env.Control.Settings, &apiv1.SettingsRequest{})
	if err != nil {
		return []finding{{Check: "settings", Verdict: uncertain, Found: err.Error()}}
	}
	var findings []finding
	for _, x := range s.GetSettings() {
		if comesBack(x) {
			findings = append(findings, finding{Check: "settings", Verdict: doubtful,
				Found: fmt.Sprintf("%s is %s, but %s is saved, and a restart brings that back", fullName(x.GetQueue(), x.GetName()), x.GetValue(), x.GetSavedValue()),
				Do:    "save keeps what holds now"})
		}
	}
	live := 0
	for _, x := range s.GetSettings() {
		if x.GetSource() == "live" && !comesBack(x) {
			live++
		}
	}
	switch {
	case live > 0:
		findings = append(findings, finding{Check: "settings", Verdict: doubtful, Found: settingsText(live) + " changed live, and a restart loses that", Do: "diff shows it, save keeps it"})
	case len(findings) == 0:
		findings = append(findings, finding{Check: "settings", Verdict: sound, Found: "no live change that a restart would lose"})
	}
	return findings
}

func settingsText(n int) string {
	if n == 1 {
		return "1 setting was"
	}
	return fmt.Sprintf("%d settings were", n)
}
