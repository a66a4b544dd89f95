package command

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"

	"github.com/drover-jobs/drover/console/internal/screen"
	"github.com/drover-jobs/drover/protocol/client"
)

// Code is the exit code of a command.
type Code int

// The exit codes. They are part of what scripts rely on.
const (
	Done        Code = 0
	Failed      Code = 1   // the task or the command failed
	Usage       Code = 2   // the command line is wrong: unknown command, flag or queue, or a payload that does not fit
	NoManager   Code = 3   // no manager answers
	TimeRanOut  Code = 4   // the time given ran out
	Interrupted Code = 130 // Ctrl-C, as shells report it
)

// ExitError is why a command did not end with Done. It is an error.
type ExitError struct {
	Code Code
	// Kind is one word for programs, such as "unknown_queue". Help lists them.
	Kind string
	// Message is for a person: what is wrong and what to do.
	Message string
	// Told is true when the output has said it already, as with the end of a task.
	Told bool
}

// Error returns the message.
func (f *ExitError) Error() string { return f.Message }

func usageError(format string, args ...any) *ExitError {
	return &ExitError{Code: Usage, Kind: "usage", Message: fmt.Sprintf(format, args...)}
}

// told is a failure that the output has said already.
func told(code Code) error {
	if code == Done {
		return nil
	}
	return &ExitError{Code: code, Told: true}
}

// Explain turns any error of a command into an ExitError; nil for nil. It asks the manager, shortly, whether it is there at
// all when an error leaves that open.
func Explain(ctx context.Context, env *Env, err error) *ExitError {
	var failure *ExitError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &failure):
		return failure
	case ctx.Err() != nil:
		return &ExitError{Code: Interrupted, Kind: "interrupted", Message: "interrupted"}
	case errors.Is(err, client.ErrUnknownQueue):
		return &ExitError{Code: Usage, Kind: "unknown_queue", Message: err.Error()}
	case errors.Is(err, client.ErrInvalidPayload):
		return &ExitError{Code: Usage, Kind: "invalid_payload", Message: err.Error()}
	case errors.Is(err, client.ErrUnknownTask):
		return &ExitError{Code: Failed, Kind: "unknown_task", Message: err.Error()}
	case errors.Is(err, client.ErrNoManager):
		return NoManagerAt(env.Address, err)
	case errors.Is(err, client.ErrForbidden):
		message := err.Error()
		if strings.HasPrefix(env.Address, "https:") {
			message += "; DROVER_TOKEN_FILE names a file that holds a token"
		}
		return &ExitError{Code: Failed, Kind: "forbidden", Message: message}
	case errors.Is(err, context.DeadlineExceeded):
		return &ExitError{Code: TimeRanOut, Kind: "no_answer",
			Message: fmt.Sprintf("the manager at %s did not answer in time: it may be stopped or overloaded; see its log", env.Address)}
	case errors.Is(err, client.ErrUnavailable):
		return explainUnavailable(ctx, env, err)
	default:
		return &ExitError{Code: Failed, Kind: "failed", Message: err.Error()}
	}
}

// probeTime bounds the question whether a manager is there.
const probeTime = 2 * time.Second

// explainUnavailable tells a manager that is not there from one whose broker is away.
func explainUnavailable(ctx context.Context, env *Env, err error) *ExitError {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	if env.Control != nil {
		status, statusErr := env.Control.Status(ctx, &apiv1.StatusRequest{})
		if statusErr == nil {
			message := err.Error()
			if why := status.GetManager().GetBrokerError(); why != "" {
				message = fmt.Sprintf("the manager answers, but its broker does not: %s; nothing is lost, try again later", why)
			}
			return &ExitError{Code: Failed, Kind: "broker_unavailable", Message: message}
		}
	}
	return NoManagerAt(env.Address, err)
}

// NoManagerAt is the failure when no manager answers at an address. why may be nil.
func NoManagerAt(address string, why error) *ExitError {
	reason := ""
	var dial *net.OpError
	var stranger x509.UnknownAuthorityError
	switch {
	case errors.As(why, &stranger):
		return &ExitError{Code: NoManager, Kind: "no_manager", Message: fmt.Sprintf(
			"what answers at %s shows a certificate that nobody known has signed: name the file of its authority in DROVER_CA_FILE", address)}
	case errors.As(why, &dial):
		reason = " (" + dial.Err.Error() + ")"
	case why != nil:
		reason = " (" + why.Error() + ")"
	}
	return &ExitError{Code: NoManager, Kind: "no_manager", Message: fmt.Sprintf(
		"no manager answers at %s%s: start one with droverd (in the source tree: make run), or name its socket with --socket PATH or in DROVER_SOCKET", address, reason)}
}

// errorJSON is how a failure stands in JSON.
type errorJSON struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

// Report tells a failure on env.Err, and with JSON also as {"error":{...}} on env.Out, unless the output has told it.
func Report(env *Env, failure *ExitError) error {
	if failure == nil || failure.Told {
		return nil
	}
	if env.JSON {
		if err := screen.WriteJSON(env.Out, map[string]errorJSON{"error": {Kind: failure.Kind, Message: failure.Message}}); err != nil {
			return err
		}
	}
	return env.tell("drover: " + failure.Message)
}
