package top

import (
	"fmt"
	"strconv"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

// queueColumn is a column of the table of queues.
type queueColumn struct {
	screen.Column
	cell func(m *model, q *apiv1.Queue) screen.Cell
}

// In which order the columns leave where there is little room, the last first.
const (
	_ = iota
	spareWait
	spareRun
	spareWorkers
	spareHeld
	spareRate
	spareTime
)

// queueColumns are the columns of a layout. What went wrong is three numbers, or their sum where there is little room: it is never left
// out.
func queueColumns(half, each bool) []queueColumn {
	text := func(of func(m *model, q *apiv1.Queue) string) func(m *model, q *apiv1.Queue) screen.Cell {
		return func(m *model, q *apiv1.Queue) screen.Cell { return screen.Text(of(m, q)) }
	}
	column := func(title string, spare int, of func(m *model, q *apiv1.Queue) string) queueColumn {
		return queueColumn{screen.Column{Title: title, Right: true, Spare: spare}, text(of)}
	}
	columns := []queueColumn{
		{screen.Column{Title: "QUEUE", Flexible: true}, text(func(_ *model, q *apiv1.Queue) string { return q.GetName() })},
		{screen.Column{Title: "STATE"}, func(_ *model, q *apiv1.Queue) screen.Cell {
			return screen.Cell{Text: q.GetState(), Paint: statePaint(q.GetState())}
		}},
		column("WAIT", spareWait, func(_ *model, q *apiv1.Queue) string { return screen.Count(q.GetWaiting()) }),
		column("HELD", spareHeld, func(_ *model, q *apiv1.Queue) string { return screen.Count(q.GetHeld()) }),
		column("RUN", spareRun, func(_ *model, q *apiv1.Queue) string { return screen.Count(q.GetRunning()) }),
		column("DONE/S", spareRate, func(m *model, q *apiv1.Queue) string { return m.rateText(q.GetName()) }),
	}
	if half {
		columns = append(columns, column("P50", spareTime, func(_ *model, q *apiv1.Queue) string { return runTime(q, q.GetRunP50Us()) }))
	}
	columns = append(columns, column("P99", spareTime, func(_ *model, q *apiv1.Queue) string { return runTime(q, q.GetRunP99Us()) }))
	if each {
		columns = append(columns,
			queueColumn{screen.Column{Title: "FAILED", Right: true}, func(_ *model, q *apiv1.Queue) screen.Cell { return number(q.GetFailed(), screen.Warn) }},
			queueColumn{screen.Column{Title: "KILLED", Right: true}, func(_ *model, q *apiv1.Queue) screen.Cell { return number(q.GetKilled(), screen.Bad) }},
			queueColumn{screen.Column{Title: "DEAD", Right: true}, func(_ *model, q *apiv1.Queue) screen.Cell {
				return screen.Cell{Text: screen.Count(q.GetDead()), Paint: paintIf(q.GetDead() > 0)}
			}})
	} else {
		columns = append(columns, queueColumn{screen.Column{Title: "BAD", Right: true}, badCell})
	}
	return append(columns, column("WORKERS", spareWorkers, func(_ *model, q *apiv1.Queue) string {
		return fmt.Sprintf("%d/%d", q.GetWorkers(), q.GetMaxWorkers())
	}))
}

// badCell is the sum of what went wrong, with a question mark behind it while the dead letters are not known.
func badCell(_ *model, q *apiv1.Queue) screen.Cell {
	dead := max(0, q.GetDead())
	cell := number(q.GetFailed()+q.GetKilled()+uint64(dead), screen.Warn) //nolint:gosec // not negative
	if q.GetKilled() > 0 || dead > 0 {
		cell.Paint = screen.Bad
	}
	if q.GetDead() < 0 {
		cell.Text += "?"
	}
	return cell
}

// queueTable is the table of queues in the richest layout that has room; at is the selected one.
func (m *model) queueTable(queues []*apiv1.Queue, at, width int) *screen.Table {
	var t *screen.Table
	for _, layout := range []struct{ half, each bool }{{true, true}, {false, true}, {false, false}} {
		columns := queueColumns(layout.half, layout.each)
		t = &screen.Table{Columns: []screen.Column{{Title: " "}}}
		for _, c := range columns {
			t.Columns = append(t.Columns, c.Column)
		}
		for i, q := range queues {
			cells := []screen.Cell{mark(i == at && !m.onWorkers)}
			for _, c := range columns {
				cells = append(cells, c.cell(m, q))
			}
			t.Add(cells...)
		}
		if t.Fits(width) {
			break
		}
	}
	return t
}

// rateText is a queue's rate, or a dash.
func (m *model) rateText(queue string) string {
	r, known := m.rate(queue)
	if !known {
		return "-"
	}
	return strconv.FormatFloat(r, 'f', 1, 64)
}
