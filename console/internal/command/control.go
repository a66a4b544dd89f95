package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/protocol/client"
)

// Control is what the commands ask of a manager beside its tasks. Its errors are those of connect.
type Control interface {
	Observer
	TaskKeeper
	Operator
	Recorder
	Changer
	Scheduler
}

// Observer shows how a manager is doing.
type Observer interface {
	Status(ctx context.Context, request *apiv1.StatusRequest) (*apiv1.StatusResponse, error)
	Managers(ctx context.Context, request *apiv1.ManagersRequest) (*apiv1.ManagersResponse, error)
	Examine(ctx context.Context, request *apiv1.ExamineRequest) (*apiv1.ExamineResponse, error)
	Explain(ctx context.Context, request *apiv1.ExplainRequest) (*apiv1.ExplainResponse, error)
	Locks(ctx context.Context, request *apiv1.LocksRequest) (*apiv1.LocksResponse, error)
	Settings(ctx context.Context, request *apiv1.SettingsRequest) (*apiv1.SettingsResponse, error)
	Watch(ctx context.Context, request *apiv1.WatchRequest) (*connect.ServerStreamForClient[apiv1.WatchResponse], error)
}

// TaskKeeper lists tasks that lie in a queue, and moves them.
type TaskKeeper interface {
	ListTasks(ctx context.Context, request *apiv1.ListTasksRequest) (*apiv1.ListTasksResponse, error)
	RetryTasks(ctx context.Context, request *apiv1.RetryTasksRequest) (*apiv1.RetryTasksResponse, error)
	DropTasks(ctx context.Context, request *apiv1.DropTasksRequest) (*apiv1.DropTasksResponse, error)
}

// Operator stops and starts queues and workers.
type Operator interface {
	Pause(ctx context.Context, request *apiv1.PauseRequest) (*apiv1.PauseResponse, error)
	Resume(ctx context.Context, request *apiv1.ResumeRequest) (*apiv1.ResumeResponse, error)
	Restart(ctx context.Context, request *apiv1.RestartRequest) (*apiv1.RestartResponse, error)
	Kill(ctx context.Context, request *apiv1.KillRequest) (*apiv1.KillResponse, error)
}

// Recorder hands out what a worker wrote.
type Recorder interface {
	Logs(ctx context.Context, request *apiv1.LogsRequest) (*connect.ServerStreamForClient[apiv1.LogsResponse], error)
	Stacks(ctx context.Context, request *apiv1.StacksRequest) (*apiv1.StacksResponse, error)
}

// Changer changes settings.
type Changer interface {
	ChangeSettings(ctx context.Context, request *apiv1.ChangeSettingsRequest) (*apiv1.ChangeSettingsResponse, error)
	UndoSettings(ctx context.Context, request *apiv1.UndoSettingsRequest) (*apiv1.UndoSettingsResponse, error)
	SaveSettings(ctx context.Context, request *apiv1.SaveSettingsRequest) (*apiv1.SaveSettingsResponse, error)
	Reload(ctx context.Context, request *apiv1.ReloadRequest) (*apiv1.ReloadResponse, error)
}

// Scheduler shows and changes what is submitted by itself.
type Scheduler interface {
	Schedules(ctx context.Context, request *apiv1.SchedulesRequest) (*apiv1.SchedulesResponse, error)
	PauseSchedule(ctx context.Context, request *apiv1.PauseScheduleRequest) (*apiv1.PauseScheduleResponse, error)
	ResumeSchedule(ctx context.Context, request *apiv1.ResumeScheduleRequest) (*apiv1.ResumeScheduleResponse, error)
	RunSchedule(ctx context.Context, request *apiv1.RunScheduleRequest) (*apiv1.RunScheduleResponse, error)
}

// ask asks a manager something that it answers at once. what says what for, as in "pause the queue".
func ask[Req, Res any](ctx context.Context, what string, call func(context.Context, *Req) (*Res, error), request *Req) (*Res, error) {
	return askWithin(ctx, answerTime, what, call, request)
}

// askWithin is ask for what may take longer.
func askWithin[Req, Res any](ctx context.Context, patience time.Duration, what string, call func(context.Context, *Req) (*Res, error), request *Req) (*Res, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := call(ctx, request)
	return answer, refusal(ctx, what, err)
}

// refusal turns the error of a call to the control service into one of this program.
func refusal(ctx context.Context, what string, err error) error {
	var sent *connect.Error
	if err == nil || ctx.Err() != nil || !errors.As(err, &sent) || !connect.IsWireError(err) {
		return client.Explain(ctx, what, err)
	}
	switch sent.Code() {
	case connect.CodeInvalidArgument, connect.CodeOutOfRange, connect.CodeResourceExhausted:
		return &ExitError{Code: Usage, Kind: "invalid", Message: sent.Message()}
	case connect.CodeNotFound:
		return &ExitError{Code: Usage, Kind: "not_found", Message: sent.Message()}
	case connect.CodeFailedPrecondition, connect.CodeAborted, connect.CodeAlreadyExists:
		return &ExitError{Code: Failed, Kind: "refused", Message: sent.Message()}
	case connect.CodeUnimplemented:
		return &ExitError{Code: Failed, Kind: "unsupported",
			Message: fmt.Sprintf("%s: this manager cannot do that: it is of another release than this console, or does not offer it; status shows its version", what)}
	default:
		return client.Explain(ctx, what, err)
	}
}

// aboutQueue replaces the error for a queue that is not there by one that names those that are.
func aboutQueue(ctx context.Context, env *Env, queue string, err error) error {
	names := queueNames(statusNow(ctx, env, err).GetQueues())
	if len(names) == 0 || slices.Contains(names, queue) {
		return err
	}
	return unknownQueue(ctx, env, queue, names)
}

// aboutWorker replaces the error for a worker that is not there by one that names those that are.
func aboutWorker(ctx context.Context, env *Env, worker uint64, err error) error {
	s := statusNow(ctx, env, err)
	if s == nil {
		return err
	}
	numbers := workerNumbers(s.GetWorkers())
	if slices.Contains(numbers, strconv.FormatUint(worker, 10)) {
		return err
	}
	there := "no worker is running"
	if len(numbers) > 0 {
		there = "those that live: " + strings.Join(numbers, ", ")
	}
	return &ExitError{Code: Usage, Kind: "unknown_worker", Message: fmt.Sprintf("no such worker: %d (%s)", worker, there)}
}

// statusNow is the status when err says that something is not there, and when the manager answers quickly; else nil.
func statusNow(ctx context.Context, env *Env, err error) *apiv1.StatusResponse {
	var failure *ExitError
	if !errors.As(err, &failure) || failure.Kind != "not_found" {
		return nil
	}
	return quickStatus(ctx, env)
}

func workerNumbers(workers []*apiv1.Worker) []string {
	numbers := make([]string, len(workers))
	for i, w := range workers {
		numbers[i] = strconv.FormatUint(w.GetId(), 10)
	}
	return numbers
}

// parseWorker reads a worker's number; the error is one of usage.
func parseWorker(word string) (uint64, error) {
	number, err := strconv.ParseUint(strings.TrimPrefix(word, "#"), 10, 64)
	if err != nil || number == 0 {
		return 0, usageError("%.60q is not a worker's number: workers lists them", word)
	}
	return number, nil
}
