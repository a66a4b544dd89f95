package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// errStartTimeout is the cause of a start that took too long.
var errStartTimeout = errors.New("it was not ready in time")

// failure says what a start failed at, why, and what the process wrote. The process has been collected, if it ever was.
func (s *started) failure(ctx context.Context, spec Spec, what string, err error) error {
	wrote := "it wrote nothing"
	if lines := s.out.digest(); len(lines) > 0 {
		wrote = "it wrote: " + strings.Join(lines, " | ")
	}
	prefix := fmt.Sprintf("plugin %s (%s) %s", spec.Plugin, spec.Command[0], what)
	switch cause := context.Cause(ctx); {
	case s.run.state == nil: // not even forked
		return fmt.Errorf("%s: %w", prefix, err)
	case errors.Is(cause, errStartTimeout):
		return fmt.Errorf("%s: it was not ready within %s; %s; if it needs more, raise start_timeout", prefix, spec.StartTimeout, wrote)
	case cause != nil:
		return fmt.Errorf("%s: given up: %w", prefix, cause)
	}
	return fmt.Errorf("%s: %s; %s", prefix, s.why(err), wrote)
}

// unconfigured says what a program did instead of accepting its configuration. One that ended, or that says by the code Aborted
// that something which it needs is not there (plugins/sdk; in plugins/exec: its command ended), has refused nothing.
func unconfigured(err error) string {
	if st := status.Convert(err); isGone(st) || st.Code() == codes.Aborted {
		return "did not get ready"
	}
	return "refused its configuration"
}

// why puts an error of go-plugin or gRPC in words that help.
func (s *started) why(err error) string {
	text := err.Error()
	ended := endOf(s.run.state)
	switch st, isStatus := status.FromError(err); {
	case strings.HasPrefix(text, "Unrecognized remote plugin message: ") && !strings.Contains(text, "Failed to read any lines"):
		return "the first line on its standard output is not the handshake: is it a worker program, and does it print nothing before?"
	case strings.HasPrefix(text, "Unrecognized remote plugin message"), strings.HasPrefix(text, "plugin exited"):
		if ended == "" {
			return "it closed its standard output before it was ready"
		}
		return ended + " before it was ready"
	case strings.HasPrefix(text, "timeout while waiting"):
		return "it was not ready in time; if it needs more, raise start_timeout"
	case isStatus && st.Message() != "" && !isGone(st):
		text = st.Message()
	case ended != "":
		return ended
	case isStatus && isGone(st):
		return "it was killed, or it closed its connection"
	}
	return strings.Join(trimmed([]string{strings.ReplaceAll(text, "\n", " ")}), "")
}

// endOf says how a process ended, unless it was SIGKILL, which is most likely ours.
func endOf(state *os.ProcessState) string {
	switch sig := signalOf(state); {
	case sig == 0:
		return fmt.Sprintf("it ended with exit code %d", state.ExitCode())
	case sig != syscall.SIGKILL:
		return "it was ended by signal " + sig.String()
	default:
		return ""
	}
}

// isGone reports whether a status only says that the process, or the time, has gone.
func isGone(st *status.Status) bool {
	return st.Code() == codes.Unavailable || st.Code() == codes.Canceled
}
