package main_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// In a real shell, a Tab completes what the prompt completes: commands, flags and their values, queues, settings with their values, dead
// letters, and files where one could be meant; names with a colon, a dot or an equals sign as one word.
func TestShellCompletion(t *testing.T) {
	t.Parallel()
	drover, droverd, worker, dir := prompts(t)
	socket := startManager(t, droverd, worker, dir)
	text, _ := exec.Command(drover, "--socket", socket, "submit", "misbehave", "do=permanent", "note=x", "--wait=20s", "--json").CombinedOutput() // exit code 1: it failed
	dead := regexp.MustCompile(`misbehave:[a-z2-7]+`).FindString(string(text))
	if dead == "" {
		t.Fatalf("no dead letter: %s", text)
	}
	for shell, c := range map[string]struct {
		start string
		load  string
	}{
		"bash": {"--noprofile --norc -i", "source <(drover completion bash)"},
		"zsh":  {"-f -i", "source <(drover completion zsh)"},
		"fish": {"--no-config -i", "drover completion fish | source"},
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			program, err := exec.LookPath(shell)
			if err != nil {
				t.Skip(shell + " is not installed")
			}
			cmd := exec.Command(program, strings.Fields(c.start)...) //nolint:gosec // a shell of this machine
			cmd.Dir = dir
			cmd.Env = []string{"DROVER_SOCKET=" + socket, "HOME=" + dir, "TERM=xterm", "PATH=" + filepath.Dir(drover) + ":/usr/bin:/bin"}
			s := seated(t, cmd)
			s.keys(c.load + "; echo \"loa\"ded\r")
			s.see(`loaded`)
			for _, line := range []struct{ typed, want string }{
				{"drover pau\tmis\t", "drover pause misbehave"},
				{"drover tasks misbehave --sta\tqu\t", "drover tasks misbehave --state quarantined"},
				{"drover set misbehave.prio\tsy\t", "drover set misbehave.priority=system"},
				{"drover set misbehave.slots=2 misbehave.max_w\t", "drover set misbehave.slots=2 misbehave.max_workers="},
				{"drover retry mis\t\t", "drover retry " + dead},
				{"drover --json que\t", "drover --json queues"},
				{"drover --socket drover.so\tpau\t", "drover --socket drover.sock pause"},
				{"drover __c\t", "drover __c"},
			} {
				pattern := regexp.QuoteMeta("["+line.want) + ` ?\]\r\n` // zsh takes its own space away again
				// Completion does not let a person wait for long, and a busy machine is slower: a person would press Tab again.
				const again, tries = 3 * time.Second, 5
				seen := false
				for try := 0; try < tries && !seen; try++ {
					s.keys("\x15" + line.typed + "\x01echo \"[\x05]\"\r")
					seen = s.sees(pattern, again)
				}
				if !seen {
					s.see(pattern) // says what there is instead
				}
			}
			s.keys("exit\r")
			s.leaves(0)
		})
	}
}
