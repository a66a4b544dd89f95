package direct_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/client/direct"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// Submit straight to Redis, which works even while no manager runs, and wait for the result.
func Example() {
	address := testenv.SharedManager().RedisURL // such as redis://:PASSWORD@127.0.0.1:6379/0
	c, err := direct.Open(address, slog.New(slog.DiscardHandler))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = c.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	greeting, err := client.Call[string](ctx, c, "work", map[string]any{"do": "return", "value": "hello Ada"})
	fmt.Println(greeting, err)
	// Output: hello Ada <nil>
}
