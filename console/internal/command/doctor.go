package command

import (
	"context"
	"fmt"

	"github.com/drover-jobs/drover/console/internal/screen"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

func doctorCommand() *Command {
	return &Command{
		Section: SectionLook,
		Name:    "doctor",
		Summary: "is everything sound, and what to do where it is not",
		Help: `It looks at the socket, the manager, its broker, locks, queues, dead letters, plugins and workers, and, where the manager runs on
this machine, at its limit of open files and the room on the disk; the manager itself looks
at the settings of Redis, clocks, checksums, memory and disks. What cannot be known from here is said to be unknown. The
exit code is 1 when something is bad; warnings alone are 0.`,
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
	findings = append(findings, checkBroker(s))
	findings = append(findings, checkLocks(ctx, env)...)
	findings = append(findings, checkQueues(s)...)
	findings = append(findings, checkPlugins(s)...)
	findings = append(findings, checkWorkers(s)...)
	findings = append(findings, checkSettings(ctx, env)...)
	findings = append(findings, checkMachine(env, s)...)
	findings = append(findings, examined(ctx, env)...)
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

// examined is what the manager finds when it looks at what it stands on.
func examined(ctx context.Context, env *Env) []finding {
	answer, err := ask(ctx, "examine the manager", env.Control.Examine, &apiv1.ExamineRequest{})
	if err != nil {
		return []finding{{Check: "what the manager stands on", Verdict: uncertain, Found: err.Error()}}
	}
	findings := make([]finding, 0, len(answer.GetFindings()))
	for _, f := range answer.GetFindings() {
		findings = append(findings, finding{Check: f.GetCheck(), Verdict: verdict(f.GetVerdict()), Found: f.GetFound(), Do: f.GetAdvice()})
	}
	return findings
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
		if err := line(string(f.Verdict), verdictPaint(f.Verdict), screen.Clean(f.Check+": "+f.Found)); err != nil {
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
