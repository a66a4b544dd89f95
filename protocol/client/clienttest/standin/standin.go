// Package standin takes the place of a manager and its worker in the tests of client transports: it serves one queue in
// Redis, does what the worker misbehave does with the same payloads, and ends tasks with the same keys, records and
// events as a manager.
//
// It owns nothing of a real manager: no asynq, no processes, no leases that anybody extends, no limits. Tests start it;
// it stops in the test's Cleanup, when its goroutines are gone. It goes on over a restart of Redis.
package standin

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/broker"
	"github.com/drover-jobs/drover/protocol/task"
)

// Kind is the kind of task that the stand-in serves.
const Kind = "misbehave"

// Schema is the schema of the payloads.
const Schema = `{"type":"object","required":["do"],"additionalProperties":false,"properties":{
	"do":{"type":"string","enum":["return","fail","permanent","sleep","panic","exit","progress"]},
	"value":{},"note":{"type":"string"},"ms":{"type":"integer","minimum":0}}}`

const (
	pollEvery   = 2 * time.Millisecond
	rescueEvery = 100 * time.Millisecond
)

// Options say how the stand-in serves. The zero value keeps records for an hour.
type Options struct {
	// NoRecords ends tasks without a record, as a queue with a retention of 0 does.
	NoRecords bool
	// Idle publishes the queue and serves nothing: the test ends the tasks itself.
	Idle bool
}

// Standin serves one queue.
type Standin struct {
	rdb     redis.UniversalClient
	queue   string
	options Options
	wg      sync.WaitGroup

	mu      sync.Mutex
	running map[string]context.CancelFunc
}

// Start publishes the queue and serves it until the test ends. It does not close rdb.
func Start(t testing.TB, rdb redis.UniversalClient, queue string, options Options) *Standin {
	t.Helper()
	s := &Standin{rdb: rdb, queue: queue, options: options, running: map[string]context.CancelFunc{}}
	entry, err := task.EncodeEntry(task.Entry{Queue: queue, Kind: Kind, Schema: Schema, RetentionSeconds: 3600})
	if err != nil {
		t.Fatalf("write the entry of queue %s: %v", queue, err)
	}
	if err := rdb.Set(t.Context(), task.KeysOf(queue).Entry(), entry, 0).Err(); err != nil {
		t.Fatalf("publish queue %s: %v", queue, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if !options.Idle {
		s.wg.Go(func() { s.serve(ctx) })
		s.wg.Go(func() { s.listen(ctx) })
	}
	t.Cleanup(func() {
		cancel()
		s.wg.Wait()
	})
	return s
}

// serve takes tasks until ctx ends.
func (s *Standin) serve(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	rescue := time.NewTicker(rescueEvery)
	defer rescue.Stop()
	for {
		message, err := s.Take(ctx)
		if err == nil && message != nil {
			run, cancel := context.WithCancel(ctx)
			s.mu.Lock()
			s.running[message.Key] = cancel
			s.mu.Unlock()
			s.wg.Go(func() { s.perform(run, message) })
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-rescue.C:
			s.rescue(ctx)
		case <-tick.C:
		}
	}
}

// rescue gives back the tasks that were taken by an answer that never came, because Redis or the connection went.
func (s *Standin) rescue(ctx context.Context) {
	keys := task.KeysOf(s.queue)
	active, err := s.rdb.LRange(ctx, keys.Active(), 0, -1).Result()
	if err != nil {
		return // the next rescue tries again
	}
	for _, key := range active {
		s.mu.Lock()
		mine := s.running[key] != nil
		s.mu.Unlock()
		if !mine {
			_ = broker.Script(s.rdb, giveBackSource).Run(ctx, s.rdb, []string{keys.Active(), keys.Lease(), keys.Task(key), keys.Pending()}, key) // or the next one
		}
	}
}

// listen hears which running tasks are to be cancelled.
func (s *Standin) listen(ctx context.Context) {
	r := broker.NewReceiver(s.rdb, broker.Handler{Message: func(_, key string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if cancel := s.running[key]; cancel != nil {
			cancel()
		}
	}})
	r.Subscribe(task.KeysOf(s.queue).CancelChannel())
	r.Run(ctx)
}

func (s *Standin) perform(ctx context.Context, message *task.Message) {
	defer func() {
		s.mu.Lock()
		s.running[message.Key]()
		delete(s.running, message.Key)
		s.mu.Unlock()
	}()
	started := time.Now()
	var order order
	_ = json.Unmarshal(message.Payload, &order) // what cannot be read does nothing
	end := s.obey(ctx, message, order)
	end.Started, end.Ended = started.UTC(), time.Now().UTC()
	end.Run, end.Submitted, end.Kind, end.Manager = time.Since(started), message.Submitted(), message.Kind, "standin"
	s.finish(message, end)
}
