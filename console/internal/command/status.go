package command

import (
	"context"
	"fmt"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

func statusCommand() *Command {
	return &Command{
		Section: SectionLook,
		Name:    "status",
		Summary: "how the manager, its queues and its workers are doing",
		Help: `It answers while the broker is away, and says so; counts that only the broker knows are "?" then, and null in JSON.
The exit code is 0 when the manager answered, whatever it says.`,
		Examples: []Example{
			{`drover status`, "the manager and its queues"},
			{`drover status --json | jq .manager.broker_error`, "for a program: everything, workers and plugins too"},
		},
		Run: runStatus,
	}
}

type statusJSON struct {
	Manager managerJSON  `json:"manager"`
	Queues  []queueJSON  `json:"queues"`
	Workers []workerJSON `json:"workers"`
	Plugins []pluginJSON `json:"plugins"`
}

func runStatus(ctx context.Context, env *Env, _ *Args) error {
	s, err := status(ctx, env)
	if err != nil {
		return err
	}
	if env.JSON {
		return screen.WriteJSON(env.Out, statusJSON{
			Manager: managerView(s.GetManager()), Queues: queueViews(s.GetQueues()),
			Workers: workerViews(s.GetWorkers()), Plugins: pluginViews(s.GetPlugins()),
		})
	}
	if err := managerFields(env, s).Write(env.Out, env.style()); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(env.Out); err != nil {
		return err
	}
	return queueTable(s.GetQueues()).Write(env.Out, env.style())
}

func managerFields(env *Env, s *apiv1.StatusResponse) *screen.Fields {
	m := s.GetManager()
	var f screen.Fields
	paint := screen.Good
	if m.GetState() != "running" {
		paint = screen.Warn
	}
	f.AddPainted("Manager", fmt.Sprintf("%s, %s", m.GetName(), m.GetState()), paint)
	f.Add("Version", m.GetVersion())
	f.Add("Process", fmt.Sprintf("%d, up %s", m.GetPid(), age(env, m.GetStartedMs())))
	if why := m.GetBrokerError(); why != "" {
		f.AddPainted("Broker", fmt.Sprintf("%s does not answer: %s", m.GetBroker(), why), screen.Bad)
	} else {
		f.Add("Broker", m.GetBroker())
	}
	f.Add("Workers", workersText(s.GetWorkers()))
	for _, warning := range m.GetWarnings() {
		f.AddPainted("Warning", warning, screen.Warn)
	}
	for _, p := range s.GetPlugins() {
		if p.GetError() != "" {
			f.AddPainted("Plugin", fmt.Sprintf("%s: %s", p.GetName(), pluginError(p)), screen.Bad)
		}
		if why := p.GetRefused(); why != "" && why != p.GetError() {
			f.AddPainted("Plugin", fmt.Sprintf("%s: %s", p.GetName(), refusedText(why)), screen.Warn)
		}
	}
	return &f
}

// workersText sums up the worker processes.
func workersText(workers []*apiv1.Worker) string {
	if len(workers) == 0 {
		return "none running"
	}
	var rss int64
	var tasks int32
	for _, w := range workers {
		rss += w.GetRssBytes()
		tasks += w.GetRunning()
	}
	return fmt.Sprintf("%d processes, %d tasks, %s", len(workers), tasks, screen.Bytes(rss))
}
