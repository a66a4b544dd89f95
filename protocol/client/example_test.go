package client_test

import (
	"context"
	"fmt"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// Submit some feeds to the manager of this machine, and print each result as it comes.
func Example() {
	c, err := client.Dial("unix:var/drover.sock")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	var ids []task.ID
	for _, url := range []string{"https://example.org/feed.xml", "https://example.net/atom.xml"} {
		submitted, err := c.Submit(ctx, "feed-pull", map[string]string{"url": url})
		if err != nil {
			fmt.Println(err)
			continue
		}
		ids = append(ids, submitted.ID)
	}
	for update, err := range c.Subscribe(ctx, ids) {
		switch {
		case err != nil:
			fmt.Println(err)
		case update.Ended != nil && update.Ended.State == task.Completed:
			fmt.Printf("%s: %s\n", update.ID, update.Ended.Result)
		case update.Ended != nil:
			fmt.Printf("%s is %s: %v\n", update.ID, update.Ended.State, update.Ended.Fault)
		}
	}
}
