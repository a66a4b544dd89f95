package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/drover-jobs/drover/console/internal/screen"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

func managersCommand() *Command {
	return &Command{
		Section: SectionLook,
		Name:    "managers",
		Summary: "the managers that share the broker",
		Help: `Each says every few seconds that it is there. One that has not for 15 seconds is absent: it was killed, is frozen or cut off, and
its tasks run elsewhere by then. It is forgotten after ten minutes. The manager that was asked is marked with a *.`,
		Examples: []Example{{`drover managers`, "who serves which queues"}},
		Run:      runManagers,
	}
}

type peerJSON struct {
	Name     string     `json:"name"`
	Host     string     `json:"host"`
	PID      int32      `json:"pid"`
	Version  string     `json:"version"`
	Started  *time.Time `json:"started_at,omitempty"`
	State    string     `json:"state"`
	Queues   []string   `json:"queues"`
	Workers  int32      `json:"workers"`
	Running  int32      `json:"running"`
	SilentMS int64      `json:"silent_ms"`
	Own      bool       `json:"own"`
}

func runManagers(ctx context.Context, env *Env, _ *Args) error {
	answer, err := ask(ctx, "list the managers", env.Control.Managers, &apiv1.ManagersRequest{})
	if err != nil {
		return err
	}
	if env.JSON {
		for _, m := range answer.GetManagers() {
			if err := screen.WriteJSON(env.Out, peerView(m)); err != nil {
				return err
			}
		}
		return nil
	}
	t := &screen.Table{Columns: []screen.Column{
		{Title: "MANAGER"}, {Title: "STATE"}, {Title: "UP", Right: true}, {Title: "WORKERS", Right: true}, {Title: "RUNNING", Right: true},
		{Title: "HOST", Flexible: true, Spare: 1}, {Title: "PID", Right: true}, {Title: "VERSION", Spare: 2}, {Title: "QUEUES", Flexible: true},
	}}
	for _, m := range answer.GetManagers() {
		name, state, up := m.GetName(), screen.Cell{Text: m.GetState(), Paint: screen.Good}, age(env, m.GetStartedMs())
		if m.GetOwn() {
			name += " *"
		}
		if m.GetState() != "running" {
			state.Paint = screen.Warn
		}
		if m.GetState() == "absent" {
			state = screen.Cell{Text: "absent for " + screen.Duration(time.Duration(m.GetSilentMs())*time.Millisecond), Paint: screen.Bad}
			up = ""
		}
		t.Add(screen.Text(name), state, screen.Text(up), screen.Text(fmt.Sprint(m.GetWorkers())), screen.Text(fmt.Sprint(m.GetRunning())),
			screen.Text(m.GetHost()), screen.Text(fmt.Sprint(m.GetPid())), screen.Text(m.GetVersion()), screen.Text(strings.Join(m.GetQueues(), ", ")))
	}
	return t.Write(env.Out, env.style())
}

func peerView(m *apiv1.ManagerEntry) peerJSON {
	view := peerJSON{
		Name: m.GetName(), Host: m.GetHost(), PID: m.GetPid(), Version: m.GetVersion(), State: m.GetState(), Queues: m.GetQueues(),
		Workers: m.GetWorkers(), Running: m.GetRunning(), SilentMS: m.GetSilentMs(), Own: m.GetOwn(),
	}
	if ms := m.GetStartedMs(); ms > 0 {
		at := time.UnixMilli(ms).UTC()
		view.Started = &at
	}
	return view
}
