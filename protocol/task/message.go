package task

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// Message is asynq's TaskMessage (internal/proto/asynq.proto of asynq v0.26.0), the part that Drover writes and reads.
// Fields that Drover does not name are kept as they are, so that a message of a foreign client is written back whole.
type Message struct {
	Kind         string
	Payload      []byte
	Key          string
	Queue        string
	MaxRetry     int32 // asynq archives at Retried >= MaxRetry
	Retried      int32
	ErrorMsg     string
	LastFailedAt int64 // Unix seconds
	Timeout      int64 // seconds
	Deadline     int64 // Unix seconds
	UniqueKey    string
	Retention    int64 // seconds
	Headers      map[string]string
	rest         []byte // fields unknown here, in wire form
}

// Field numbers of asynq's TaskMessage.
const (
	fieldKind         protowire.Number = 1
	fieldPayload      protowire.Number = 2
	fieldKey          protowire.Number = 3
	fieldQueue        protowire.Number = 4
	fieldMaxRetry     protowire.Number = 5
	fieldRetried      protowire.Number = 6
	fieldErrorMsg     protowire.Number = 7
	fieldTimeout      protowire.Number = 8
	fieldDeadline     protowire.Number = 9
	fieldUniqueKey    protowire.Number = 10
	fieldLastFailedAt protowire.Number = 11
	fieldRetention    protowire.Number = 12
	fieldHeaders      protowire.Number = 15
)

// Drover counts attempts and times runs itself, so asynq is told never to end a task for either.
const (
	neverArchive = math.MaxInt32
	neverTimeOut = int64(10 * 365 * 24 * time.Hour / time.Second)
)

// NewMessage returns the message of a task that is submitted at the given time.
func NewMessage(id ID, kind string, payload []byte, at time.Time) *Message {
	return &Message{
		Kind: kind, Payload: payload, Key: id.Key, Queue: id.Queue, MaxRetry: neverArchive, Timeout: neverTimeOut,
		Headers: map[string]string{HeaderSubmitted: strconv.FormatInt(at.UnixMilli(), 10)},
	}
}

// Submitted is when the task was submitted; zero when the message does not say.
func (m *Message) Submitted() time.Time {
	ms, err := strconv.ParseInt(m.Headers[HeaderSubmitted], 10, 64)
	if err != nil {
		return time.Time{}
	}
	return fromMillis(ms)
}

// KeepRecord notes for how long the record of the task's end is to be kept, up to whole seconds; 0 keeps none.
func (m *Message) KeepRecord(d time.Duration) {
	seconds := (max(0, d) + time.Second - 1) / time.Second
	m.Headers[HeaderRetention] = strconv.FormatInt(int64(seconds), 10)
}

// RecordKept is what KeepRecord noted; not ok when the client said nothing.
func (m *Message) RecordKept() (d time.Duration, ok bool) {
	seconds, err := strconv.ParseUint(m.Headers[HeaderRetention], 10, 32)
	return time.Duration(seconds) * time.Second, err == nil //nolint:gosec // 32 bits
}

// DropDeadline lets the task run whenever its turn comes. A message must have a timeout then, or asynq gives it one.
func (m *Message) DropDeadline() {
	m.Deadline = 0
	if m.Timeout == 0 {
		m.Timeout = neverTimeOut
	}
}

// Encode returns the message in asynq's wire form.
func (m *Message) Encode() []byte {
	b := make([]byte, 0, len(m.Payload)+len(m.Kind)+len(m.Queue)+len(m.Key)+len(m.ErrorMsg)+len(m.rest)+96)
	b = appendString(b, fieldKind, m.Kind)
	if len(m.Payload) > 0 {
		b = protowire.AppendTag(b, fieldPayload, protowire.BytesType)
		b = protowire.AppendBytes(b, m.Payload)
	}
	b = appendString(b, fieldKey, m.Key)
	b = appendString(b, fieldQueue, m.Queue)
	b = appendVarint(b, fieldMaxRetry, int64(m.MaxRetry))
	b = appendVarint(b, fieldRetried, int64(m.Retried))
	b = appendString(b, fieldErrorMsg, m.ErrorMsg)
	b = appendVarint(b, fieldTimeout, m.Timeout)
	b = appendVarint(b, fieldDeadline, m.Deadline)
	b = appendString(b, fieldUniqueKey, m.UniqueKey)
	b = appendVarint(b, fieldLastFailedAt, m.LastFailedAt)
	b = appendVarint(b, fieldRetention, m.Retention)
	for _, k := range slices.Sorted(maps.Keys(m.Headers)) { // one message, one encoding
		entry := appendString(nil, 1, k)
		entry = appendString(entry, 2, m.Headers[k])
		b = protowire.AppendTag(b, fieldHeaders, protowire.BytesType)
		b = protowire.AppendBytes(b, entry)
	}
	return append(b, m.rest...)
}

// DecodeMessage reads asynq's wire form. It never panics, whatever the bytes.
func DecodeMessage(data []byte) (*Message, error) {
	m := &Message{}
	for b := data; len(b) > 0; {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, fmt.Errorf("read an asynq message: %w", protowire.ParseError(n))
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return nil, fmt.Errorf("read field %d of an asynq message: %w", num, protowire.ParseError(size))
		}
		if !m.take(num, typ, b[n:n+size]) {
			m.rest = append(m.rest, b[:n+size]...)
		}
		b = b[n+size:]
	}
	if !m.readable() {
		return nil, errors.New("read an asynq message: one of its texts is not UTF-8")
	}
	return m, nil
}

// readable reports whether all texts are UTF-8. Protobuf asks for that, and whatever took such a text over could not be sent.
func (m *Message) readable() bool {
	for key, value := range m.Headers {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return false
		}
	}
	return utf8.ValidString(m.Kind) && utf8.ValidString(m.Key) && utf8.ValidString(m.Queue) && utf8.ValidString(m.ErrorMsg) &&
		utf8.ValidString(m.UniqueKey)
}

// take reads one field's value and reports whether the field is one of ours.
func (m *Message) take(num protowire.Number, typ protowire.Type, value []byte) bool {
	switch typ {
	case protowire.BytesType:
		data, _ := protowire.ConsumeBytes(value)
		return m.takeBytes(num, data)
	case protowire.VarintType:
		v, _ := protowire.ConsumeVarint(value)
		return m.takeNumber(num, int64(v)) //nolint:gosec // proto3's int64 is this conversion
	default:
		return false
	}
}

func (m *Message) takeBytes(num protowire.Number, data []byte) bool {
	switch num {
	case fieldKind:
		m.Kind = string(data)
	case fieldPayload:
		m.Payload = append([]byte(nil), data...)
	case fieldKey:
		m.Key = string(data)
	case fieldQueue:
		m.Queue = string(data)
	case fieldErrorMsg:
		m.ErrorMsg = string(data)
	case fieldUniqueKey:
		m.UniqueKey = string(data)
	case fieldHeaders:
		return m.takeHeader(data)
	default:
		return false
	}
	return true
}

func (m *Message) takeNumber(num protowire.Number, v int64) bool {
	switch num {
	case fieldMaxRetry:
		m.MaxRetry = int32(v) //nolint:gosec // an int32 on the wire
	case fieldRetried:
		m.Retried = int32(v) //nolint:gosec // an int32 on the wire
	case fieldTimeout:
		m.Timeout = v
	case fieldDeadline:
		m.Deadline = v
	case fieldLastFailedAt:
		m.LastFailedAt = v
	case fieldRetention:
		m.Retention = v
	default:
		return false
	}
	return true
}

// takeHeader reads one entry of the map of headers; an unsound one is kept among the unknown fields.
func (m *Message) takeHeader(entry []byte) bool {
	var key, value string
	for len(entry) > 0 {
		num, typ, n := protowire.ConsumeTag(entry)
		if n < 0 || typ != protowire.BytesType {
			return false
		}
		data, size := protowire.ConsumeBytes(entry[n:])
		if size < 0 {
			return false
		}
		switch num {
		case 1:
			key = string(data)
		case 2:
			value = string(data)
		default: // nothing else is known of an entry
		}
		entry = entry[n+size:]
	}
	if m.Headers == nil {
		m.Headers = map[string]string{}
	}
	m.Headers[key] = value
	return true
}

func appendString(b []byte, num protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendString(b, s)
}

func appendVarint(b []byte, num protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	b = protowire.AppendTag(b, num, protowire.VarintType)
	return protowire.AppendVarint(b, uint64(v)) //nolint:gosec // proto3's int64 is this conversion
}
