// Package fault is the closed list of failures that cross a process border in Drover.
//
// A worker says what went wrong with a Fault; the manager decides from its Kind and its wishes what becomes of the task; the
// client and the console show it. The list is append-only: a number once given keeps its meaning, and a side that meets a
// number it does not know treats it as Failed. The package owns no policy and starts nothing.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	taskv1 "github.com/drover-jobs/drover/protocol/drover/task/v1"
)

// Kind says what sort of failure it was.
type Kind int32

// The kinds of failure. Their meanings stand at FaultKind in drover/task/v1/task.proto.
const (
	None           Kind = Kind(taskv1.FaultKind_FAULT_KIND_UNSPECIFIED)
	Failed         Kind = Kind(taskv1.FaultKind_FAULT_KIND_FAILED)
	InvalidPayload Kind = Kind(taskv1.FaultKind_FAULT_KIND_INVALID_PAYLOAD)
	UnknownKind    Kind = Kind(taskv1.FaultKind_FAULT_KIND_UNKNOWN_KIND)
	Panic          Kind = Kind(taskv1.FaultKind_FAULT_KIND_PANIC)
	Timeout        Kind = Kind(taskv1.FaultKind_FAULT_KIND_TIMEOUT)
	Memory         Kind = Kind(taskv1.FaultKind_FAULT_KIND_MEMORY)
	Crash          Kind = Kind(taskv1.FaultKind_FAULT_KIND_CRASH)
	Cancelled      Kind = Kind(taskv1.FaultKind_FAULT_KIND_CANCELLED)
	Interrupted    Kind = Kind(taskv1.FaultKind_FAULT_KIND_INTERRUPTED)
	Lost           Kind = Kind(taskv1.FaultKind_FAULT_KIND_LOST)
	Unreachable    Kind = Kind(taskv1.FaultKind_FAULT_KIND_UNREACHABLE)
	Refused        Kind = Kind(taskv1.FaultKind_FAULT_KIND_REFUSED)
	HTTPStatus     Kind = Kind(taskv1.FaultKind_FAULT_KIND_HTTP_STATUS)
	WrongContent   Kind = Kind(taskv1.FaultKind_FAULT_KIND_WRONG_CONTENT)
	Unreadable     Kind = Kind(taskv1.FaultKind_FAULT_KIND_UNREADABLE)
	TooLarge       Kind = Kind(taskv1.FaultKind_FAULT_KIND_TOO_LARGE)
	Unavailable    Kind = Kind(taskv1.FaultKind_FAULT_KIND_UNAVAILABLE)
	Protocol       Kind = Kind(taskv1.FaultKind_FAULT_KIND_PROTOCOL)
	Skipped        Kind = Kind(taskv1.FaultKind_FAULT_KIND_SKIPPED)
)

// Bounds of what a fault carries, in bytes. Longer texts are cut.
const (
	MaxMessage = 4 << 10
	MaxDetail  = 16 << 10
)

var names = map[Kind]string{ //nolint:gochecknoglobals // the list itself; never written
	None: "", Failed: "failed", InvalidPayload: "invalid_payload", UnknownKind: "unknown_kind", Panic: "panic",
	Timeout: "timeout", Memory: "memory", Crash: "crash", Cancelled: "cancelled", Interrupted: "interrupted", Lost: "lost",
	Unreachable: "unreachable", Refused: "refused", HTTPStatus: "http_status", WrongContent: "wrong_content",
	Unreadable: "unreadable", TooLarge: "too_large", Unavailable: "unavailable", Protocol: "protocol",
	Skipped: "skipped",
}

// String returns the kind's name as it stands in JSON, such as "unreachable".
func (k Kind) String() string {
	if name, ok := names[k]; ok {
		return name
	}
	return names[Failed]
}

// MarshalText implements encoding.TextMarshaler.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. An unknown name is read as Failed, so that an older reader
// understands a newer writer.
func (k *Kind) UnmarshalText(text []byte) error {
	for kind, name := range names {
		if name == string(text) {
			*k = kind
			return nil
		}
	}
	*k = Failed
	return nil
}

// Fault is one failure. It is an error.
type Fault struct { //nolint:errname // what every side of Drover calls it, also where it is no error
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	// Permanent is true when trying again cannot help.
	Permanent bool `json:"permanent,omitempty"`
	// RetryAfter is the worker's wish for the pause before the next try; nil leaves it to the queue.
	RetryAfter *time.Duration `json:"-"`
	// Detail is a stack or the last lines of output.
	Detail string `json:"detail,omitempty"`
}

// New returns a fault with a formatted message.
func New(kind Kind, format string, args ...any) *Fault {
	return &Fault{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Error returns the kind and the message.
func (f *Fault) Error() string {
	if f.Message == "" {
		return f.Kind.String()
	}
	return f.Kind.String() + ": " + f.Message
}

// AsPermanent returns a copy of f that says that trying again cannot help.
func (f *Fault) AsPermanent() *Fault {
	c := *f
	c.Permanent = true
	return &c
}

// WithRetryAfter returns a copy of f that asks for a pause of d before the next try.
func (f *Fault) WithRetryAfter(d time.Duration) *Fault {
	c := *f
	c.RetryAfter = &d
	return &c
}

// WithDetail returns a copy of f with the given detail.
func (f *Fault) WithDetail(detail string) *Fault {
	c := *f
	c.Detail = detail
	return &c
}

// From returns the fault in err's chain, with err's whole text as its message, or a Failed one for any other error.
// It returns nil for nil; an error that is a nil *Fault is a Failed one too, since whoever returned it meant to fail.
func From(err error) *Fault {
	if err == nil {
		return nil
	}
	if f, ok := err.(*Fault); ok { //nolint:errorlint // only an unwrapped fault keeps its message as it is
		if f == nil {
			return New(Failed, "failed without saying why")
		}
		return f
	}
	var inner *Fault
	if errors.As(err, &inner) && inner != nil {
		c := *inner
		c.Message = err.Error()
		return &c
	}
	return New(Failed, "%s", err.Error())
}

// Proto returns f in its wire form, its texts cut to their bounds; nil for nil.
func (f *Fault) Proto() *taskv1.Fault {
	if f == nil {
		return nil
	}
	p := &taskv1.Fault{
		Kind: taskv1.FaultKind(f.Kind), Message: cut(f.Message, MaxMessage), Permanent: f.Permanent, Detail: cut(f.Detail, MaxDetail),
	}
	if f.RetryAfter != nil {
		ms := max(0, f.RetryAfter.Milliseconds())
		p.RetryAfterMs = &ms
	}
	return p
}

// FromProto reads the wire form; nil for nil. It accepts whatever another process may send.
func FromProto(p *taskv1.Fault) *Fault {
	if p == nil {
		return nil
	}
	f := &Fault{
		Kind: Kind(p.GetKind()), Message: cut(p.GetMessage(), MaxMessage), Permanent: p.GetPermanent(), Detail: cut(p.GetDetail(), MaxDetail),
	}
	if _, known := names[f.Kind]; !known || f.Kind == None {
		f.Kind = Failed
	}
	if p.RetryAfterMs != nil {
		const longest = 365 * 24 * time.Hour
		d := min(longest, max(0, time.Duration(min(p.GetRetryAfterMs(), longest.Milliseconds()))*time.Millisecond))
		f.RetryAfter = &d
	}
	return f
}

// cut shortens s to at most n bytes without splitting a character. What is not UTF-8 is replaced: error texts quote what
// servers outside sent, and a message with one wrong byte could not be sent at all.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= n {
		return s
	}
	const mark = " ..."
	end := n - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}
