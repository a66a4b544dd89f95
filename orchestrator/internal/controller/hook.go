package controller

import (
	"bytes"
	"encoding/json"

	"github.com/drover-jobs/drover/orchestrator/internal/job"
	"github.com/drover-jobs/drover/protocol/task"
)

// letterKey is the one key of the payload of a task that tells of a dead letter.
const letterKey = "dead_letter"

// hookOf is the task that tells of a job's death; nil when nobody wants to know. Tasks that tell of a death are not told of when they
// die themselves: two queues that name each other would go on for ever.
func hookOf(j *job.Job, record *task.Task, queue string) *job.Hook {
	if queue == "" || bytes.HasPrefix(j.Payload, []byte(`{"`+letterKey+`":`)) {
		return nil
	}
	letter := *record
	letter.Payload = j.Payload
	if !json.Valid(letter.Payload) { // of a foreign client
		letter.Payload = nil
	}
	payload, err := json.Marshal(map[string]*task.Task{letterKey: &letter})
	if err == nil && len(payload) > task.MaxPayload {
		letter.Payload = nil // it lies with the dead letter
		payload, err = json.Marshal(map[string]*task.Task{letterKey: &letter})
	}
	if err != nil {
		return nil
	}
	return &job.Hook{Queue: queue, Payload: payload}
}
