package sdktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/drover-jobs/drover/plugins/sdk"
	"github.com/drover-jobs/drover/plugins/sdk/sdktest"
	"github.com/drover-jobs/drover/protocol/fault"
)

type greeting struct {
	Name string `json:"name"`
}

// greet is a worker's handler.
func greet(_ context.Context, in greeting) (string, error) {
	if in.Name == "" {
		return "", sdk.Permanent(errors.New("nobody to greet"))
	}
	return "hello " + in.Name, nil
}

// A handler is tested through the same connection that a manager uses.
func TestGreet(t *testing.T) {
	t.Parallel()
	worker := sdktest.Start(t, sdk.New(sdk.Worker{Name: "greet", Version: "1.0.0"}, greet))

	result, err := worker.Run(t.Context(), greeting{Name: "Ada"})
	if err != nil || string(result) != `"hello Ada"` {
		t.Errorf("got %s, %v", result, err)
	}
	_, err = worker.Run(t.Context(), `{"name": ""}`)
	var f *fault.Fault
	if !errors.As(err, &f) || !f.Permanent || f.Message != "nobody to greet" {
		t.Errorf("got %v", err)
	}
}

// Every worker passes the conformance kit, with payloads of its own.
func TestGreetConforms(t *testing.T) {
	t.Parallel()
	program := sdk.New(sdk.Worker{Name: "greet", Version: "1.0.0", Description: "greets people"}, greet)
	sdktest.Conform(t, program, []any{greeting{Name: "Ada"}, `{"name": ""}`})
}

// recorder stands in for a *testing.T in the example.
type recorder struct {
	testing.TB
	cleanups []func()
}

func (r *recorder) Helper()                   {}
func (r *recorder) Cleanup(f func())          { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(f string, a ...any) { fmt.Printf(f+"\n", a...) }
func (r *recorder) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }
func (r *recorder) end() {
	for _, f := range r.cleanups {
		f()
	}
}

func ExampleStart() {
	t := &recorder{} // in a test of your own, the *testing.T
	worker := sdktest.Start(t, sdk.New(sdk.Worker{Name: "greet", Version: "1.0.0"}, greet))

	result, err := worker.Run(context.Background(), `{"name": "Ada"}`)
	fmt.Println(string(result), err)
	_, err = worker.Run(context.Background(), `{"name": 7}`)
	fmt.Println(fault.From(err).Kind)

	t.end()
	// Output:
	// "hello Ada" <nil>
	// invalid_payload
}
