package broker_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/drover-jobs/drover/protocol/broker"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// within is in which everything in these tests must have happened.
const within = 20 * time.Second

func open(t *testing.T, url string) redis.UniversalClient {
	t.Helper()
	o, err := broker.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	rdb := o.Open()
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// journal is what a receiver told.
type journal struct {
	mu       sync.Mutex
	ups      map[string]int
	downs    map[string]int
	messages map[string]string // the last of each channel
	lost     int
	back     int
}

// listen runs a receiver until the test ends.
func listen(t *testing.T, rdb redis.UniversalClient, channels ...string) (*broker.Receiver, *journal) {
	t.Helper()
	j := &journal{ups: map[string]int{}, downs: map[string]int{}, messages: map[string]string{}}
	note := func(do func()) {
		j.mu.Lock()
		defer j.mu.Unlock()
		do()
	}
	r := broker.NewReceiver(rdb, broker.Handler{
		Up: func(channel string) { note(func() { j.ups[channel]++ }) },
		Down: func(channels []string, _ error) {
			note(func() {
				for _, c := range channels {
					j.downs[c]++
				}
			})
		},
		Message: func(channel, payload string) { note(func() { j.messages[channel] = payload }) },
		Lost:    func(error) { note(func() { j.lost++ }) },
		Back:    func() { note(func() { j.back++ }) },
	})
	r.Subscribe(channels...)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return r, j
}

func (j *journal) await(t *testing.T, what string, ok func(j *journal) bool) {
	t.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for deadline := time.Now().Add(within); ; <-poll.C {
		j.mu.Lock()
		yes := ok(j)
		j.mu.Unlock()
		if yes {
			return
		}
		if time.Now().After(deadline) {
			j.mu.Lock()
			defer j.mu.Unlock()
			t.Fatalf("it never happened that %s: %+v", what, j)
		}
	}
}

// hears publishes on each channel until it arrives: the node may just have changed.
func (j *journal) hears(t *testing.T, rdb redis.UniversalClient, message string, channels ...string) {
	t.Helper()
	for _, channel := range channels {
		j.await(t, "a message arrives on "+channel, func(j *journal) bool {
			if j.messages[channel] == message {
				return true
			}
			j.mu.Unlock()
			defer j.mu.Lock()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_ = broker.Publish(ctx, rdb, channel, message) // refused while there is no primary
			return false
		})
	}
}

// Messages arrive while a channel is wanted and not afterwards, on one server as in a Cluster; patterns too where there are some.
func TestReceive(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func() string{
		"single":  func() string { return testenv.StartRedis(t, testenv.RedisOptions{}).URL() },
		"cluster": func() string { return testenv.StartCluster(t, testenv.ClusterOptions{}).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := open(t, url())
			var channels []string
			for i := range 8 { // of several nodes
				channels = append(channels, task.KeysOf(fmt.Sprint("q", i)).EventsChannel())
			}
			channels = append(channels, "plain")
			r, j := listen(t, rdb, channels[:4]...)
			j.hears(t, rdb, "1", channels[:4]...)
			r.Subscribe(channels[4:]...)
			j.await(t, "all stand", func(*journal) bool { return r.Standing() })
			j.hears(t, rdb, "2", channels[:8]...)
			if err := rdb.Publish(t.Context(), "plain", "2").Err(); err != nil { // as asynq does
				t.Fatal(err)
			}
			j.await(t, "a plain message arrives", func(j *journal) bool { return j.messages["plain"] == "2" })
			r.Unsubscribe(channels[0])
			r.Subscribe(channels[0])
			j.hears(t, rdb, "3", channels[0])
			r.Unsubscribe(channels[1:3]...)
			if name == "single" {
				r.Subscribe("drover:{*}:queue")
				j.hears(t, rdb, "4", "drover:{x}:queue")
			}
			// Nobody is left who would hear what is said to it.
			j.await(t, "nobody listens", func(*journal) bool {
				if name == "single" {
					return rdb.PubSubNumSub(t.Context(), channels[1]).Val()[channels[1]] == 0
				}
				node, err := rdb.(*redis.ClusterClient).MasterForKey(t.Context(), channels[1])
				return err == nil && node.PubSubShardNumSub(t.Context(), channels[1]).Val()[channels[1]] == 0
			})
			if j.downs[channels[0]] > 0 || j.lost > 0 {
				t.Errorf("a connection was lost for no reason: %+v", j)
			}
		})
	}
}

// A receiver in a Cluster follows the slot of its channels, when it moves, when its primary gives way and when that dies, and says each
// time that something may have been missed; the channels of other nodes go on undisturbed.
func TestReceiverFollowsTheSlot(t *testing.T) {
	t.Parallel()
	c := testenv.StartCluster(t, testenv.ClusterOptions{})
	rdb := open(t, c.URL())
	moved := task.KeysOf("moved").EventsChannel()
	other := ""
	for i := 0; other == ""; i++ {
		if name := task.KeysOf(fmt.Sprint("q", i)).EventsChannel(); c.Primary(name) != c.Primary(moved) {
			other = name
		}
	}
	_, j := listen(t, rdb, moved, other)
	j.hears(t, rdb, "0", moved, other)
	for n, lose := range []func(){
		func() { c.MoveSlot(moved) },
		func() {
			before := c.Primary(moved)
			c.Failover(moved)
			c.AwaitPrimary(moved, before)
		},
		func() {
			before := c.Primary(moved)
			before.Kill()
			c.AwaitPrimary(moved, before)
		},
	} {
		primary := open(t, c.Primary(moved).URL()).(*redis.Client)
		j.await(t, "the primary is the one that is listened to", func(*journal) bool {
			return primary.PubSubShardNumSub(t.Context(), moved).Val()[moved] == 1
		})
		j.mu.Lock()
		ups, downs := j.ups[moved], j.downs[moved]
		j.mu.Unlock()
		lose()
		j.await(t, "the channel is down and up again", func(j *journal) bool { return j.ups[moved] > ups && j.downs[moved] > downs })
		j.hears(t, rdb, fmt.Sprint(n+1), moved)
	}
	j.hears(t, rdb, "last", other)
	j.await(t, "all is well", func(j *journal) bool { return j.lost > 0 && j.lost == j.back })
}
