package task_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/drover-jobs/drover/protocol/drover/task/v1"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// full is a task with a value in every field that a record keeps.
func full() *task.Task {
	at := time.UnixMilli(1_700_000_000_123).UTC()
	return &task.Task{
		ID: task.ID{Queue: "q", Key: "k"}, Kind: "feed-pull", State: task.Dead, Attempts: 3,
		Counters: task.Counters{Failures: 1, Kills: 2, Interruptions: 3, Losses: 4},
		Payload:  json.RawMessage(`{"url":"x"}`), Result: json.RawMessage(`{"n":1}`),
		Fault:     fault.New(fault.Timeout, "slow").AsPermanent().WithRetryAfter(time.Minute).WithDetail("stack"),
		Submitted: at, Started: at.Add(time.Second), Ended: at.Add(2 * time.Second), RunAt: at.Add(3 * time.Second),
		Queued: 1500 * time.Millisecond, Run: 20 * time.Millisecond, Manager: "m1",
	}
}

// A record reads back whole, and so does an empty one.
func TestRecords(t *testing.T) {
	t.Parallel()
	for _, want := range []*task.Task{full(), {ID: task.ID{Queue: "q", Key: "k"}}} {
		data, err := task.EncodeRecord(want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := task.DecodeRecord(data)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
	for name, data := range map[string][]byte{"empty": nil, "no protobuf": []byte("\xff"), "no ID": {0x0a, 0x01, 'x'}} {
		if got, err := task.DecodeRecord(data); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// A record of a newer release is read as far as it is understood.
func TestRecordsOfANewerRelease(t *testing.T) {
	t.Parallel()
	p := full().Proto()
	p.State, p.Fault.Kind = 99, 98
	data, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	data = append(data, 0xfa, 0x07, 0x01, 'x') // field 127
	got, err := task.DecodeRecord(data)
	if err != nil || got.State != task.Unknown || got.Fault.Kind != fault.Failed || got.Manager != "m1" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// Whatever text a task picked up, its record can be written.
func TestRecordsWithInvalidText(t *testing.T) {
	t.Parallel()
	bad := "a\xffb"
	tk := full()
	tk.Kind, tk.Manager, tk.Fault = bad, bad, fault.New(fault.Failed, "%s", bad).WithDetail(bad)
	data, err := task.EncodeRecord(tk)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := task.DecodeRecord(data); err != nil || got.Kind != "a\uFFFDb" || got.Fault.Message != "a\uFFFDb" {
		t.Errorf("got %+v, %v", got, err)
	}
	event := &task.Event{ID: tk.ID, State: task.Running, Progress: &task.Progress{Note: bad}}
	if _, err := task.EncodeEvents(event); err != nil {
		t.Error(err)
	}
}

// The events of one message read back in their order, and one that is unsound does not cost the others.
func TestEvents(t *testing.T) {
	t.Parallel()
	want := []*task.Event{
		{ID: task.ID{Queue: "q", Key: "a"}, State: task.Completed, At: time.UnixMilli(5).UTC(), Attempts: 2},
		{ID: task.ID{Queue: "q", Key: "b"}, State: task.Running, Progress: &task.Progress{Done: 1, Total: 2, Note: "x"}},
		{ID: task.ID{Queue: "q", Key: "c"}, State: task.Failed, Fault: fault.Unreachable},
	}
	data, err := task.EncodeEvents(want[0], want[1], &task.Event{}, want[2])
	if err != nil {
		t.Fatal(err)
	}
	if got, err := task.DecodeEvents(data); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := task.DecodeEvents([]byte("\xff")); err == nil {
		t.Error("no protobuf was read")
	}
}

// The JSON of a task has the names that scripts rely on, and reads back.
func TestTaskJSON(t *testing.T) {
	t.Parallel()
	want := *full()
	want.Progress = &task.Progress{Done: 1, Total: 2}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`"id":"q:k"`, `"queue":"q"`, `"state":"dead"`, `"attempts":3`, `"result":{"n":1}`, `"error":{"kind":"timeout","message":"slow"`,
		`"queued_ms":1500`, `"run_ms":20`, `"submitted_at":"2023-11-14T22:13:20.123Z"`, `"counters":{"failures":1,"kills":2,"interruptions":3,"losses":4}`,
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("%s is missing in %s", part, text)
		}
	}
	var got task.Task
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	want.Fault.RetryAfter = nil // not part of the JSON form
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, empty := range []task.Task{{ID: task.ID{Queue: "q", Key: "k"}}, {ID: task.ID{Queue: "q", Key: "k"}, State: task.Waiting}} {
		text, err := json.Marshal(empty)
		if err != nil {
			t.Fatal(err)
		}
		var back task.Task
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back, empty) {
			t.Errorf("%s reads back as %+v, %v", text, back, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"id":1}`), &got); err == nil {
		t.Error("an unsound ID was read")
	}
}

// What managers publish about a queue reads back.
func TestEntries(t *testing.T) {
	t.Parallel()
	want := task.Entry{Queue: "q", Kind: "k", Schema: `{}`, RetentionSeconds: 60}
	data, err := task.EncodeEntry(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := task.DecodeEntry(data); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := task.DecodeEntry([]byte("x")); err == nil {
		t.Error("no JSON was read")
	}
}

// All keys of a queue share its hash tag, so that one script may touch them in a Cluster.
func TestKeysShareTheHashTag(t *testing.T) {
	t.Parallel()
	k := task.KeysOf("feed-pull")
	for _, key := range []string{
		k.TaskPrefix(), k.Task("x"), k.Pending(), k.Active(), k.Lease(), k.Scheduled(), k.Retry(), k.Archived(), k.CompletedSet(), k.Paused(),
		k.Processed(), k.FailedRuns(), k.Record("x"), k.Entry(), k.EventsChannel(), k.WakeChannel(), k.CancelChannel(),
	} {
		if !strings.Contains(key, ":{feed-pull}:") {
			t.Errorf("%s has no hash tag", key)
		}
	}
}

// FuzzRecords reads whatever lies in Redis as a record, and as events: each is an answer that can be written again.
func FuzzRecords(f *testing.F) {
	data, err := task.EncodeRecord(full())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	events, err := proto.Marshal(&taskv1.Events{Events: []*taskv1.Event{{Id: "q:k"}, {}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(events)
	f.Fuzz(func(t *testing.T, data []byte) {
		if record, err := task.DecodeRecord(data); err == nil {
			if _, err := task.EncodeRecord(record); err != nil {
				t.Error(err)
			}
		}
		if events, err := task.DecodeEvents(data); err == nil {
			if _, err := task.EncodeEvents(events...); err != nil {
				t.Error(err)
			}
		}
	})
}
