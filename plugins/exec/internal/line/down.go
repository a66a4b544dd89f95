package line

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Version is the version of the protocol that this code speaks. PROTOCOL.md says when it changes.
const Version = 1

// Task is one run of one task, as it goes down.
type Task struct {
	// Run names this run in all that follows. It is unique in the life of the worker process, and small enough for a double.
	Run     uint64
	ID      string
	Kind    string
	Queue   string
	Attempt int
	// DeadlineMS is in Unix milliseconds; 0 for none.
	DeadlineMS int64
	// Payload is JSON of any layout.
	Payload json.RawMessage
}

// Encode returns the task as a line, its end included. The error says that the payload is not JSON.
func (t Task) Encode() ([]byte, error) {
	return encode(struct {
		V          int             `json:"v"`
		Type       string          `json:"type"`
		Run        uint64          `json:"run"`
		ID         string          `json:"id"`
		Kind       string          `json:"kind"`
		Queue      string          `json:"queue"`
		Attempt    int             `json:"attempt"`
		DeadlineMS int64           `json:"deadline_ms"`
		Payload    json.RawMessage `json:"payload"`
	}{Version, "task", t.Run, t.ID, t.Kind, t.Queue, t.Attempt, t.DeadlineMS, t.Payload})
}

// Cancel returns the line that asks for the end of a run. The reason is "timeout", "cancelled" or "stop".
func Cancel(run uint64, reason string) []byte {
	return fmt.Appendf(nil, `{"v":%d,"type":"cancel","run":%d,"reason":%q}`+"\n", Version, run, reason)
}

// Drain returns the line that says that no task follows.
func Drain() []byte { return fmt.Appendf(nil, `{"v":%d,"type":"drain"}`+"\n", Version) }

// encode writes one line. The encoder takes the line ends out of a payload that was written for people.
func encode(message any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(message); err != nil {
		return nil, fmt.Errorf("write the task as a line of JSON: %w", err)
	}
	return buffer.Bytes(), nil
}
