package api_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/orchestrator/internal/settings"
	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// panel is a manager that is well, fails with what it is told to, and gives streams of any length.
type panel struct {
	err     error
	who     atomic.Pointer[string]
	watched atomic.Int32 // streams that are open
	stream  int          // messages of a stream, which then stays open; none for one that ends at once
}

var _ api.Control = (*panel)(nil)

func (p *panel) Status(context.Context) (*apiv1.StatusResponse, error) {
	return &apiv1.StatusResponse{Manager: &apiv1.Manager{Name: "test", State: "running"}}, nil
}

func (p *panel) Managers(context.Context) (*apiv1.ManagersResponse, error) {
	return &apiv1.ManagersResponse{}, p.err
}

func (p *panel) Examine(context.Context) (*apiv1.ExamineResponse, error) {
	return &apiv1.ExamineResponse{}, p.err
}

func (p *panel) Watch(ctx context.Context, _ *apiv1.WatchRequest) iter.Seq2[*apiv1.WatchResponse, error] {
	return streamOf[apiv1.WatchResponse](ctx, p)
}

func (p *panel) Logs(ctx context.Context, _ *apiv1.LogsRequest) iter.Seq2[*apiv1.LogsResponse, error] {
	return streamOf[apiv1.LogsResponse](ctx, p)
}

func streamOf[M any](ctx context.Context, p *panel) iter.Seq2[*M, error] {
	return func(yield func(*M, error) bool) {
		p.watched.Add(1)
		defer p.watched.Add(-1)
		if p.err != nil {
			yield(nil, p.err)
			return
		}
		for range p.stream {
			if !yield(new(M), nil) {
				return
			}
		}
		if p.stream > 0 {
			<-ctx.Done()
		}
	}
}

func (p *panel) ListTasks(context.Context, *apiv1.ListTasksRequest) (*apiv1.ListTasksResponse, error) {
	return &apiv1.ListTasksResponse{}, p.err
}

func (p *panel) RetryTasks(context.Context, *apiv1.RetryTasksRequest) (*apiv1.RetryTasksResponse, error) {
	return &apiv1.RetryTasksResponse{}, p.err
}

func (p *panel) DropTasks(context.Context, *apiv1.DropTasksRequest) (*apiv1.DropTasksResponse, error) {
	return &apiv1.DropTasksResponse{}, p.err
}

func (p *panel) Explain(context.Context, *apiv1.ExplainRequest) (*apiv1.ExplainResponse, error) {
	return &apiv1.ExplainResponse{}, p.err
}

func (p *panel) Locks(context.Context, *apiv1.LocksRequest) (*apiv1.LocksResponse, error) {
	return &apiv1.LocksResponse{}, p.err
}

func (p *panel) Pause(context.Context, *apiv1.PauseRequest) (*apiv1.PauseResponse, error) {
	return &apiv1.PauseResponse{}, p.err
}

func (p *panel) Resume(context.Context, *apiv1.ResumeRequest) (*apiv1.ResumeResponse, error) {
	return &apiv1.ResumeResponse{}, p.err
}

func (p *panel) Restart(context.Context, *apiv1.RestartRequest) (*apiv1.RestartResponse, error) {
	return &apiv1.RestartResponse{}, p.err
}

func (p *panel) Kill(ctx context.Context, _ *apiv1.KillRequest) (*apiv1.KillResponse, error) {
	who := api.Caller(ctx)
	p.who.Store(&who)
	return &apiv1.KillResponse{}, p.err
}

func (p *panel) Stacks(context.Context, *apiv1.StacksRequest) (*apiv1.StacksResponse, error) {
	return &apiv1.StacksResponse{}, p.err
}

func (p *panel) Settings(context.Context, *apiv1.SettingsRequest) (*apiv1.SettingsResponse, error) {
	return &apiv1.SettingsResponse{}, p.err
}

func (p *panel) ChangeSettings(_ context.Context, r *apiv1.ChangeSettingsRequest) (*apiv1.ChangeSettingsResponse, error) {
	p.who.Store(&r.Who)
	return &apiv1.ChangeSettingsResponse{}, p.err
}

func (p *panel) UndoSettings(context.Context, *apiv1.UndoSettingsRequest) (*apiv1.UndoSettingsResponse, error) {
	return &apiv1.UndoSettingsResponse{}, p.err
}

func (p *panel) SaveSettings(context.Context, *apiv1.SaveSettingsRequest) (*apiv1.SaveSettingsResponse, error) {
	return &apiv1.SaveSettingsResponse{}, p.err
}

func (p *panel) Reload(context.Context, *apiv1.ReloadRequest) (*apiv1.ReloadResponse, error) {
	return &apiv1.ReloadResponse{}, p.err
}

func (p *panel) Schedules(context.Context, *apiv1.SchedulesRequest) (*apiv1.SchedulesResponse, error) {
	return &apiv1.SchedulesResponse{}, p.err
}

func (p *panel) PauseSchedule(_ context.Context, r *apiv1.PauseScheduleRequest) (*apiv1.PauseScheduleResponse, error) {
	p.who.Store(&r.Who)
	return &apiv1.PauseScheduleResponse{}, p.err
}

func (p *panel) ResumeSchedule(_ context.Context, r *apiv1.ResumeScheduleRequest) (*apiv1.ResumeScheduleResponse, error) {
	p.who.Store(&r.Who)
	return &apiv1.ResumeScheduleResponse{}, p.err
}

func (p *panel) RunSchedule(_ context.Context, r *apiv1.RunScheduleRequest) (*apiv1.RunScheduleResponse, error) {
	p.who.Store(&r.Who)
	return &apiv1.RunScheduleResponse{}, p.err
}

// controlMethods are all calls of the ControlService.
func controlMethods() []protoreflect.MethodDescriptor {
	methods := apiv1.File_drover_api_v1_control_proto.Services().ByName("ControlService").Methods()
	all := make([]protoreflect.MethodDescriptor, methods.Len())
	for i := range all {
		all[i] = methods.Get(i)
	}
	return all
}

func controlProcedures() []string {
	var all []string
	for _, m := range controlMethods() {
		all = append(all, fmt.Sprintf("/%s/%s", m.Parent().FullName(), m.Name()))
	}
	return all
}

// control returns a client of the ControlService, closed with the test.
func control(t *testing.T, socket string) *client.ControlClient {
	t.Helper()
	c, err := client.Control("unix:" + socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// serveControl serves a panel on both sockets of a new world.
func serveControl(t *testing.T, p *panel) *world {
	t.Helper()
	w := newWorld(t)
	serve(t, api.New(api.Options{Socket: w.socket, PluginSocket: w.plugin, Tasks: w.tasks, Control: p, Log: quiet()}))
	return w
}

// Every call of the ControlService is served on the operator's socket, and none is on the plugins', where nothing of the manager
// is reached.
func TestControlRights(t *testing.T) {
	t.Parallel()
	p := &panel{err: errors.New("reached")}
	w := serveControl(t, p)
	full, plugin := plain(t, w.socket), plain(t, w.plugin)
	for i, m := range controlMethods() {
		procedure := controlProcedures()[i]
		if m.IsStreamingServer() {
			if answer := stream(t, full, procedure); !strings.Contains(answer, "reached") {
				t.Errorf("%s with full rights gave %q", procedure, answer)
			}
			if answer := stream(t, plugin, procedure); !strings.Contains(answer, "permission_denied") || strings.Contains(answer, "reached") {
				t.Errorf("%s for a plugin gave %q", procedure, answer)
			}
			continue
		}
		if _, answer := post(t, full, procedure, `{}`); !strings.Contains(answer, "reached") && m.Name() != "Status" {
			t.Errorf("%s with full rights gave %q", procedure, answer)
		}
		if code, answer := post(t, plugin, procedure, `{}`); code != 403 || strings.Contains(answer, "reached") || !strings.Contains(answer, w.socket) {
			t.Errorf("%s for a plugin gave %d %q", procedure, code, answer)
		}
	}
}

// The errors of a manager come to callers as what they are.
func TestControlErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want connect.Code
	}{
		{api.Invalid(errors.New("x")), connect.CodeInvalidArgument},
		{fmt.Errorf("y: %w", api.NotFound(errors.New("x"))), connect.CodeNotFound},
		{api.Refused(errors.New("x")), connect.CodeFailedPrecondition},
		{api.Busy(errors.New("x")), connect.CodeResourceExhausted},
		{&settings.InvalidError{}, connect.CodeInvalidArgument},
		{&settings.VersionError{}, connect.CodeFailedPrecondition},
		{settings.ErrNothingToUndo, connect.CodeFailedPrecondition},
		{fmt.Errorf("y: %w", client.ErrUnavailable), connect.CodeUnavailable},
		{errors.New("x"), connect.CodeInternal},
	} {
		w := serveControl(t, &panel{err: c.err})
		if _, err := control(t, w.socket).Kill(t.Context(), &apiv1.KillRequest{}); connect.CodeOf(err) != c.want {
			t.Errorf("%v came as %v, want %s", c.err, err, c.want)
		}
	}
}

// Who changes something is known by the kernel's word; the name that a caller gives stands beside it, without what would
// break a line of the log.
func TestWho(t *testing.T) {
	t.Parallel()
	p := &panel{}
	w := serveControl(t, p)
	c := control(t, w.socket)
	kernel := fmt.Sprintf("uid %d, pid %d", os.Getuid(), os.Getpid())
	for name, want := range map[string]string{
		"": kernel, "kim": "kim (" + kernel + ")", "k\nim\x1b[31m\u202e": "kim[31m (" + kernel + ")", " ": kernel,
		strings.Repeat("ä", 1000): strings.Repeat("ä", 40) + " (" + kernel + ")",
	} {
		if _, err := c.ChangeSettings(t.Context(), &apiv1.ChangeSettingsRequest{Who: name}); err != nil {
			t.Fatal(err)
		}
		if got := *p.who.Load(); got != want {
			t.Errorf("%q became %q, want %q", name, got, want)
		}
	}
	if _, err := c.Kill(t.Context(), &apiv1.KillRequest{}); err != nil || *p.who.Load() != kernel {
		t.Errorf("%q, %v", *p.who.Load(), err)
	}
}

// Only so many may watch at once; the next is told, and finds room when one has gone. All end with the manager.
func TestFollowersAreBounded(t *testing.T) {
	t.Parallel()
	p := &panel{stream: 1}
	w := newWorld(t)
	stop := serve(t, api.New(api.Options{Socket: w.socket, Tasks: w.tasks, Control: p, Log: quiet()}))
	c := control(t, w.socket)
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	for i := range api.MaxFollowers {
		of := ctx
		if i > 0 {
			of = t.Context()
		}
		s, err := c.Watch(of, &apiv1.WatchRequest{})
		if err != nil || !s.Receive() {
			t.Fatalf("stream %d: %v, %v", i, err, s.Err())
		}
		wg.Go(func() {
			for s.Receive() {
			}
			if err := s.Err(); i > 0 && connect.CodeOf(err) != connect.CodeAborted {
				t.Errorf("a stream ended with %v", err)
			}
			_ = s.Close()
		})
	}
	one := func() error {
		s, err := c.Logs(t.Context(), &apiv1.LogsRequest{})
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		s.Receive()
		return s.Err()
	}
	if err := one(); connect.CodeOf(err) != connect.CodeResourceExhausted {
		t.Errorf("one too many: %v", err)
	}
	cancel()
	eventually(t, "there is room again", func() bool { return p.watched.Load() == api.MaxFollowers-1 })
	stop()
}

// A stream on which nothing happens for longer than a caller may take to read stays open, over HTTP/2 as well.
func TestSilentStreams(t *testing.T) {
	t.Parallel()
	const quick = 50 * time.Millisecond
	w := newWorld(t)
	server := api.New(api.Options{Socket: w.socket, Tasks: w.tasks, Control: &panel{stream: 1}, Log: quiet()})
	server.Quick(quick)
	serve(t, server)
	ctx, cancel := context.WithTimeout(t.Context(), 10*quick)
	defer cancel()
	s, err := control(t, w.socket).Watch(ctx, &apiv1.WatchRequest{})
	if err != nil || !s.Receive() {
		t.Fatalf("%v, %v", err, s.Err())
	}
	if s.Receive() || connect.CodeOf(s.Err()) != connect.CodeDeadlineExceeded {
		t.Errorf("it ended with %v, not with the caller's deadline", s.Err())
	}
}
