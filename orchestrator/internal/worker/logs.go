package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"sort"

	workerv1 "github.com/drover-jobs/drover/protocol/drover/worker/v1"
)

// maxLogAttributes bounds how many attributes of a worker's log line are passed on.
const maxLogAttributes = 32

// logged passes a worker's structured line on to the manager's log.
func (p *Process) logged(line *workerv1.Log) {
	level := slog.Level(line.GetLevel())
	ctx := context.Background()
	if !p.log.Enabled(ctx, level) {
		return
	}
	attrs := []slog.Attr{slog.Uint64("worker", p.id)}
	p.mu.Lock()
	if r := p.runs[line.GetRun()]; r != nil {
		attrs = append(attrs, slog.String("task", r.job.ID.String()))
	}
	p.mu.Unlock()
	var given map[string]any
	if json.Unmarshal(line.GetAttributes(), &given) == nil {
		names := make([]string, 0, len(given))
		for name := range given {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names[:min(len(names), maxLogAttributes)] {
			attrs = append(attrs, slog.Any(name, given[name]))
		}
	}
	p.log.LogAttrs(ctx, level, line.GetMessage(), attrs...)
}
