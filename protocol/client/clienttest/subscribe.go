package clienttest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

func subscribeTests() map[string]func(*suite) {
	return map[string]func(*suite){
		"subscribe/ends before, during and after":  beforeDuringAfter,
		"subscribe/WaitAll keeps the order":        waitAllOrder,
		"subscribe/unknown IDs in a list":          unknownInList,
		"subscribe/progress is told when asked":    progress,
		"subscribe/progress can be asked for":      latestProgress,
		"subscribe/a deadline ends it":             deadline,
		"subscribe/the consumer may leave":         leaveEarly,
		"subscribe/many wait for one":              manyForOne,
		"subscribe/a slow consumer misses nothing": slowConsumer,
		"subscribe/of nothing is over at once":     ofNothing,
	}
}

// Tasks that ended before the subscription, that end during it, and that are submitted during it to end later all end
// in it exactly once, and then it is over.
func beforeDuringAfter(t *suite) {
	ctx := t.limit()
	var ids []task.ID
	for range 5 { // before
		s := t.submit(ctx, Payload{Do: "return", Value: nonce()})
		t.wait(ctx, s.ID)
		ids = append(ids, s.ID)
	}
	for range 40 { // around
		ids = append(ids, t.submit(ctx, Payload{Do: "return", Value: nonce()}).ID)
	}
	for i := range 4 { // after
		ids = append(ids, t.submit(ctx, Payload{Do: "sleep", Value: nonce(), MS: 150 + 50*i}).ID)
	}
	ids = append(ids, ids[0], ids[7]) // twice in the list is once in the ends
	ends, _, err := collect(ctx, t.Client, ids)
	if err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	if len(ends) != len(ids)-2 {
		t.Errorf("%d tasks ended, want %d", len(ends), len(ids)-2)
	}
	for _, id := range ids {
		if u := ends[id]; u.Ended == nil || u.Ended.State != task.Completed {
			t.Errorf("task %s ended as %+v, want completed", id, u)
		}
	}
}

// WaitAll returns the records in the order of the IDs, whatever the order of the ends, a repeated ID included.
func waitAllOrder(t *suite) {
	ctx := t.limit()
	var ids []task.ID
	for i := range 4 {
		ids = append(ids, t.submit(ctx, Payload{Do: "sleep", Value: nonce(), MS: 300 - 100*i}).ID)
	}
	ids = append(ids, ids[1])
	ended, err := client.WaitAll(ctx, t.Client, ids...)
	if err != nil || len(ended) != len(ids) {
		t.Fatalf("WaitAll gave %d records and %v, want %d", len(ended), err, len(ids))
	}
	for i, id := range ids {
		if ended[i].ID != id {
			t.Errorf("record %d is that of %s, want %s", i, ended[i].ID, id)
		}
	}
}

// A task that does not exist is told as unknown and keeps the others from nothing; WaitAll says which.
func unknownInList(t *suite) {
	ctx := t.limit()
	there, missing := t.submit(ctx, Payload{Do: "return", Value: nonce()}).ID, task.RandomID(t.Queue)
	ids := []task.ID{missing, there, task.RandomID("no-such-queue"), {}, {Queue: "Not A Queue", Key: "k"}}
	ends, _, err := collect(ctx, t.Client, ids)
	if err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	for _, id := range ids {
		if u, told := ends[id]; !told || u.Unknown == (id == there) {
			t.Errorf("task %q gave %+v, told %t", id, u, told)
		}
	}
	if _, err := client.WaitAll(ctx, t.Client, there, missing); !errors.Is(err, client.ErrUnknownTask) {
		t.Errorf("WaitAll gave %v, want ErrUnknownTask", err)
	}
}

// Progress comes in order, before the end, and only to who asked for it.
func progress(t *suite) {
	ctx := t.limit()
	s := t.submit(ctx, Payload{Do: "progress", Value: nonce(), MS: 300}, client.Delay(1))
	var quiet []*task.Event
	var quietErr error
	var wg sync.WaitGroup
	wg.Go(func() { _, quiet, quietErr = collect(ctx, t.Client, []task.ID{s.ID}) })
	ends, events, err := collect(ctx, t.Client, []task.ID{s.ID}, client.WithEvents())
	wg.Wait()
	if err != nil || quietErr != nil {
		t.Fatalf("subscribe: %v, %v", err, quietErr)
	}
	if len(quiet) != 0 {
		t.Errorf("who did not ask got %d events", len(quiet))
	}
	if ended := ends[s.ID].Ended; ended == nil || ended.State != task.Completed {
		t.Errorf("it ended as %+v, want completed", ended)
	}
	var last, seen uint64
	attempt := 0
	for _, e := range events {
		if e.ID != s.ID {
			t.Errorf("an event of %s came", e.ID)
		}
		if e.Progress == nil {
			continue
		}
		if e.Attempts != attempt {
			attempt, last = e.Attempts, 0 // it runs anew: a neighbour in its process may have ended the run before
		}
		if seen++; e.Progress.Done < last {
			t.Errorf("progress went back from %d to %d", last, e.Progress.Done)
		}
		last = e.Progress.Done
	}
	if seen == 0 {
		t.Error("no progress came")
	}
}

// Whoever asks for a running task learns how far it was when its worker said something last; of one that has ended nothing is said.
func latestProgress(t *suite) {
	ctx := t.limit()
	s := t.submit(ctx, Payload{Do: "progress", Value: nonce(), MS: 1000})
	t.untilIt(ctx, s.ID, "had progress", func(now *task.Task) bool {
		return now.State == task.Running && now.Progress != nil && now.Progress.Done > 0
	})
	t.wait(ctx, s.ID)
	if now, err := t.Client.Get(ctx, s.ID); err != nil || now.Progress != nil {
		t.Errorf("after its end it is %+v, %v, want no progress", now, err)
	}
}

// The caller's deadline ends a wait with its own error, soon; the task goes on.
func deadline(t *suite) {
	ctx := t.limit()
	s := t.submit(ctx, Payload{Do: "sleep", Value: nonce(), MS: 800})
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, err := client.Wait(short, t.Client, s.ID); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("wait gave %v, want context.DeadlineExceeded", err)
	}
	if took := time.Since(begun); took > time.Duration(t.Slow)*2*time.Second {
		t.Errorf("a wait of 100 ms took %s", took)
	}
	if ended := t.wait(ctx, s.ID); ended.State != task.Completed {
		t.Errorf("the task ended as %s, want completed", ended.State)
	}
}

// A consumer that leaves the loop gets no further update, and the client goes on working.
func leaveEarly(t *suite) {
	ctx := t.limit()
	ids := make([]task.ID, 0, 6)
	for range 5 {
		ids = append(ids, t.submit(ctx, Payload{Do: "return", Value: nonce()}).ID)
	}
	ids = append(ids, t.submit(ctx, Payload{Do: "return", Value: nonce()}, client.Delay(time.Hour)).ID)
	count := 0
	for _, err := range t.Client.Subscribe(ctx, ids) {
		if err != nil {
			t.Fatalf("subscribe: %v", err)
		}
		if count++; count == 2 {
			break
		}
	}
	if count != 2 {
		t.Errorf("%d updates came, want 2", count)
	}
	if _, err := client.WaitAll(ctx, t.Client, ids[:5]...); err != nil {
		t.Errorf("afterwards WaitAll gave %v", err)
	}
	if _, err := t.Client.Cancel(ctx, ids[5]); err != nil {
		t.Errorf("cancel: %v", err)
	}
}

// Any number of waits for one task all get its end.
func manyForOne(t *suite) {
	ctx := t.limit()
	s := t.submit(ctx, Payload{Do: "sleep", Value: nonce(), MS: 300})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			ended, err := client.Wait(ctx, t.Client, s.ID)
			if err != nil || ended.State != task.Completed {
				t.Errorf("wait gave %+v, %v; want completed", ended, err)
			}
		})
	}
	wg.Wait()
}

// A consumer that takes its time over each update gets every end all the same, and holds up nobody else.
func slowConsumer(t *suite) {
	ctx := t.limit()
	var ids []task.ID
	for range 30 {
		ids = append(ids, t.submit(ctx, Payload{Do: "return", Value: nonce()}).ID)
	}
	seen := map[task.ID]int{}
	for u, err := range t.Client.Subscribe(ctx, ids, client.WithEvents()) {
		if err != nil {
			t.Fatalf("subscribe: %v", err)
		}
		if u.Ended == nil {
			continue
		}
		seen[u.ID]++
		// Another task comes and goes before the next update is taken.
		other := t.submit(ctx, Payload{Do: "return", Value: nonce()})
		t.wait(ctx, other.ID)
	}
	for _, id := range ids {
		if seen[id] != 1 {
			t.Errorf("the end of %s came %d times", id, seen[id])
		}
	}
}

// A subscription to no task is over at once.
func ofNothing(t *suite) {
	for u, err := range t.Client.Subscribe(t.limit(), nil) {
		t.Errorf("an update came: %+v, %v", u, err)
	}
}
