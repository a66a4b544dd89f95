package task_test

import (
	"bytes"
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/drover-jobs/drover/protocol/task"
)

// broker is a Redis with asynq's own client and inspector on it.
func broker(t *testing.T) (*redis.Client, *asynq.Client, *asynq.Inspector) {
	t.Helper()
	server := miniredis.RunT(t)
	db := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db, asynq.NewClientFromRedisClient(db), asynq.NewInspectorFromRedisClient(db)
}

// A task that asynq's own client enqueued is read whole, and written back as asynq wrote it.
func TestDecodesWhatAsynqWrites(t *testing.T) {
	t.Parallel()
	db, client, _ := broker(t)
	deadline := time.Now().Add(time.Hour)
	info, err := client.Enqueue(
		asynq.NewTaskWithHeaders("feed-pull", []byte(`{"url":"x"}`), map[string]string{"trace": "abc", "drover-submitted-ms": "1700000000123"}),
		asynq.Queue("q"), asynq.MaxRetry(7), asynq.Timeout(90*time.Second), asynq.Deadline(deadline), asynq.Retention(time.Minute),
		asynq.Unique(time.Hour), asynq.TaskID("my-id"))
	if err != nil {
		t.Fatal(err)
	}
	keys := task.KeysOf("q")
	stored, err := db.HGet(t.Context(), keys.Task(info.ID), "msg").Bytes()
	if err != nil {
		t.Fatal(err)
	}
	m, err := task.DecodeMessage(stored)
	if err != nil {
		t.Fatal(err)
	}
	if m.Kind != "feed-pull" || string(m.Payload) != `{"url":"x"}` || m.Key != "my-id" || m.Queue != "q" || m.MaxRetry != 7 ||
		m.Timeout != 90 || m.Deadline != deadline.Unix() || m.Retention != 60 || m.UniqueKey == "" || m.Headers["trace"] != "abc" {
		t.Errorf("got %+v", m)
	}
	if want := time.UnixMilli(1700000000123); !m.Submitted().Equal(want) {
		t.Errorf("submitted %v, want %v", m.Submitted(), want)
	}
	again, err := task.DecodeMessage(m.Encode())
	if err != nil || !reflect.DeepEqual(again, m) {
		t.Errorf("got %+v, %v; want %+v", again, err, m)
	}
	if n, err := db.LLen(t.Context(), keys.Pending()).Result(); err != nil || n != 1 {
		t.Errorf("%d pending in %s, %v", n, keys.Pending(), err)
	}
	if queues, err := db.SMembers(t.Context(), task.AsynqQueuesKey).Result(); err != nil || !reflect.DeepEqual(queues, []string{"q"}) {
		t.Errorf("queues %v, %v", queues, err)
	}
}

// A message written here is read by asynq as it is meant, and asynq will never end the task for its retries or its time.
func TestAsynqReadsWhatIsEncoded(t *testing.T) {
	t.Parallel()
	db, _, inspector := broker(t)
	id := task.ContentID("q", "feed-pull", []byte(`{}`))
	m := task.NewMessage(id, "feed-pull", []byte(`{}`), time.Now())
	put(t, db, id, m)
	info, err := inspector.GetTaskInfo("q", id.Key)
	if err != nil {
		t.Fatal(err)
	}
	if info.ID != id.Key || info.Queue != "q" || info.Type != "feed-pull" || string(info.Payload) != `{}` || info.State != asynq.TaskStatePending ||
		!reflect.DeepEqual(info.Headers, m.Headers) {
		t.Errorf("got %+v", info)
	}
	if info.MaxRetry < 1<<30 || info.Timeout < 5*365*24*time.Hour || !info.Deadline.IsZero() || info.Retention != 0 {
		t.Errorf("asynq would end it by itself: %+v", info)
	}
	if m.Submitted().IsZero() {
		t.Error("it does not say when it was submitted")
	}
	m.Retried, m.ErrorMsg, m.LastFailedAt = 3, "broken", 1_700_000_000
	put(t, db, id, m)
	info, err = inspector.GetTaskInfo("q", id.Key)
	if err != nil || info.Retried != 3 || info.LastErr != "broken" || info.LastFailedAt.Unix() != 1_700_000_000 {
		t.Errorf("got %+v, %v", info, err)
	}
}

// put stores a message the way asynq's enqueue does.
func put(t *testing.T, db *redis.Client, id task.ID, m *task.Message) {
	t.Helper()
	keys := task.KeysOf(id.Queue)
	_, err := db.TxPipelined(t.Context(), func(p redis.Pipeliner) error {
		p.SAdd(context.Background(), task.AsynqQueuesKey, id.Queue)
		p.HSet(context.Background(), keys.Task(id.Key), "msg", m.Encode(), "state", "pending", "pending_since", time.Now().UnixNano())
		p.LPush(context.Background(), keys.Pending(), id.Key)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// What is unknown here, such as fields of a later asynq, is kept when a message is written back.
func TestUnknownFieldsAreKept(t *testing.T) {
	t.Parallel()
	unknown := protowire.AppendTag(nil, 14, protowire.BytesType) // group_key
	unknown = protowire.AppendString(unknown, "group")
	unknown = protowire.AppendTag(unknown, 100, protowire.Fixed64Type)
	unknown = protowire.AppendFixed64(unknown, 7)
	unknown = protowire.AppendTag(unknown, 5, protowire.Fixed32Type) // a field of ours, of another type
	unknown = protowire.AppendFixed32(unknown, 9)
	known := task.NewMessage(task.RandomID("q"), "k", []byte(`{}`), time.Now()).Encode()
	m, err := task.DecodeMessage(append(append([]byte{}, unknown...), known...))
	if err != nil {
		t.Fatal(err)
	}
	if encoded := m.Encode(); !bytes.Equal(encoded, append(known, unknown...)) {
		t.Errorf("got %x", encoded)
	}
}

// What is no message is an error, not a half of one.
func TestUnsoundMessages(t *testing.T) {
	t.Parallel()
	sound := task.NewMessage(task.RandomID("q"), "k", []byte(`{}`), time.Now()).Encode()
	for name, data := range map[string][]byte{
		"cut": sound[:len(sound)-1], "no protobuf": []byte("\xff\xff\xff"), "field 0": {0, 0}, "not UTF-8": {0x0a, 0x01, 0xff},
		"a header that is not UTF-8": {0x7a, 0x06, 0x0a, 0x01, 'a', 0x12, 0x01, 0xff},
	} {
		if m, err := task.DecodeMessage(data); err == nil {
			t.Errorf("%s: got %+v", name, m)
		}
	}
	if m, err := task.DecodeMessage(nil); err != nil || !m.Submitted().IsZero() {
		t.Errorf("an empty one: %+v, %v", m, err)
	}
}

// FuzzDecodeMessage reads whatever bytes: what it accepts is written back and read the same.
func FuzzDecodeMessage(f *testing.F) {
	f.Add(task.NewMessage(task.RandomID("q"), "k", []byte(`{}`), time.Now()).Encode())
	f.Add([]byte{0x7a, 0x02, 0x0a, 0x00})
	f.Add([]byte{0x7a, 0x01, 0x08})
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := task.DecodeMessage(data)
		if err != nil {
			return
		}
		again, err := task.DecodeMessage(m.Encode())
		if err != nil || !reflect.DeepEqual(again, m) {
			t.Errorf("%+v, %v; want %+v", again, err, m)
		}
	})
}
