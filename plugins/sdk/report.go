package sdk

import (
	"log/slog"
	"strings"

	"github.com/drover-jobs/drover/protocol/drover/task/v1"
	"github.com/drover-jobs/drover/protocol/drover/worker/v1"
	"github.com/drover-jobs/drover/protocol/fault"
)

// Reports as they travel to the manager. Every text in one is valid UTF-8, or the whole batch could not be sent.

const warnLevel = int32(slog.LevelWarn)

// handBack is the fault of a task that did not get its run; it costs the task nothing.
func handBack(why string) *fault.Fault { return fault.New(fault.Interrupted, "%s", why) }

func failed(r *run, f *fault.Fault) *workerv1.Report {
	return &workerv1.Report{Kind: &workerv1.Report_Outcome{Outcome: &workerv1.Outcome{
		Run: r.number, End: &workerv1.Outcome_Fault{Fault: f.Proto()},
	}}}
}

// completed builds the most frequent report with one allocation.
func completed(r *run, result []byte) *workerv1.Report {
	var all struct {
		report  workerv1.Report
		kind    workerv1.Report_Outcome
		outcome workerv1.Outcome
		end     workerv1.Outcome_Result
	}
	all.end.Result = result
	all.outcome.Run, all.outcome.End = r.number, &all.end
	all.kind.Outcome = &all.outcome
	all.report.Kind = &all.kind
	return &all.report
}

func logReport(run uint64, level int32, message string, attributes []byte) *workerv1.Report {
	return &workerv1.Report{Kind: &workerv1.Report_Log{Log: &workerv1.Log{
		Run: run, Level: level, Message: clean(message, maxLine), Attributes: attributes,
	}}}
}

func progressReport(r *run, done, total uint64, note string) *workerv1.Report {
	return &workerv1.Report{Kind: &workerv1.Report_Progress{Progress: &workerv1.Progress{
		Run: r.number, Progress: &taskv1.Progress{Done: done, Total: total, Note: clean(note, maxNote)},
	}}}
}

// sizeOf is about what a report takes in a message, in bytes.
func sizeOf(report *workerv1.Report) int {
	const frame = 48
	switch kind := report.GetKind().(type) {
	case *workerv1.Report_Outcome:
		f := kind.Outcome.GetFault()
		return frame + len(kind.Outcome.GetResult()) + len(f.GetMessage()) + len(f.GetDetail())
	case *workerv1.Report_Log:
		return frame + len(kind.Log.GetMessage()) + len(kind.Log.GetAttributes())
	case *workerv1.Report_Stacks:
		return frame + len(kind.Stacks.GetText())
	case *workerv1.Report_Progress:
		return frame + len(kind.Progress.GetProgress().GetNote())
	default:
		return frame
	}
}

// clean makes s fit for a message: valid UTF-8 of at most n bytes.
func clean(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
