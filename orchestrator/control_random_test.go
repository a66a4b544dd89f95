package orchestrator_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/testenv"
)

// Whatever a client asks a running manager to do, sensible or not, it answers without the panic of a handler, goes on working, and stops
// well: a thousand random requests, of each method of the ControlService.
func TestRandomControlRequests(t *testing.T) {
	t.Parallel()
	const requests = 1000
	r := testenv.StartRedis(t, testenv.RedisOptions{})
	m := setUp(t, fmt.Sprintf("{address: %q}", r.URL()), "", "max_workers: 2").start()
	c := m.connect(t)
	for i := range 20 {
		submitTo(t, c, map[string]any{"do": "permanent", "note": "x", "value": i})
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", m.socket())
	}}
	defer transport.CloseIdleConnections()
	methods := apiv1.File_drover_api_v1_control_proto.Services().ByName("ControlService").Methods()
	random := rand.New(rand.NewPCG(11, 4)) //nolint:gosec // repeatable
	asked := map[protoreflect.Name]int{}
	for range requests {
		method := methods.Get(random.IntN(methods.Len()))
		message := dynamicpb.NewMessage(method.Input())
		fill(random, message, 0)
		body, err := proto.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		answer := post(t, transport, method, body)
		if strings.Contains(answer, "made a mistake") {
			t.Errorf("%s panicked on %v: %s", method.Name(), message, answer)
		}
		asked[method.Name()]++
	}
	if len(asked) != methods.Len() {
		t.Errorf("only %v were asked", asked)
	}
	control := m.control(t)
	for _, q := range []string{"misbehave", "noop"} {
		if _, err := control.Resume(t.Context(), &apiv1.ResumeRequest{Queue: q}); err != nil {
			t.Error(err)
		}
	}
	waitFor(t, c, submitTo(t, c, map[string]any{"do": "return", "value": "afterwards"}))
	m.stop()
}

// post sends a request and returns the beginning of the answer; a stream is left soon.
func post(t *testing.T, transport http.RoundTripper, method protoreflect.MethodDescriptor, body []byte) string {
	t.Helper()
	patience, kind := 10*time.Second, "application/proto"
	if method.IsStreamingServer() {
		patience, kind = 20*time.Millisecond, "application/connect+proto"
		body = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body))), body...) //nolint:gosec // short
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://drover/%s/%s", method.Parent().FullName(), method.Name()), bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", kind)
	response, err := transport.RoundTrip(request)
	if err != nil {
		if !method.IsStreamingServer() {
			t.Errorf("%s: %v", method.Name(), err)
		}
		return ""
	}
	defer func() { _ = response.Body.Close() }()
	const enough = 64 << 10
	text, _ := io.ReadAll(io.LimitReader(response.Body, enough)) // a stream is cut
	return string(text)
}

// fill sets fields of a message at random, with values of which some mean something.
func fill(r *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		switch {
		case r.IntN(3) == 0, depth > 3: // it is left out
		case f.IsList():
			list := m.Mutable(f).List()
			for range r.IntN(4) {
				list.Append(anyValue(r, f, list.NewElement, depth))
			}
		case !f.IsMap():
			m.Set(f, anyValue(r, f, func() protoreflect.Value { return m.NewField(f) }, depth))
		}
	}
}

// anyValue is a value for a field.
func anyValue(r *rand.Rand, f protoreflect.FieldDescriptor, fresh func() protoreflect.Value, depth int) protoreflect.Value {
	words := []string{
		"", "misbehave", "noop", "manager", "other", "misbehave:a", "misbehave:", ":", "noop:" + strings.Repeat("x", 300), "{}", "a\x00b", "\u202e\x1b[2J", strings.Repeat("y", 70_000),
		"max_workers", "min_workers", "slots", "buffer", "rate", "worker_idle", "memory_max", "max_memory", "drain_timeout", "priority", "lock_policy", "retention",
		"-1", "0", "1", "2", "1e9", "off", "10/s", "5s", "-5s", "1GiB", "99999999999999999999", "user", "system", "MTA=",
	}
	numbers := []int64{0, 1, 2, 3, -1, 100, 1 << 31, -1 << 31, 1<<63 - 1, -1 << 63}
	n := numbers[r.IntN(len(numbers))]
	switch f.Kind() {
	case protoreflect.MessageKind:
		v := fresh()
		fill(r, v.Message(), depth+1)
		return v
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(words[r.IntN(len(words))])
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n%2 != 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(n)) //nolint:gosec // any will do
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n)) //nolint:gosec // as above
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(uint64(n)) //nolint:gosec // as above
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(n)
	default:
		panic("a kind of field that no request had before: " + f.Kind().String())
	}
}
