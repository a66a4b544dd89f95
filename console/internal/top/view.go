package top

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
)

// view is the model as exactly so many lines, none wider than the columns.
func (m *model) view(columns, rows int, style screen.Style) []string {
	style.Width = columns
	body := max(0, rows-2) // between the first line and the last
	var lines []string
	switch {
	case m.help:
		lines = helpLines(columns)
	case m.status == nil:
		lines = []string{"", "asking the manager ..."}
	default:
		lines = m.tables(body, style)
	}
	lines = append(lines[:min(len(lines), body)], make([]string, max(0, body-len(lines)))...)
	return append(append([]string{m.header(columns, style)}, lines...), m.footer(columns, style))[:rows]
}

// header says how the manager is doing.
func (m *model) header(columns int, style screen.Style) string {
	if m.failure != "" {
		return style.Paint(screen.Bad, screen.Cut(screen.Clean("the manager does not answer: "+m.failure), columns))
	}
	g := m.status.GetManager()
	var rss int64
	for _, w := range m.status.GetWorkers() {
		rss += w.GetRssBytes()
	}
	parts := []string{fmt.Sprintf("%s %s", g.GetName(), g.GetState())}
	if broken := g.GetBrokerError(); broken != "" {
		return style.Paint(screen.Bad, screen.Cut(screen.Clean(parts[0]+"  the broker does not answer: "+broken), columns))
	}
	if started := g.GetStartedMs(); started > 0 {
		parts = append(parts, "up "+screen.Duration(m.now.Sub(time.UnixMilli(started))))
	}
	parts = append(parts, screen.Things(int64(len(m.status.GetWorkers())), "worker")+", "+screen.Bytes(rss))
	return style.Paint(screen.Strong, screen.Cut(screen.Clean(strings.Join(parts, "  ")), columns))
}

// footer is a question, a message or the keys.
func (m *model) footer(columns int, style screen.Style) string {
	switch {
	case m.asked != nil:
		return style.Paint(screen.Warn, screen.Cut(m.asked.question(), columns))
	case m.message != "":
		text := screen.Cut(screen.Clean(m.message), max(0, columns-len(gapText+helpKey)))
		return style.Paint(screen.Warn, screen.Cut(text+gapText+helpKey, columns))
	default:
		return style.Paint(screen.Faint, screen.Cut(keysText(columns), columns))
	}
}

const helpKey, gapText = "h help", "  "

// keysText are the keys for which there is room; the help, which has them all, comes first.
func keysText(columns int) string {
	text := helpKey
	for _, key := range []string{"q quit", "arrows select", "Tab workers", "s sort", "p pause", "r restart", "K kill"} {
		if len(text+gapText+key) > columns {
			break
		}
		text += gapText + key
	}
	return text
}

func helpLines(columns int) []string {
	lines := []string{
		"", "q, Ctrl-C   leave", "up, k       select the one above", "down, j     select the one below", "Tab         go from the queues to the workers, and back",
		"s           sort by another column", "p           pause the queue, or resume it", "r           restart the worker, or all of the queue, after their tasks",
		"K           kill the worker, after asking", "Ctrl-Z      suspend    Ctrl-L  draw anew", "",
		"WAIT is in the queue, HELD taken and waiting for a worker, RUN running.", "DONE/S is the mean of the last seconds. P50 and P99 are run times: half of",
		"the latest runs, and 99 of 100, took no longer. Where there is little room,", "BAD is the sum of FAILED, KILLED and DEAD. Any key goes back.",
	}
	for i := range lines {
		lines[i] = screen.Cut(lines[i], columns)
	}
	return lines
}

// tables are the queues above the workers; the table with the selection gets what room it needs first.
func (m *model) tables(rows int, style screen.Style) []string {
	queues, workers := m.queues(), m.workers()
	const around = 3 // two titles and an empty line
	room := max(2, rows-around)
	forQueues := min(len(queues), max(room/2, room-len(workers)))
	if rows < 8 { // too low for both
		if m.onWorkers {
			return m.workerLines(workers, rows-1, style)
		}
		return m.queueLines(queues, rows-1, style)
	}
	lines := append(m.queueLines(queues, forQueues, style), "")
	return append(lines, m.workerLines(workers, room-forQueues, style)...)
}

func (m *model) queueLines(queues []*apiv1.Queue, rows int, style screen.Style) []string {
	at := slices.IndexFunc(queues, func(q *apiv1.Queue) bool { return q.GetName() == m.queue })
	return window(m.queueTable(queues, at, style.Width), at, !m.onWorkers, rows, style)
}

func (m *model) workerLines(workers []*apiv1.Worker, rows int, style screen.Style) []string {
	t := &screen.Table{Columns: []screen.Column{
		{Title: " "}, {Title: "WORKER", Right: true}, {Title: "QUEUE", Flexible: true}, {Title: "PID", Right: true, Spare: 2}, {Title: "STATE", Flexible: true}, {Title: "AGE", Right: true, Spare: 3},
		{Title: "TASKS", Right: true, Spare: 4}, {Title: "BUSY", Right: true, Spare: 1}, {Title: "MEMORY"},
	}}
	at := slices.IndexFunc(workers, func(w *apiv1.Worker) bool { return w.GetId() == m.worker })
	for i, w := range workers {
		state := screen.Text(w.GetState())
		switch {
		case w.GetFrozen():
			state = screen.Cell{Text: "frozen", Paint: screen.Bad}
		case w.GetLeaving() != "":
			state = screen.Cell{Text: "leaves: " + w.GetLeaving(), Paint: screen.Warn}
		}
		age := ""
		if w.GetStartedMs() > 0 {
			age = screen.Duration(m.now.Sub(time.UnixMilli(w.GetStartedMs())))
		}
		t.Add(mark(i == at && m.onWorkers), screen.Text(strconv.FormatUint(w.GetId(), 10)), screen.Text(w.GetQueue()), screen.Text(strconv.Itoa(int(w.GetPid()))), state,
			screen.Text(age), screen.Text(strconv.FormatUint(w.GetTasks(), 10)), screen.Text(fmt.Sprintf("%d/%d", w.GetRunning(), w.GetSlots())), memory(w))
	}
	return window(t, at, m.onWorkers, rows, style)
}

// runTime is a queue's run time of so many microseconds, when something has run.
func runTime(q *apiv1.Queue, us uint64) string {
	if q.GetRunP99Us() == 0 {
		return "-"
	}
	return screen.Short(time.Duration(us) * time.Microsecond) //nolint:gosec // of less than centuries
}

// memory is a worker's memory as a bar against its limit, when it has one.
func memory(w *apiv1.Worker) screen.Cell {
	const barColumns = 12
	rss, most := max(0, w.GetRssBytes()), w.GetMemoryMaxBytes()
	cell := screen.Text(screen.Bytes(rss))
	if most <= 0 {
		return cell
	}
	cell.Text = screen.Bar(uint64(rss), uint64(most), barColumns) + " " + cell.Text //nolint:gosec // both are above 0
	if rss > most/10*9 {
		cell.Paint = screen.Bad
	}
	return cell
}

func mark(selected bool) screen.Cell {
	if selected {
		return screen.Text(">")
	}
	return screen.Text("")
}

func number(n uint64, p screen.Paint) screen.Cell {
	cell := screen.Text(strconv.FormatUint(n, 10))
	if n > 0 {
		cell.Paint = p
	}
	return cell
}

func paintIf(bad bool) screen.Paint {
	if bad {
		return screen.Bad
	}
	return screen.Plain
}

func statePaint(state string) screen.Paint {
	switch state {
	case "ok":
		return screen.Good
	case "circuit-open":
		return screen.Bad
	default:
		return screen.Warn
	}
}

// window is a table's title and so many of its rows that the selected one is among them; that one stands out.
func window(t *screen.Table, at int, active bool, rows int, style screen.Style) []string {
	lines := t.Lines(style)
	if active && at >= 0 && style.Colour {
		plain := style
		plain.Colour = false
		lines[at+1] = "\x1b[7m" + t.Lines(plain)[at+1] + "\x1b[0m"
	}
	rows = max(1, rows)
	first := max(0, min(at-rows/2, len(lines)-1-rows))
	last := min(len(lines)-1, first+rows)
	return append(lines[:1:1], lines[1+first:1+last]...)
}
