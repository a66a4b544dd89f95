package news

import (
	"context"
	"math"
	"time"

	"github.com/drover-jobs/drover/protocol/broker"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/task"
)

const (
	patience   = 500 * time.Millisecond // how long a follower waits for the connection to stand
	leaveAfter = 200 * time.Millisecond // how long a stop waits for a call to Redis
	lookEvery  = 2 * time.Second        // how often it is asked in a Cluster which queues there are
)

// Run receives the events of tasks while somebody follows, until ctx ends.
func (h *Hub) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-h.kick:
		}
		if h.Watched() {
			h.connect(ctx)
		}
	}
}

// connect keeps the connection until nobody follows any more or ctx ends. While Redis is away those who follow are told so once.
func (h *Hub) connect(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	known := time.AfterFunc(patience, h.settle)
	defer known.Stop()
	var receiver *broker.Receiver
	receiver = broker.NewReceiver(h.rdb, broker.Handler{
		Up: func(string) {
			if receiver.Standing() {
				h.settle()
			}
		},
		Down:    func([]string, error) { h.settle() },
		Message: func(_, payload string) { h.deliver(payload) },
		Lost: func(err error) {
			h.Tell(ofManager("broker-away", "Redis does not answer, so events of tasks are missed: "+err.Error()))
		},
		Back: func() {
			h.Tell(ofManager("broker-back", "Redis sends events of tasks again; those of the meantime are not known"))
		},
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		receiver.Run(ctx)
	}()
	h.follow(ctx, receiver)
	cancel()
	// One that hangs in a call to Redis is not waited for: it ends with the client.
	timer := time.NewTimer(leaveAfter)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// follow subscribes to the events of all queues until nobody follows any more or ctx ends. In a Cluster each queue has its channel on its own
// node, so that it has to be known which queues there are.
func (h *Hub) follow(ctx context.Context, receiver *broker.Receiver) {
	every := time.Duration(math.MaxInt64)
	if broker.IsCluster(h.rdb) {
		every = lookEvery
		h.lookForQueues(ctx, receiver)
	} else {
		// Braces mean nothing in a pattern of Redis.
		receiver.Subscribe(task.KeysOf("*").EventsChannel())
	}
	look := time.NewTicker(every)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.kick:
			if h.unwatched() {
				return
			}
		case <-look.C:
			h.lookForQueues(ctx, receiver)
		}
	}
}

// lookForQueues subscribes to the events of the queues that are known. While Redis is away those that were known before are enough.
func (h *Hub) lookForQueues(ctx context.Context, receiver *broker.Receiver) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	queues, err := h.rdb.SMembers(ctx, task.AsynqQueuesKey).Result()
	if err != nil {
		h.log.Debug("which queues there are is not known; events of new ones are missed", "error", err)
		return
	}
	for _, queue := range queues {
		receiver.Subscribe(task.KeysOf(queue).EventsChannel())
	}
}

// settle lets followers go on: the connection stands, or it is known that it does not.
func (h *Hub) settle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.ready:
	default:
		close(h.ready)
	}
}

// unwatched reports whether nobody follows. The next follower then waits for a connection of its own.
func (h *Hub) unwatched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.followers) > 0 {
		return false
	}
	select {
	case <-h.ready:
		h.ready = make(chan struct{})
	default:
	}
	return true
}

// deliver tells what a message of a queue's event channel says.
func (h *Hub) deliver(payload string) {
	events, err := task.DecodeEvents([]byte(payload))
	if err != nil {
		h.log.Debug("a message on the channel of events cannot be read", "error", err)
		return
	}
	for _, e := range events {
		h.Tell(&apiv1.WatchResponse{AtMs: e.At.UnixMilli(), Happened: &apiv1.WatchResponse_Task{Task: e.Proto()}})
	}
}

// ofManager is an event of the manager itself.
func ofManager(event, text string) *apiv1.WatchResponse {
	return &apiv1.WatchResponse{AtMs: time.Now().UnixMilli(), Happened: &apiv1.WatchResponse_Queue{Queue: &apiv1.QueueEvent{Event: event, Text: text}}}
}
