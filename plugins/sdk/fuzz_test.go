package sdk_test

import (
	"context"
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// FuzzInstructions sends a worker whatever decodes as instructions. It must neither panic nor hang, and it drains as ever.
func FuzzInstructions(f *testing.F) {
	seed := func(instructions ...*workerv1.Instruction) {
		text, err := proto.Marshal(&workerv1.WorkRequest{Instructions: instructions})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	one := &workerv1.Instruction{Kind: &workerv1.Instruction_Task{Task: &workerv1.Task{Run: 1 << 40, Id: "q:k", Payload: []byte(`{"name":"x"}`), DeadlineMs: 1}}}
	seed(one, one, &workerv1.Instruction{Kind: &workerv1.Instruction_Cancel{Cancel: &workerv1.Cancel{Run: 1 << 40, Reason: "stop"}}})
	seed(&workerv1.Instruction{Kind: &workerv1.Instruction_Drain{}}, one)
	seed(&workerv1.Instruction{Kind: &workerv1.Instruction_DumpStacks{}}, &workerv1.Instruction{})
	f.Add([]byte{0x0a, 0x00})
	f.Fuzz(func(t *testing.T, data []byte) {
		var request workerv1.WorkRequest
		if proto.Unmarshal(data, &request) != nil {
			return
		}
		worker := sdktest.Start(t, program(func(ctx context.Context, _ input) (sdk.Task, error) { return sdk.Info(ctx), nil }), sdktest.Lenient())
		worker.Send(request.GetInstructions()...)
		_, _ = worker.Run(t.Context(), `{"name":"y"}`) // it may have been drained before
	})
}

// FuzzPayload gives a worker whatever payload. Every one has its outcome, and a result is JSON.
func FuzzPayload(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"name":"x","n":1}`, `[`, "{\"name\":\"\xff\"}", `{"n":1e999}`, `{"a":{"a":{"a":[]}}}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		worker := sdktest.Start(t, program(func(_ context.Context, in input) (input, error) { return in, nil }))
		result, err := worker.Run(t.Context(), payload, sdktest.Unchecked())
		if err != nil {
			_ = asFault(t, err)
		} else if !json.Valid(result) {
			t.Errorf("the result %q is not JSON", result)
		}
	})
}
