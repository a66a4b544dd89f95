package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// The queue "work" of these examples returns the value of its payload.
type work struct {
	Do    string `json:"do"`
	Value string `json:"value,omitempty"`
	Note  string `json:"note,omitempty"`
}

// dialed returns a client of the manager on whose socket these examples run, and a context that ends.
func dialed() (context.Context, client.Client, func()) {
	c, err := client.Dial(testenv.SharedManager().Address) // such as unix:var/drover.sock
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	return ctx, c, func() {
		cancel()
		_ = c.Close()
	}
}

// Submit one task, and wait for its result.
func Example() {
	ctx, c, done := dialed()
	defer done()
	submitted, err := c.Submit(ctx, "work", work{Do: "return", Value: "hello Ada"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ended, err := client.Wait(ctx, c, submitted.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ended.State, string(ended.Result))
	// Output: completed "hello Ada"
}

// Submit many tasks in one call; what is wrong with one keeps none of the others out.
func ExampleClient_submitBatch() {
	ctx, c, done := dialed()
	defer done()
	batch, err := c.SubmitBatch(ctx, []client.Work{
		{Queue: "work", Payload: work{Do: "return", Value: "first"}},
		{Queue: "no-such-queue", Payload: work{Do: "return"}},
		{Queue: "work", Payload: work{Do: "return", Value: "last"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, b := range batch {
		switch {
		case errors.Is(b.Err, client.ErrUnknownQueue):
			fmt.Println("no such queue")
		case b.Err != nil:
			fmt.Println(b.Err)
		default:
			fmt.Println(b.State)
		}
	}
	// Output:
	// waiting
	// no such queue
	// waiting
}

// Follow many tasks, and handle each end as it comes.
func ExampleClient_subscribe() {
	ctx, c, done := dialed()
	defer done()
	var ids []task.ID
	for _, name := range []string{"Ada", "Grace", "Mary"} {
		submitted, err := c.Submit(ctx, "work", work{Do: "return", Value: "hello " + name})
		if err != nil {
			fmt.Println(err)
			return
		}
		ids = append(ids, submitted.ID)
	}
	var results []string
	for update, err := range c.Subscribe(ctx, ids) {
		switch {
		case err != nil:
			fmt.Println(err)
			return
		case update.Ended != nil:
			results = append(results, string(update.Ended.Result))
		}
	}
	slices.Sort(results) // they come in any order
	fmt.Println(results)
	// Output: ["hello Ada" "hello Grace" "hello Mary"]
}

// Call submits, waits and reads the result. A task that did not complete is an error that says why.
func ExampleCall() {
	ctx, c, done := dialed()
	defer done()
	greeting, err := client.Call[string](ctx, c, "work", work{Do: "return", Value: "hello again"})
	fmt.Println(greeting, err)

	_, err = client.Call[string](ctx, c, "work", work{Do: "permanent", Note: "out of paper"})
	var failed *fault.Fault
	fmt.Println(errors.As(err, &failed) && failed.Kind == fault.Failed)
	// Output:
	// hello again <nil>
	// true
}

// A task that must not run before a time; cancelled before it is due.
func ExampleDelay() {
	ctx, c, done := dialed()
	defer done()
	submitted, err := c.Submit(ctx, "work", work{Do: "return", Value: "later"}, client.Delay(time.Hour))
	if err != nil {
		fmt.Println(err)
		return
	}
	known, err := c.Get(ctx, submitted.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(known.State, time.Until(known.RunAt) > 59*time.Minute)
	state, err := c.Cancel(ctx, submitted.ID)
	fmt.Println(state, err)
	// Output:
	// waiting true
	// cancelled <nil>
}

// A task that nobody needs after a time: it expires when it has not begun by then.
func ExampleDeadline() {
	ctx, c, done := dialed()
	defer done()
	submitted, err := c.Submit(ctx, "work", work{Do: "return", Value: "too late"}, client.Deadline(time.Now().Add(-time.Second)))
	if err != nil {
		fmt.Println(err)
		return
	}
	ended, err := client.Wait(ctx, c, submitted.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ended.State, ended.Attempts)
	// Output: expired 0
}
