package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/task"
)

// adapt puts JSON on both sides of the author's handler.
func adapt[In, Out any](handle func(ctx context.Context, in In) (Out, error)) call {
	return func(ctx context.Context, payload []byte) ([]byte, error) {
		var in In
		if err := decode(payload, &in); err != nil {
			return nil, err
		}
		out, err := handle(ctx, in)
		if err != nil {
			return nil, err
		}
		return encode(out)
	}
}

// decode reads a payload. What does not fit never will, so the fault is permanent.
func decode(payload []byte, in any) error {
	if text := bytes.TrimLeft(payload, " \t\r\n"); len(text) == 0 || text[0] != '{' {
		return fault.New(fault.InvalidPayload, "the payload is not a JSON object").AsPermanent()
	}
	err := json.Unmarshal(payload, in)
	if err == nil {
		return nil
	}
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && mismatch.Field != "" {
		return fault.New(fault.InvalidPayload, "payload field %q: want %s, got %s", mismatch.Field, mismatch.Type, mismatch.Value).AsPermanent()
	}
	return fault.New(fault.InvalidPayload, "read the payload: %v", err).AsPermanent()
}

// encode writes a result. HTML is left as it is: results are data, not part of a page.
func encode(out any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(out); err != nil {
		return nil, fault.New(fault.Failed, "write the result as JSON: %v", err).AsPermanent()
	}
	result := bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
	if len(result) > task.MaxResult {
		return nil, fault.New(fault.TooLarge, "the result has %d bytes; at most %d are allowed: store it and return where it is",
			len(result), task.MaxResult).AsPermanent()
	}
	return result, nil
}
