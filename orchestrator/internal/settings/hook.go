package settings

import (
	"fmt"

	"github.com/drover-jobs/drover/protocol/task"
)

// onDead completes the row of on_dead.
func onDead(s Setting) Setting {
	s.Form = "the name of a queue"
	return s
}

// queueName checks the name of a queue.
func queueName(text string) (string, error) {
	if err := task.CheckName(text); err != nil {
		return "", fmt.Errorf("is no name of a queue: %w", err)
	}
	return text, nil
}
