package command_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"

	"github.com/drover-jobs/drover/console/internal/command"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

var update = flag.Bool("update", false, "write the golden files anew")

// now is the fixed time of the tests.
func now() time.Time { return time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC) }

// fakeClient is a client whose tasks lie in memory.
type fakeClient struct {
	mu        sync.Mutex
	tasks     map[task.ID]*task.Task
	err       error           // of every call
	followErr error           // of Subscribe
	schema    string          // a field that a payload must not have
	events    []client.Update // before the ends
	payload   json.RawMessage // of the last submit
	options   client.Options  // of the last submit
	next      *task.Task      // what the next submit becomes
}

var _ client.Client = (*fakeClient)(nil)

func (f *fakeClient) Submit(_ context.Context, queue string, payload any, options ...client.Option) (client.Submitted, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return client.Submitted{}, f.err
	}
	if queue == "feedpull" {
		return client.Submitted{}, fmt.Errorf("submit to %q: %w", queue, client.ErrUnknownQueue)
	}
	text, err := json.Marshal(payload)
	if err != nil {
		return client.Submitted{}, err
	}
	if f.schema != "" && strings.Contains(string(text), f.schema) {
		return client.Submitted{}, fmt.Errorf("%w: %s: is not allowed", client.ErrInvalidPayload, f.schema)
	}
	f.payload, f.options = text, client.Apply(options)
	id := task.ID{Queue: queue, Key: "k1"}
	state := task.Waiting
	if f.next != nil {
		id = f.next.ID
		f.tasks[id] = f.next
	}
	existing, joined := f.tasks[task.ID{Queue: queue, Key: "running"}]
	if joined && f.next == nil {
		return client.Submitted{ID: existing.ID, Joined: true, State: existing.State}, nil
	}
	return client.Submitted{ID: id, State: state}, nil
}

// SubmitBatch submits one after the other.
func (f *fakeClient) SubmitBatch(ctx context.Context, work []client.Work) ([]client.Batched, error) {
	all := make([]client.Batched, len(work))
	for i, w := range work {
		all[i].Submitted, all[i].Err = f.Submit(ctx, w.Queue, w.Payload, w.Options...)
	}
	return all, nil
}

func (f *fakeClient) Get(_ context.Context, id task.ID) (*task.Task, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	t, ok := f.tasks[id]
	if !ok {
		return nil, fmt.Errorf("get task %s: %w", id, client.ErrUnknownTask)
	}
	return t, nil
}

// Subscribe yields the ends that lie there and then waits for the end of the context when one task has not ended.
func (f *fakeClient) Subscribe(ctx context.Context, ids []task.ID, options ...client.FollowOption) iter.Seq2[client.Update, error] {
	return func(yield func(client.Update, error) bool) {
		if f.err != nil {
			yield(client.Update{}, f.err)
			return
		}
		if client.ApplyFollow(options).Events {
			for _, u := range f.events {
				if !yield(u, nil) {
					return
				}
			}
		}
		if f.followErr != nil {
			yield(client.Update{}, f.followErr)
			return
		}
		open := false
		for _, id := range ids {
			u := client.Update{ID: id}
			t, known := f.tasks[id]
			switch {
			case !known:
				u.Unknown = true
			case t.State.Ended():
				u.Ended = t
			default:
				open = true
				continue
			}
			if !yield(u, nil) {
				return
			}
		}
		if open {
			<-ctx.Done()
			yield(client.Update{}, ctx.Err())
		}
	}
}

func (f *fakeClient) Cancel(_ context.Context, id task.ID) (task.State, error) {
	t, err := f.Get(context.Background(), id)
	if err != nil {
		return task.Unknown, err
	}
	if t.State == task.Waiting {
		t.State = task.Cancelled
	}
	return t.State, nil
}

func (f *fakeClient) Close() error { return nil }

// fakeControl answers with what it holds.
type fakeControl struct {
	command.Control
	status *apiv1.StatusResponse
	err    error
}

func (f fakeControl) Status(context.Context, *apiv1.StatusRequest) (*apiv1.StatusResponse, error) {
	return f.status, f.err
}

// Managers are this one, and one on another machine.
func (f fakeControl) Managers(context.Context, *apiv1.ManagersRequest) (*apiv1.ManagersResponse, error) {
	return &apiv1.ManagersResponse{Managers: []*apiv1.ManagerEntry{
		{Name: "dev", Host: "here", Pid: 4242, State: "running", Queues: []string{"feed-pull", "misbehave"}, Own: true},
		{Name: "far", Host: "there\x1b[2J", Pid: 77, State: "absent", SilentMs: 20_000, Queues: []string{"import"}},
	}}, f.err
}

// ListTasks has one dead letter in feed-pull.
func (f fakeControl) ListTasks(_ context.Context, r *apiv1.ListTasksRequest) (*apiv1.ListTasksResponse, error) {
	answer := &apiv1.ListTasksResponse{}
	if r.GetQueue() == "feed-pull" && r.GetState() == taskv1.State_STATE_DEAD {
		answer.Tasks = append(answer.Tasks, dead().Proto())
	}
	return answer, f.err
}

// Settings are one of a queue.
func (f fakeControl) Settings(context.Context, *apiv1.SettingsRequest) (*apiv1.SettingsResponse, error) {
	return &apiv1.SettingsResponse{Settings: []*apiv1.Setting{{Queue: "feed-pull", Name: "priority", Value: "user", Allowed: "one of user, system"}}}, f.err
}

// sampleStatus is a manager with two queues, one of them in trouble.
func sampleStatus() *apiv1.StatusResponse {
	ago := func(d time.Duration) int64 { return now().Add(-d).UnixMilli() }
	return &apiv1.StatusResponse{
		Manager: &apiv1.Manager{
			Name: "dev", Version: "v0.1.0", Pid: 4242, StartedMs: ago(192 * time.Second), State: "running", Broker: "embedded at 127.0.0.1:40113",
		},
		Queues: []*apiv1.Queue{
			{Name: "feed-pull", Plugin: "feed-pull", State: "ok", Waiting: 12, Retry: 1, Held: 4, Running: 8, Workers: 2, MaxWorkers: 4, Completed: 1041, Failed: 3,
				RunP50Us: 340, RunP99Us: 3_120_000, WaitP50Us: 4200, WaitP99Us: 61_000},
			{Name: "misbehave", Plugin: "misbehave", State: "circuit-open", Reason: "the program ended \x1b[31m5 times\nwhile starting", Waiting: -1, Scheduled: -1, Retry: -1, Dead: 2, MaxWorkers: 1, Killed: 7},
		},
		Workers: []*apiv1.Worker{
			{Id: 17, Queue: "feed-pull", Pid: 4250, State: "busy", StartedMs: ago(65 * time.Second), Tasks: 1000, Running: 4, Slots: 4, RssBytes: 21 << 20},
			{Id: 18, Queue: "feed-pull", Pid: 4251, State: "idle", StartedMs: ago(2 * time.Second), Tasks: 44, Slots: 4, RssBytes: 18 << 20},
		},
		Plugins: []*apiv1.Plugin{
			{Name: "feed-pull", Version: "v0.1.0", Description: "pulls a feed and stores its entries", Command: []string{"bin/plugins/feed-pull"}, PayloadSchema: `{"type":"object","properties":{"url":{"type":"string"},"force":{"type":"boolean"},"mode":{"enum":["quick","full"]}}}`},
			{Name: "misbehave", Command: []string{"bin/plugins/misbehave"}, Error: "the program ended while starting"},
		},
	}
}

// console is a console on fakes.
type console struct {
	tasks   *fakeClient
	control fakeControl
	in      string
	files   map[string]string
	width   int
	live    bool

	attached command.Control // instead of control
	confirm  func(ctx context.Context, question string) (bool, error)
	mode     fs.FileMode       // of the socket
	onOut    func(text string) // hears all that was written to Out so far
	onErr    func(text string) // the same of Err
	clock    func() time.Time  // instead of now
}

// heard is a buffer that tells what is in it after each write.
type heard struct {
	*bytes.Buffer
	hear func(text string)
}

func (h heard) Write(p []byte) (int, error) {
	n, err := h.Buffer.Write(p)
	if h.hear != nil {
		h.hear(h.String())
	}
	return n, err
}

func newConsole(tasks ...*task.Task) *console {
	c := &console{tasks: &fakeClient{tasks: map[task.ID]*task.Task{}}, control: fakeControl{status: sampleStatus()}, files: map[string]string{}}
	for _, t := range tasks {
		c.tasks.tasks[t.ID] = t
	}
	return c
}

func (c *console) env(words []string, out, err *bytes.Buffer) *command.Env {
	var control command.Control = c.control
	if c.attached != nil {
		control = c.attached
	}
	clock := now
	if c.clock != nil {
		clock = c.clock
	}
	return &command.Env{
		In: strings.NewReader(c.in), Out: heard{out, c.onOut}, Err: heard{err, c.onErr}, Tasks: c.tasks, Control: control, Address: "var/drover.sock",
		Who: "ada", Confirm: c.confirm,
		Machine: command.Machine{
			Stat:     func(string) (fs.FileInfo, error) { return fileInfo{mode: c.mode}, nil },
			FreeDisk: func(string) (free, all uint64, err error) { return 1 << 30, 100 << 30, nil },
		},
		Now: clock, Zone: time.UTC, Width: func() int { return c.width }, Live: c.live, Version: "v0.1.0", JSON: command.WantsJSON(words),
		ReadFile: func(name string) ([]byte, error) {
			text, ok := c.files[name]
			if !ok {
				return nil, errors.New("no such file")
			}
			return []byte(text), nil
		},
	}
}

// run runs one command line.
func (c *console) run(ctx context.Context, words ...string) (code command.Code, stdout, stderr string) {
	var out, errs bytes.Buffer
	env := c.env(words, &out, &errs)
	tree := command.New()
	call, err := tree.Parse(words)
	if err == nil {
		err = tree.Run(ctx, env, call)
	}
	failure := command.Explain(ctx, env, err)
	if err := command.Report(env, failure); err != nil {
		panic(err)
	}
	if failure != nil {
		code = failure.Code
	}
	return code, out.String(), errs.String()
}

// golden compares text with a file under testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text != string(want) {
		t.Errorf("%s differs (go test -update writes it anew); got\n%s\nwant\n%s", file, text, want)
	}
}
