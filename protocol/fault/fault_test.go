package fault_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/drover-jobs/drover/protocol/drover/task/v1"
	"github.com/drover-jobs/drover/protocol/fault"
)

// kinds are all kinds with the names that they have in JSON, which never change.
func kinds() map[fault.Kind]string {
	return map[fault.Kind]string{
		fault.Failed: "failed", fault.InvalidPayload: "invalid_payload", fault.UnknownKind: "unknown_kind", fault.Panic: "panic",
		fault.Timeout: "timeout", fault.Memory: "memory", fault.Crash: "crash", fault.Cancelled: "cancelled", fault.Interrupted: "interrupted",
		fault.Lost: "lost", fault.Unreachable: "unreachable", fault.Refused: "refused", fault.HTTPStatus: "http_status",
		fault.WrongContent: "wrong_content", fault.Unreadable: "unreadable", fault.TooLarge: "too_large", fault.Unavailable: "unavailable",
		fault.Protocol: "protocol", fault.Skipped: "skipped",
	}
}

// Every kind of the protocol has a name here and reads back from it; what is not known is Failed.
func TestKinds(t *testing.T) {
	t.Parallel()
	all := kinds()
	if len(all) != len(taskv1.FaultKind_name)-1 {
		t.Errorf("%d kinds here, %d in the protocol", len(all), len(taskv1.FaultKind_name)-1)
	}
	for number, name := range taskv1.FaultKind_name {
		kind := fault.Kind(number)
		want := strings.ToLower(strings.TrimPrefix(name, "FAULT_KIND_"))
		if kind == fault.None {
			want = ""
		}
		if kind.String() != want || all[kind] != want {
			t.Errorf("%s is %q here, and %q in this test", name, kind, all[kind])
		}
		text, err := json.Marshal(kind)
		if err != nil {
			t.Fatal(err)
		}
		var got fault.Kind
		if err := json.Unmarshal(text, &got); err != nil || got != kind {
			t.Errorf("%s reads back as %v, %v", text, got, err)
		}
	}
	if fault.Kind(99).String() != "failed" {
		t.Errorf("an unknown kind is %q", fault.Kind(99))
	}
	got := fault.Timeout
	if err := got.UnmarshalText([]byte("of the future")); err != nil || got != fault.Failed {
		t.Errorf("got %v, %v", got, err)
	}
}

// A fault crosses a border whole.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for kind := range kinds() {
		for _, want := range []*fault.Fault{
			fault.New(kind, "no answer from %s", "x"),
			fault.New(kind, "x").AsPermanent(),
			fault.New(kind, "x").WithRetryAfter(0).WithDetail("stack"),
			fault.New(kind, "").WithRetryAfter(90 * time.Second),
		} {
			data, err := proto.Marshal(want.Proto())
			if err != nil {
				t.Fatal(err)
			}
			var p taskv1.Fault
			if err := proto.Unmarshal(data, &p); err != nil {
				t.Fatal(err)
			}
			if got := fault.FromProto(&p); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
	}
	var none *fault.Fault
	if none.Proto() != nil || fault.FromProto(nil) != nil {
		t.Error("no fault became one")
	}
}

// What another process sends is read with sense: unknown kinds as Failed, odd pauses within bounds, long texts cut.
func TestReadsAnything(t *testing.T) {
	t.Parallel()
	year := 365 * 24 * time.Hour
	for sent, want := range map[int64]time.Duration{-5: 0, 0: 0, 1500: 1500 * time.Millisecond, 1 << 62: year, -1 << 63: 0} {
		f := fault.FromProto(&taskv1.Fault{RetryAfterMs: &sent})
		if f.RetryAfter == nil || *f.RetryAfter != want {
			t.Errorf("%d ms: got %v, want %v", sent, f.RetryAfter, want)
		}
	}
	for _, kind := range []taskv1.FaultKind{0, 99, -1} {
		if f := fault.FromProto(&taskv1.Fault{Kind: kind}); f.Kind != fault.Failed {
			t.Errorf("kind %d: got %v", kind, f.Kind)
		}
	}
	negative := fault.New(fault.Failed, "x").WithRetryAfter(-time.Second)
	if got := negative.Proto().GetRetryAfterMs(); got != 0 {
		t.Errorf("a negative pause is sent as %d", got)
	}
}

// Texts are cut to their bounds between two characters, and are valid UTF-8 whatever they were.
func TestTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"short", strings.Repeat("a", fault.MaxMessage), strings.Repeat("ä", fault.MaxDetail), strings.Repeat("x", 3) + strings.Repeat("😀", fault.MaxDetail),
		"a\xffb", strings.Repeat("\x80", 2*fault.MaxDetail), strings.Repeat("\xf0\x9f", fault.MaxDetail),
	} {
		p := fault.New(fault.Failed, "%s", text).WithDetail(text).Proto()
		for what, got := range map[string]struct {
			text  string
			bound int
		}{"message": {p.GetMessage(), fault.MaxMessage}, "detail": {p.GetDetail(), fault.MaxDetail}} {
			if len(got.text) > got.bound || !utf8.ValidString(got.text) {
				t.Errorf("the %s of %.20q has %d bytes, valid: %v", what, text, len(got.text), utf8.ValidString(got.text))
			}
			if len(text) <= got.bound && utf8.ValidString(text) && got.text != text {
				t.Errorf("the %s %.20q was changed", what, text)
			}
			if len(text) > got.bound && utf8.ValidString(text) && len(got.text) < got.bound-8 {
				t.Errorf("the %s of %.20q was cut to %d bytes", what, text, len(got.text))
			}
		}
		if _, err := proto.Marshal(p); err != nil {
			t.Error(err)
		}
		read := fault.FromProto(&taskv1.Fault{Message: text, Detail: text})
		if len(read.Message) > fault.MaxMessage || len(read.Detail) > fault.MaxDetail {
			t.Errorf("%d and %d bytes were read", len(read.Message), len(read.Detail))
		}
	}
}

// From finds the fault inside an error and keeps what was said around it.
func TestFrom(t *testing.T) {
	t.Parallel()
	inner := fault.New(fault.Unreachable, "no answer").AsPermanent()
	for _, c := range []struct {
		err     error
		kind    fault.Kind
		message string
	}{
		{errors.New("x"), fault.Failed, "x"},
		{inner, fault.Unreachable, "no answer"},
		{fmt.Errorf("pull: %w", inner), fault.Unreachable, "pull: unreachable: no answer"},
		{errors.Join(errors.New("x"), inner), fault.Unreachable, "x\nunreachable: no answer"},
		{(*fault.Fault)(nil), fault.Failed, "failed without saying why"},
	} {
		f := fault.From(c.err)
		if f.Kind != c.kind || f.Message != c.message || f.Permanent != (c.kind == fault.Unreachable) {
			t.Errorf("got %+v, want %v %q", f, c.kind, c.message)
		}
	}
	if fault.From(nil) != nil {
		t.Error("no error became a fault")
	}
	if inner.Message != "no answer" {
		t.Error("the fault inside was changed")
	}
}

// The methods that add something leave the fault that they were called on as it was.
func TestCopies(t *testing.T) {
	t.Parallel()
	f := fault.New(fault.Failed, "x")
	_, _, _ = f.AsPermanent(), f.WithRetryAfter(time.Second), f.WithDetail("d")
	if !reflect.DeepEqual(f, fault.New(fault.Failed, "x")) {
		t.Errorf("got %+v", f)
	}
	if got := f.Error(); got != "failed: x" {
		t.Errorf("got %q", got)
	}
	if got := fault.New(fault.Timeout, "").Error(); got != "timeout" {
		t.Errorf("got %q", got)
	}
}

// The JSON of a fault has the names that scripts rely on.
func TestJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(fault.New(fault.HTTPStatus, "404").AsPermanent().WithRetryAfter(time.Second))
	if want := `{"kind":"http_status","message":"404","permanent":true}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v; want %s", text, err, want)
	}
}

// FuzzFromProto reads whatever fault another process sends: it can be sent on and reads the same then.
func FuzzFromProto(f *testing.F) {
	f.Add(int32(1), "message", true, int64(5), "detail")
	f.Add(int32(-1), "\xff", false, int64(-1), strings.Repeat("ä", fault.MaxDetail))
	f.Fuzz(func(t *testing.T, kind int32, message string, permanent bool, ms int64, detail string) {
		got := fault.FromProto(&taskv1.Fault{Kind: taskv1.FaultKind(kind), Message: message, Permanent: permanent, RetryAfterMs: &ms, Detail: detail})
		data, err := proto.Marshal(got.Proto())
		if err != nil {
			t.Fatal(err)
		}
		var p taskv1.Fault
		if err := proto.Unmarshal(data, &p); err != nil {
			t.Fatal(err)
		}
		if again := fault.FromProto(&p); !reflect.DeepEqual(again, got) {
			t.Errorf("got %+v, want %+v", again, got)
		}
	})
}
