package direct

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/broker"
	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// topicLinger is how long a topic without followers stays subscribed.
const topicLinger = 10 * time.Second

// hub receives the events of all queues that somebody follows and hands each to the followers of its task. It never waits for a
// follower.
//
// A topic is the channel of one queue. It is wanted while it has followers, and for a while after, since who waits for
// one task will soon wait for the next. It is confirmed once Redis has said that the subscription stands: every end
// after that moment reaches the hub, every end before it can be read. So whenever a topic is confirmed, at first or
// after a lost connection, its followers are told to look at all their tasks.
type hub struct {
	receiver *broker.Receiver

	mu     sync.Mutex
	topics map[string]*topic // by channel
	stop   context.CancelFunc
	closed bool
	wg     sync.WaitGroup
}

// topic is the channel of one queue.
type topic struct {
	queue     string
	confirmed bool // and not lost since
	followers map[*follower]struct{}
	waiting   map[string][]*follower // by the key of the task
	idleSince time.Time              // since when it has no followers
}

func newHub(rdb redis.UniversalClient, log *slog.Logger) *hub {
	h := &hub{topics: map[string]*topic{}}
	h.receiver = broker.NewReceiver(rdb, broker.Handler{
		Up: h.confirm, Down: func(channels []string, _ error) { h.lose(channels) }, Message: h.deliver,
		Lost: func(err error) {
			log.Warn("a connection for events is lost; subscriptions go on when Redis is back", "error", err)
		},
		Back: func() { log.Info("Redis sends events again") },
	})
	return h
}

// run receives events until ctx ends.
func (h *hub) run(ctx context.Context) {
	received := make(chan struct{})
	go func() {
		defer close(received)
		h.receiver.Run(ctx)
	}()
	tidy := time.NewTicker(topicLinger / 2)
	defer tidy.Stop()
	for {
		select {
		case <-received:
			return
		case <-tidy.C:
			h.tidy(time.Now())
		}
	}
}

// follow registers f for the ends, and the other events, of some tasks, and tells it to look at those whose topic is
// confirmed already.
func (h *hub) follow(f *follower, ids []task.ID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return client.ErrClosed
	}
	if h.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		h.stop = stop
		h.wg.Go(func() { h.run(ctx) })
	}
	for _, id := range ids {
		channel := task.KeysOf(id.Queue).EventsChannel()
		t := h.topics[channel]
		if t == nil {
			t = &topic{queue: id.Queue, followers: map[*follower]struct{}{}, waiting: map[string][]*follower{}}
			h.topics[channel] = t
			h.receiver.Subscribe(channel)
		}
		if _, known := t.followers[f]; !known {
			t.followers[f] = struct{}{}
			if t.confirmed {
				f.look(t.queue)
			}
		}
		t.waiting[id.Key] = append(t.waiting[id.Key], f)
	}
	return nil
}

// forget takes one task off f's list.
func (h *hub) forget(f *follower, id task.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[task.KeysOf(id.Queue).EventsChannel()]; t != nil {
		t.drop(f, id.Key)
	}
}

// leave takes f off everything: the tasks that are left on its list, and the topics of queues.
func (h *hub) leave(f *follower, left []task.ID, queues map[string]struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range left {
		if t := h.topics[task.KeysOf(id.Queue).EventsChannel()]; t != nil {
			t.drop(f, id.Key)
		}
	}
	for queue := range queues {
		t := h.topics[task.KeysOf(queue).EventsChannel()]
		if t == nil {
			continue
		}
		if delete(t.followers, f); len(t.followers) == 0 {
			t.idleSince = time.Now()
		}
	}
}

func (t *topic) drop(f *follower, key string) {
	list := t.waiting[key]
	for i := range list {
		if list[i] != f {
			continue
		}
		list[i] = list[len(list)-1]
		list[len(list)-1] = nil
		list = list[:len(list)-1]
		break
	}
	if len(list) == 0 {
		delete(t.waiting, key)
		return
	}
	t.waiting[key] = list
}

// deliver hands a message of a channel to the followers of its tasks.
func (h *hub) deliver(channel, payload string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[channel]
	if t == nil || len(t.waiting) == 0 {
		return
	}
	events, err := task.DecodeEvents([]byte(payload))
	if err != nil { // of a foreign client, or of a manager to come
		return
	}
	for _, e := range events {
		for _, f := range t.waiting[e.ID.Key] {
			f.take(e)
		}
	}
}

// confirm notes that the subscription of a channel stands.
func (h *hub) confirm(channel string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[channel]
	if t == nil {
		return
	}
	t.confirmed = true
	for f := range t.followers {
		f.look(t.queue)
	}
}

// lose notes that the subscriptions of some channels stand no more, and tells their followers to look at their tasks: no event may reach
// them for a while.
func (h *hub) lose(channels []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, channel := range channels {
		t := h.topics[channel]
		if t == nil {
			continue
		}
		t.confirmed = false
		for f := range t.followers {
			f.look(t.queue)
		}
	}
}

// tidy leaves the topics that nobody has followed for a while.
func (h *hub) tidy(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for channel, t := range h.topics {
		if t.confirmed && len(t.followers) == 0 && now.Sub(t.idleSince) >= topicLinger {
			delete(h.topics, channel)
			h.receiver.Unsubscribe(channel)
		}
	}
}

// close ends the connection and returns when the hub's goroutines are gone. Followers are not told: the client does that.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	if h.stop != nil {
		h.stop()
	}
	h.mu.Unlock()
	h.wg.Wait()
}
