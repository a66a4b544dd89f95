package line

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/drover-jobs/drover/protocol/fault"
)

// Type says what a line is.
type Type int

// The types of lines that come up.
const (
	Text Type = iota // anything that is no message: a line for the log
	Ready
	Progress
	Log
	Result
	Error
)

// Message is one line that came up, understood. Which fields count depends on Type.
type Message struct {
	Type Type
	// Run is the run that it speaks of; 0 in a Log that belongs to none.
	Run uint64
	// Version is that of a Ready.
	Version int
	// Done, Total and Note are of a Progress.
	Done, Total uint64
	Note        string
	// Level, Text and Attributes are of a Log; Text is the whole line when Type is Text.
	Level      slog.Level
	Text       string
	Attributes map[string]any
	// Buried says of a Text that what looks like a message stands in it behind something else. It is not taken for one: a
	// program may quote a message, or print what came from outside, and neither must end its task.
	Buried bool
	// Result is JSON, never empty in a Result.
	Result json.RawMessage
	// Fault is that of an Error.
	Fault *fault.Fault
}

// types are the names of the types of messages.
var types = map[string]Type{ //nolint:gochecknoglobals // the list itself; never written
	"ready": Ready, "progress": Progress, "log": Log, "result": Result, "error": Error,
}

// meant finds the type in a line that was meant to be a message but is no JSON, such as one with NaN in it.
var meant = regexp.MustCompile(`"type"\s*:\s*"(ready|progress|log|result|error)"`)

// buried finds what looks like a message inside a line.
var buried = regexp.MustCompile(`\{[^{}]*"type"\s*:\s*"(ready|progress|result|error)"`)

// sniffed is how far into a line its type is looked for when it is no JSON, in bytes.
const sniffed = 256

// Parse reads one line, without its end. A line that is not a JSON object of this protocol is a Text, and so is a message of
// a type that a later version may know. The error says that a line was meant to be a message of the returned type and
// cannot be understood; then only Type and, where it could be read, Run count.
func Parse(line []byte) (Message, error) {
	line = bytes.TrimSpace(line)
	asText := Message{Type: Text, Text: string(line)}
	if len(line) == 0 || line[0] != '{' {
		asText.Buried = buried.Match(line)
		return asText, nil
	}
	if !json.Valid(line) {
		found := meant.FindSubmatch(line[:min(len(line), sniffed)])
		if found == nil {
			return asText, nil
		}
		return Message{Type: types[string(found[1])]}, fmt.Errorf("the %s line is not valid JSON", found[1])
	}
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return asText, nil //nolint:nilerr // an object with another sort of type is not of this protocol
	}
	kind, known := types[head.Type]
	if !known {
		return asText, nil
	}
	message, err := decode(kind, line)
	if err != nil {
		return Message{Type: kind, Run: message.Run}, fmt.Errorf("the %s line cannot be understood: %w", head.Type, err)
	}
	return message, nil
}

// decode reads a message of a known type.
func decode(kind Type, line []byte) (Message, error) {
	switch kind {
	case Ready:
		return decodeReady(line)
	case Progress:
		return decodeProgress(line)
	case Log:
		return decodeLog(line)
	case Result:
		return decodeResult(line)
	default:
		return decodeError(line)
	}
}

func decodeReady(line []byte) (Message, error) {
	in := struct {
		V int `json:"v"`
	}{V: Version}
	err := json.Unmarshal(line, &in)
	return Message{Type: Ready, Version: in.V}, err
}

func decodeProgress(line []byte) (Message, error) {
	var in struct {
		Run   uint64 `json:"run"`
		Done  uint64 `json:"done"`
		Total uint64 `json:"total"`
		Note  string `json:"note"`
	}
	err := json.Unmarshal(line, &in)
	return Message{Type: Progress, Run: in.Run, Done: in.Done, Total: in.Total, Note: in.Note}, needsRun(err, in.Run)
}

func decodeLog(line []byte) (Message, error) {
	var in struct {
		Run        uint64         `json:"run"`
		Level      string         `json:"level"`
		Message    string         `json:"message"`
		Attributes map[string]any `json:"attributes"`
	}
	err := json.Unmarshal(line, &in)
	return Message{Type: Log, Run: in.Run, Level: levelOf(in.Level), Text: in.Message, Attributes: in.Attributes}, err
}

// levelOf reads the usual names of levels; what it does not know is information.
func levelOf(name string) slog.Level {
	switch name {
	case "debug":
		return slog.LevelDebug
	case "warn", "warning":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	default:
		return slog.LevelInfo
	}
}

func decodeResult(line []byte) (Message, error) {
	in := struct {
		Run    uint64          `json:"run"`
		Result json.RawMessage `json:"result"`
	}{Result: json.RawMessage("null")}
	err := json.Unmarshal(line, &in)
	if err == nil && !utf8.Valid(in.Result) {
		err = errors.New("its text is not UTF-8")
	}
	return Message{Type: Result, Run: in.Run, Result: in.Result}, needsRun(err, in.Run)
}

func decodeError(line []byte) (Message, error) {
	var in struct {
		Run          uint64     `json:"run"`
		Kind         fault.Kind `json:"kind"`
		Message      string     `json:"message"`
		Permanent    bool       `json:"permanent"`
		RetryAfterMS *int64     `json:"retry_after_ms"`
		Detail       string     `json:"detail"`
	}
	err := json.Unmarshal(line, &in)
	f := &fault.Fault{Kind: in.Kind, Message: in.Message, Permanent: in.Permanent, Detail: in.Detail}
	if f.Kind == fault.None {
		f.Kind = fault.Failed
	}
	if f.Message == "" {
		f.Message = "the program reported an error without a message"
	}
	if in.RetryAfterMS != nil {
		const longest = 365 * 24 * time.Hour
		pause := time.Duration(min(max(0, *in.RetryAfterMS), longest.Milliseconds())) * time.Millisecond
		f.RetryAfter = &pause
	}
	return Message{Type: Error, Run: in.Run, Fault: f}, needsRun(err, in.Run)
}

// needsRun adds to a message's own mistake the one of speaking of no run.
func needsRun(err error, run uint64) error {
	if err == nil && run == 0 {
		return errors.New(`it has no "run": copy it from the task`)
	}
	return err
}
