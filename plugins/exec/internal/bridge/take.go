package bridge

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/drover-jobs/drover/plugins/exec/internal/child"
	"github.com/drover-jobs/drover/plugins/exec/internal/line"
	"github.com/drover-jobs/drover/protocol/fault"
)

// take acts on one line of the child.
func (s *session) take(text []byte) {
	message, err := line.Parse(text)
	r := s.running()
	if err != nil {
		s.misunderstood(r, message, err)
		return
	}
	ctx := context.Background()
	switch message.Type {
	case line.Text:
		s.print(r, message.Text)
		if message.Buried {
			s.warn(r, "a message that does not begin its line is not read: end every line with a newline, and begin each message on a line of its own")
		}
	case line.Ready:
		s.greeted = true
		s.started(versionFault(s.settings.name(), message.Version))
	case line.Log:
		if r == nil || message.Run != 0 && message.Run != r.number {
			r = nil
		}
		s.logger(r).Log(ctx, message.Level, message.Text, attributes(message.Attributes)...)
	case line.Progress:
		if r != nil && message.Run == r.number {
			r.progress(message.Done, message.Total, message.Note)
		}
	case line.Result, line.Error:
		if r == nil || message.Run != r.number {
			s.logger(nil).WarnContext(ctx, "the program answered a run that it is not running; the answer is dropped", "run", message.Run)
			return
		}
		a := answer{result: message.Result}
		if message.Type == line.Error {
			a = answer{err: message.Fault}
		}
		s.settle(r, a)
	}
}

// misunderstood deals with a line that was meant to be a message. One that was to be the answer ends the task: no other may
// come.
func (s *session) misunderstood(r *run, message line.Message, err error) {
	switch {
	case message.Type == line.Ready:
		s.started(fault.New(fault.Unavailable, "%v: see PROTOCOL.md", err))
	case r != nil && (message.Type == line.Result || message.Type == line.Error) && (message.Run == 0 || message.Run == r.number):
		s.settle(r, answer{err: fault.New(fault.Protocol, "%v", err)})
	default:
		s.warn(r, "a line of the program is dropped: "+err.Error())
	}
}

// print passes on a line that is no message: to the child's standard error, since it may say why the child dies, and once the
// child is ready also to the log, which names the task.
func (s *session) print(r *run, text string) {
	if text == "" {
		return
	}
	s.child.Complain(text)
	if s.greeted {
		s.logger(r).InfoContext(context.Background(), text, "stream", "stdout")
	}
}

// warn tells the program's author of a mistake, where the author looks: among the child's own output, and in the log.
func (s *session) warn(r *run, text string) {
	s.child.Complain("exec: " + text)
	s.logger(r).WarnContext(context.Background(), text)
}

// versionFault says whether a child of a version can be spoken with.
func versionFault(name string, version int) error {
	if version == line.Version {
		return nil
	}
	return fault.New(fault.Unavailable, "the command %q speaks version %d of the line protocol, this worker version %d: change one of them",
		name, version, line.Version)
}

// started says what came of the child's start. A second "ready" is no matter: it says nothing new.
func (s *session) started(err error) {
	select {
	case s.ready <- err:
	default:
	}
}

// running is the run that the child works on; nil for none.
func (s *session) running() *run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

func (s *session) setRunning(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = r
}

// settle gives a run its answer. What the child still says of the run comes too late.
func (s *session) settle(r *run, a answer) {
	if r == nil {
		return
	}
	s.setRunning(nil)
	select {
	case r.answer <- a:
	default:
	}
}

func (s *session) logger(r *run) *slog.Logger {
	if r == nil {
		return s.log
	}
	return r.log
}

func attributes(of map[string]any) []any {
	list := make([]any, 0, len(of))
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, slog.Any(name, of[name]))
	}
	return list
}

// longestLastLine bounds what a message quotes of a child's standard error, in bytes.
const longestLastLine = 300

// lastWords adds to a fault what the child wrote last to its standard error: the last line to the message, all to the detail.
func lastWords(c *child.Child, f *fault.Fault) *fault.Fault {
	lines := c.LastLines()
	if len(lines) == 0 {
		return f
	}
	last := lines[len(lines)-1]
	if len(last) > longestLastLine {
		last = strings.ToValidUTF8(last[:longestLastLine], "") + " ..."
	}
	f = f.WithDetail(strings.Join(lines, "\n"))
	f.Message += ": " + last
	return f
}
