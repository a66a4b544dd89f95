package openapi_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/fault"
	"github.com/drover-jobs/drover/protocol/openapi"
	"github.com/drover-jobs/drover/protocol/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type document struct {
	OpenAPI    string                                `json:"openapi"`
	Paths      map[string]map[string]json.RawMessage `json:"paths"`
	Components struct {
		Schemas map[string]json.RawMessage `json:"schemas"`
	} `json:"components"`
}

func read(t *testing.T) document {
	t.Helper()
	var d document
	if err := json.Unmarshal(openapi.Document(), &d); err != nil {
		t.Fatalf("read the document: %v", err)
	}
	return d
}

// Every method of every service is in the document, with what it takes and gives, and every reference leads somewhere.
func TestComplete(t *testing.T) {
	t.Parallel()
	d := read(t)
	if d.OpenAPI != "3.1.0" {
		t.Errorf("it says to be of version %s", d.OpenAPI)
	}
	for _, file := range []protoreflect.FileDescriptor{apiv1.File_drover_api_v1_tasks_proto, apiv1.File_drover_api_v1_control_proto} {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				m := service.Methods().Get(j)
				operation := string(d.Paths["/"+string(service.FullName())+"/"+string(m.Name())]["post"])
				for _, message := range []protoreflect.MessageDescriptor{m.Input(), m.Output()} {
					if !strings.Contains(operation, `"#/components/schemas/`+string(message.FullName())+`"`) {
						t.Errorf("%s does not speak of %s: %.200s", m.FullName(), message.FullName(), operation)
					}
				}
			}
		}
	}
	const reference = `"$ref": "#/components/schemas/`
	for _, part := range strings.Split(string(openapi.Document()), reference)[1:] {
		if name, _, _ := strings.Cut(part, `"`); d.Components.Schemas[name] == nil {
			t.Errorf("nothing is said of %s", name)
		}
	}
}

// The JSON of a message is as the document says, and something else is not.
func TestMessagesFit(t *testing.T) {
	t.Parallel()
	var known map[string]json.RawMessage
	if err := json.Unmarshal(openapi.Document(), &known); err != nil {
		t.Fatal(err)
	}
	fits := func(name string, data []byte) error {
		source, err := json.Marshal(map[string]any{"$ref": "#/$defs/" + name, "$defs": read(t).Components.Schemas})
		if err != nil {
			t.Fatal(err)
		}
		source = []byte(strings.ReplaceAll(string(source), "#/components/schemas/", "#/$defs/"))
		var schema jsonschema.Schema
		if err := json.Unmarshal(source, &schema); err != nil {
			t.Fatalf("read the schema: %v", err)
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			t.Fatalf("resolve the schema: %v", err)
		}
		var value any
		if err := json.Unmarshal(data, &value); err != nil {
			t.Fatal(err)
		}
		return resolved.Validate(value)
	}
	full := &task.Task{
		ID: task.ID{Queue: "q", Key: "k"}, Kind: "kind", State: task.Dead, Attempts: 2, Counters: task.Counters{Failures: 1, Kills: 1},
		Payload: json.RawMessage(`{"a":1}`), Result: json.RawMessage(`[1]`), Fault: fault.New(fault.Timeout, "too slow"),
		Submitted: time.Now(), Started: time.Now(), Ended: time.Now(), RunAt: time.Now(), Queued: time.Second, Run: time.Minute, Manager: "m",
		Progress: &task.Progress{Done: 1, Total: 2, Note: "n"}, History: []task.Attempt{{Number: 1, End: task.EndKilled, Signal: "killed", RSS: 1 << 40, Tail: []string{"x"}}},
	}
	for _, m := range []proto.Message{
		&apiv1.GetResponse{Task: full.Proto()},
		&apiv1.SubscribeResponse{Update: &apiv1.SubscribeResponse_Ended{Ended: full.Proto()}},
		&apiv1.StatusResponse{Queues: []*apiv1.Queue{{Name: "q", Waiting: -1, Completed: 1 << 60, Exits: map[string]uint64{"idle": 3}}}},
		&apiv1.SubmitRequest{Queue: "q", Payload: []byte("{}"), DelayMs: 5, RetentionMs: proto.Int64(0)},
	} {
		data, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		data = []byte(strings.ReplaceAll(string(data), ":null", ":{}")) // messages that are not there
		if err := fits(string(m.ProtoReflect().Descriptor().FullName()), data); err != nil {
			t.Errorf("%s does not fit: %v", data, err)
		}
	}
	for _, wrong := range []string{`{"task":1}`, `{"task":{"state":"STATE_ODD"}}`, `{"task":{"submittedMs":5}}`, `{"task":{"history":{}}}`} {
		if fits("drover.api.v1.GetResponse", []byte(wrong)) == nil {
			t.Errorf("%s fits", wrong)
		}
	}
}
