// Command noop is a worker for benchmarks: it accepts any object and does nothing, at the least cost.
package main

import (
	"context"
	"encoding/json"

	"github.com/drover-jobs/drover/plugins/sdk"
)

func main() {
	sdk.Serve(sdk.Worker{
		Name: "noop", Version: "1.0.0", Description: "does nothing, for benchmarks", Slots: 16,
	}, func(context.Context, json.RawMessage) (struct{}, error) { return struct{}{}, nil })
}
