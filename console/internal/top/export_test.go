package top

import (
	"io"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

// Model is the model, for tests that press keys and look at the lines.
type Model struct{ m model }

func (m *Model) Heard(s *apiv1.StatusResponse, err error, now time.Time) { m.m.heard(s, err, now) }

func (m *Model) View(columns, rows int, style screen.Style) []string {
	return m.m.view(columns, rows, style)
}

// Press presses the keys of a chunk and returns what is asked of the manager.
func (m *Model) Press(chunk string) (asked []string) {
	for _, k := range keysOf([]byte(chunk)) {
		if a := m.m.press(k); a != nil {
			asked = append(asked, a.kind+" "+a.queue+number(a.worker, screen.Plain).Text)
		}
	}
	return asked
}

// NewPainter returns what draws lines on a terminal.
func NewPainter(to io.Writer) func(lines []string) error { return (&painter{to: to}).paint }

const (
	Enter = enter
	Leave = leave
)
