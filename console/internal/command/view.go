package command

import (
	"context"
	"encoding/json"
	"time"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// The JSON forms of what a manager says of itself. They are stable: scripts read them. Fields are only ever added.

type managerJSON struct {
	Name        string     `json:"name"`
	Version     string     `json:"version"`
	PID         int32      `json:"pid"`
	State       string     `json:"state"`
	Started     *time.Time `json:"started_at,omitempty"`
	Broker      string     `json:"broker"`
	BrokerError string     `json:"broker_error,omitempty"`
	Warnings    []string   `json:"warnings,omitempty"`
}

// queueJSON: the counts of the broker are null while it is away.
type queueJSON struct {
	Name       string `json:"name"`
	Plugin     string `json:"plugin"`
	State      string `json:"state"`
	Reason     string `json:"reason,omitempty"`
	Waiting    *int64 `json:"waiting"`
	Scheduled  *int64 `json:"scheduled"`
	Retry      *int64 `json:"retry"`
	Dead       *int64 `json:"dead"`
	Held       int64  `json:"held"`
	Running    int64  `json:"running"`
	Workers    int64  `json:"workers"`
	MaxWorkers int64  `json:"max_workers"`
	Completed  uint64 `json:"completed"`
	Failed     uint64 `json:"failed"`
	Killed     uint64 `json:"killed"`

	Exits       map[string]uint64 `json:"exits,omitempty"`
	Priority    string            `json:"priority,omitempty"`
	LockWaiting int64             `json:"lock_waiting"`

	RunP50  uint64 `json:"run_p50_us"`
	RunP99  uint64 `json:"run_p99_us"`
	WaitP50 uint64 `json:"wait_p50_us"`
	WaitP99 uint64 `json:"wait_p99_us"`
}

type workerJSON struct {
	ID       uint64     `json:"id"`
	Queue    string     `json:"queue"`
	PID      int32      `json:"pid"`
	State    string     `json:"state"`
	Started  *time.Time `json:"started_at,omitempty"`
	Tasks    uint64     `json:"tasks"`
	Running  int32      `json:"running"`
	Slots    int32      `json:"slots"`
	RSSBytes int64      `json:"rss_bytes"`

	MemoryMaxBytes int64    `json:"memory_max_bytes,omitempty"`
	TaskIDs        []string `json:"task_ids,omitempty"`
	Leaving        string   `json:"leaving,omitempty"`
	Frozen         bool     `json:"frozen,omitempty"`
}

type pluginJSON struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	Command     []string        `json:"command"`
	Error       string          `json:"error,omitempty"`
	Schema      json.RawMessage `json:"payload_schema,omitempty"`
	SHA256      string          `json:"sha256,omitempty"`
	Refused     string          `json:"refused,omitempty"`
}

func managerView(m *apiv1.Manager) managerJSON {
	return managerJSON{
		Name: m.GetName(), Version: m.GetVersion(), PID: m.GetPid(), State: m.GetState(), Started: moment(m.GetStartedMs()),
		Broker: m.GetBroker(), BrokerError: m.GetBrokerError(), Warnings: m.GetWarnings(),
	}
}

func queueViews(queues []*apiv1.Queue) []queueJSON {
	views := make([]queueJSON, len(queues))
	for i, q := range queues {
		views[i] = queueJSON{
			Name: q.GetName(), Plugin: q.GetPlugin(), State: q.GetState(), Reason: q.GetReason(),
			Waiting: known(q.GetWaiting()), Scheduled: known(q.GetScheduled()), Retry: known(q.GetRetry()), Dead: known(q.GetDead()),
			Held: q.GetHeld(), Running: q.GetRunning(), Workers: q.GetWorkers(), MaxWorkers: q.GetMaxWorkers(),
			Completed: q.GetCompleted(), Failed: q.GetFailed(), Killed: q.GetKilled(),
			Exits: q.GetExits(), Priority: q.GetPriority(), LockWaiting: q.GetLockWaiting(),
			RunP50: q.GetRunP50Us(), RunP99: q.GetRunP99Us(), WaitP50: q.GetWaitP50Us(), WaitP99: q.GetWaitP99Us(),
		}
	}
	return views
}

func workerViews(workers []*apiv1.Worker) []workerJSON {
	views := make([]workerJSON, len(workers))
	for i, w := range workers {
		views[i] = workerJSON{
			ID: w.GetId(), Queue: w.GetQueue(), PID: w.GetPid(), State: w.GetState(), Started: moment(w.GetStartedMs()),
			Tasks: w.GetTasks(), Running: w.GetRunning(), Slots: w.GetSlots(), RSSBytes: w.GetRssBytes(),
			MemoryMaxBytes: w.GetMemoryMaxBytes(), TaskIDs: w.GetTaskIds(), Leaving: w.GetLeaving(), Frozen: w.GetFrozen(),
		}
	}
	return views
}

func pluginViews(plugins []*apiv1.Plugin) []pluginJSON {
	views := make([]pluginJSON, len(plugins))
	for i, p := range plugins {
		views[i] = pluginJSON{
			Name: p.GetName(), Version: p.GetVersion(), Description: p.GetDescription(), Command: p.GetCommand(), Error: p.GetError(),
			SHA256: p.GetSha256(), Refused: p.GetRefused(),
		}
		if schema := []byte(p.GetPayloadSchema()); json.Valid(schema) {
			views[i].Schema = schema
		}
	}
	return views
}

// known is a count of the broker; nil for -1, which says that the broker is away.
func known(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

func moment(unixMillis int64) *time.Time {
	if unixMillis == 0 {
		return nil
	}
	t := time.UnixMilli(unixMillis).UTC()
	return &t
}

// age is how long ago a moment was; empty when it is not known.
func age(env *Env, unixMillis int64) string {
	if unixMillis == 0 {
		return ""
	}
	return screen.Duration(env.Now().Sub(time.UnixMilli(unixMillis)))
}

// status asks the manager how it is doing.
func status(ctx context.Context, env *Env) (*apiv1.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	s, err := env.Control.Status(ctx, &apiv1.StatusRequest{})
	return s, client.Explain(ctx, "ask the manager how it is doing", err)
}
