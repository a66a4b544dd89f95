package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/drover-jobs/drover/console/internal/screen"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

func doctorCommand() *Command {
	return &Command{
		Section: SectionLook,
		Name:    "doctor",
		Summary: "is everything sound, and what to do where it is not",
		Help: `It looks at the socket, the manager, queues, dead letters, plugins, workers and settings. The manager itself looks at its broker
and its locks, at other managers (each needs a name of its own), clocks and checksums, and at open files, disks and memory
of its machine. What cannot be known is said to be unknown. The exit code is 1 when something is bad; warnings alone are 0.`,
		Examples: []Example{
			{`drover doctor`, "look at everything"},
			{`drover doctor --json`, "for a monitor"},
		},
		Run: runDoctor,
	}
}

// verdict is how a check went.
type verdict string

const (
	sound     verdict = "ok"
	doubtful  verdict = "warning"
	bad       verdict = "bad"
	uncertain verdict = "unknown"
)

// finding is one thing that was looked at.
type finding struct {
	Check   string  `json:"check"`
	Machine string  `json:"machine,omitempty"` // that it is about; empty where that says nothing
	Verdict verdict `json:"verdict"`
	Found   string  `json:"found"`
	Do      string  `json:"do,omitempty"`
}

type doctorJSON struct {
	Verdict  verdict   `json:"verdict"`
	Findings []finding `json:"findings"`
}

func runDoctor(ctx context.Context, env *Env, _ *Args) error {
	s, err := status(ctx, env)
	if err != nil {
		return err
	}
	findings := []finding{checkSocket(env), checkManager(env, s)}
	for _, warning := range s.GetManager().GetWarnings() {
		findings = append(findings, finding{Check: "manager", Verdict: doubtful, Found: warning})
	}
	findings = append(findings, checkQueues(s)...)
	findings = append(findings, checkPlugins(s)...)
	findings = append(findings, checkWorkers(s)...)
	findings = append(findings, checkSettings(ctx, env)...)
	findings = append(findings, checkGround(ctx, env, s)...)
	worst := sound
	for _, f := range findings {
		switch {
		case f.Verdict == bad:
			worst = bad
		case f.Verdict == doubtful && worst != bad:
			worst = doubtful
		}
	}
	if err := tellFindings(env, worst, findings); err != nil {
		return err
	}
	if worst == bad {
		return told(Failed)
	}
	return nil
}

// checkGround is what the manager finds when it looks at what it stands on. Only where it does not say, the console looks as far as it
// can.
func checkGround(ctx context.Context, env *Env, s *apiv1.StatusResponse) []finding {
	answer, err := ask(ctx, "examine the manager", env.Control.Examine, &apiv1.ExamineRequest{})
	if err != nil {
		findings := append([]finding{checkBroker(s)}, checkLocks(ctx, env)...)
		findings = append(findings, checkMachine(env, s)...)
		return append(findings, finding{Check: "what the manager stands on", Verdict: uncertain, Found: err.Error()})
	}
	var findings []finding
	if checkBroker(s).Verdict == bad && !slices.ContainsFunc(answer.GetFindings(), brokenBroker) {
		// One of them is wrong: the status waits for Redis only for a moment, and the other may have been asked before it went.
		if again, err := ask(ctx, "read the status", env.Control.Status, &apiv1.StatusRequest{}); err == nil && checkBroker(again).Verdict == bad {
			findings = append(findings, checkBroker(again))
		}
	}
	host := hostOf(ctx, env)
	for _, f := range answer.GetFindings() {
		own := finding{Check: f.GetCheck(), Verdict: verdict(f.GetVerdict()), Found: f.GetFound(), Do: f.GetAdvice()}
		if slices.Contains([]string{"open files", "socket paths", "disk", "memory"}, own.Check) {
			own.Machine = host
		}
		findings = append(findings, own)
	}
	return findings
}

// brokenBroker reports whether a finding says that the broker does not answer.
func brokenBroker(f *apiv1.Finding) bool {
	return (f.GetCheck() == "Redis" || f.GetCheck() == "broker") && verdict(f.GetVerdict()) == bad
}

// hostOf is the machine that the manager runs on, as it calls it.
func hostOf(ctx context.Context, env *Env) string {
	answer, err := ask(ctx, "list the managers", env.Control.Managers, &apiv1.ManagersRequest{})
	if err == nil {
		for _, m := range answer.GetManagers() {
			if m.GetOwn() && m.GetHost() != "" {
				return m.GetHost()
			}
		}
	}
	return "the manager's machine"
}

func tellFindings(env *Env, worst verdict, findings []finding) error {
	if env.JSON {
		return screen.WriteJSON(env.Out, doctorJSON{Verdict: worst, Findings: findings})
	}
	style := env.style()
	const indent = len("warning") + gapColumns
	line := func(head string, paint screen.Paint, text string) error {
		rows := []string{text}
		if style.Width > 0 {
			rows = screen.Wrap(text, max(20, style.Width-indent))
		}
		for i, row := range rows {
			if i > 0 {
				head = ""
			}
			if _, err := fmt.Fprintf(env.Out, "%s%s\n", style.Paint(paint, screen.Pad(head, indent, false)), row); err != nil {
				return err
			}
		}
		return nil
	}
	for _, f := range findings {
		what := f.Check
		if f.Machine != "" {
			what += " on " + f.Machine
		}
		if err := line(string(f.Verdict), verdictPaint(f.Verdict), screen.Clean(what+": "+f.Found)); err != nil {
			return err
		}
		if f.Do == "" {
			continue
		}
		if err := line("", screen.Plain, "-> "+screen.Clean(f.Do)); err != nil {
			return err
		}
	}
	return nil
}

func verdictPaint(v verdict) screen.Paint {
	switch v {
	case sound:
		return screen.Good
	case bad:
		return screen.Bad
	case doubtful:
		return screen.Warn
	default:
		return screen.Faint
	}
}
