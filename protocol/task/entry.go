package task

import (
	"encoding/json"
	"fmt"
)

// Entry is what managers publish in Redis about a queue they serve, so that a client without a manager knows the queue and
// can check a payload before it submits. It stays when the managers are down.
type Entry struct {
	Queue string `json:"queue"`
	// Kind is the kind of task that the queue's plugin runs; empty while the plugin has never started, and then the queue
	// takes no tasks.
	Kind string `json:"kind"`
	// Schema is the JSON Schema of the payload; empty accepts any JSON object.
	Schema string `json:"schema,omitempty"`
	// RetentionSeconds is how long the record of a task is kept that a client ends itself, by cancelling it while it waits.
	RetentionSeconds int64 `json:"retention_s,omitempty"`
}

// EncodeEntry returns the bytes that lie in Redis.
func EncodeEntry(e Entry) ([]byte, error) { return json.Marshal(e) }

// DecodeEntry reads what EncodeEntry wrote.
func DecodeEntry(data []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(data, &e); err != nil {
		return Entry{}, fmt.Errorf("read the entry of a queue: %w", err)
	}
	return e, nil
}
