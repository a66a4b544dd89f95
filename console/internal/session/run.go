package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/drover-jobs/drover/console/internal/command"
	"github.com/drover-jobs/drover/console/internal/line"
)

// Run runs what the process was started for and returns the exit code: the command on its command line, the commands behind -c, a
// script on standard input, or else, on a terminal, a prompt. prompt shows one for a session; nil has none.
func Run(ctx context.Context, p Process, prompt func(ctx context.Context, s *Session) command.Code) int {
	start, err := plan(p.Args)
	if err != nil {
		env := p.environment()
		env.JSON = command.WantsJSON(p.Args)
		_ = command.Report(env, command.Explain(ctx, env, err)) // the exit code still tells
		return int(command.Usage)
	}
	if start.kind == startInput && p.InTerminal && p.Terminal == nil {
		start.kind = startCommand // nothing to type commands at: say what is missing
	}
	s := New(p, start.common)
	code := s.runStart(ctx, start, prompt)
	if err := s.Close(); err != nil && code == command.Done {
		_, _ = fmt.Fprintln(p.Err, "drover:", err) // as above
		code = command.Failed
	}
	return int(code)
}

func (s *Session) runStart(ctx context.Context, start start, prompt func(context.Context, *Session) command.Code) command.Code {
	p := &s.process
	if start.kind == startInput && p.InTerminal && prompt != nil {
		return prompt(ctx, s)
	}
	own, stop := p.interruptible(ctx)
	defer stop()
	if p.Release != nil {
		context.AfterFunc(own, p.Release) // the second Ctrl-C has its usual effect
	}
	if p.Terminal != nil {
		p.Terminal.Lend() // there is no prompt that would want it
	}
	switch start.kind {
	case startText:
		return s.Script(own, strings.NewReader(start.text), start.keepGoing)
	case startInput:
		s.env.In = taken{}
		return s.Script(own, p.In, start.keepGoing)
	case startWords:
		return s.offer(own, p.Args[1:])
	default:
		code, _ := s.Do(own, p.Args)
		return code
	}
}

// taken is the standard input of the commands of a script that is the standard input.
type taken struct{}

func (taken) Read([]byte) (int, error) {
	return 0, errors.New("it is the script itself: name a file with @FILE instead")
}

type startKind int

const (
	startCommand startKind = iota // the words are a command
	startText                     // the commands stand behind -c
	startInput                    // they are typed, or come on standard input
	startWords                    // a shell asks what the words could become
)

// start is what the process was started for.
type start struct {
	kind      startKind
	text      string
	common    []string // flags for every command
	keepGoing bool
}

// FlagKeepGoing lets a script go on after a command that failed.
const FlagKeepGoing = "keep-going"

// plan understands the command line as far as it is no command. Its errors are *command.ExitError of usage.
func plan(args []string) (start, error) {
	var s start
	if len(args) > 0 && args[0] == command.WordsCommand {
		return start{kind: startWords}, nil
	}
	given := false // -c
	for i := 0; i < len(args); i++ {
		name, value, hasValue := strings.Cut(args[i], "=")
		switch name {
		case "--" + command.FlagJSON:
			s.common = append(s.common, name)
		case "--" + command.FlagSocket:
			if !hasValue {
				if i++; i == len(args) {
					return s, &command.ExitError{Code: command.Usage, Kind: "usage", Message: "--socket needs a value: --socket PATH"}
				}
				value = args[i]
			}
			s.common = append(s.common, name, value)
		case "--" + FlagKeepGoing:
			s.keepGoing = true
		case "-c":
			if i++; i == len(args) || given {
				return s, &command.ExitError{Code: command.Usage, Kind: "usage", Message: "-c needs commands, once: drover -c 'status; queues'"}
			}
			s.text, given = args[i], true
		default:
			if !given && !s.keepGoing {
				return start{kind: startCommand}, nil // the tree says what is wrong with it, if anything is
			}
			return s, &command.ExitError{Code: command.Usage, Kind: "usage",
				Message: fmt.Sprintf("%.60q: -c and --keep-going go without a command, with --json and --socket PATH only", args[i])}
		}
	}
	s.kind = startInput
	if given {
		s.kind = startText
	}
	return s, nil
}

// longestLine of a script, in bytes: a payload and its escapes.
const longestLine = 16 << 20

// Script runs the commands of a text, line by line, and returns the code of the first that failed, at which it stops unless it is to
// keep going. A backslash at the end of a line goes on with the next.
func (s *Session) Script(ctx context.Context, text io.Reader, keepGoing bool) command.Code {
	lines := bufio.NewScanner(text)
	lines.Buffer(nil, longestLine)
	worst, number, ran := command.Done, 0, false
	for lines.Scan() {
		number++
		whole := lines.Text()
		for strings.HasSuffix(whole, `\`) && !strings.HasSuffix(whole, `\\`) && lines.Scan() {
			number++
			whole = strings.TrimSuffix(whole, `\`) + lines.Text()
		}
		ran = true
		code, left := s.Line(ctx, whole, keepGoing)
		if worst == command.Done {
			worst = code
		}
		if left || ctx.Err() != nil || code != command.Done && !keepGoing {
			return worst
		}
	}
	if err := lines.Err(); err != nil {
		return s.complain(fmt.Sprintf("read the script behind line %d: %v", number, err))
	}
	if !ran {
		return s.complain("a command is missing. See: drover help")
	}
	return worst
}

// Line runs the commands of one line, up to the first that fails unless it is to keep going. left is true when one was to leave.
func (s *Session) Line(ctx context.Context, text string, keepGoing bool) (code command.Code, left bool) {
	commands, err := line.Split(text)
	if err != nil {
		return s.complain(fmt.Sprintf("%v: %.80s", err, text)), false
	}
	for _, words := range commands {
		got, leaves := s.Do(ctx, slices.Concat(words, nil))
		if code == command.Done {
			code = got
		}
		if leaves || ctx.Err() != nil || got != command.Done && !keepGoing {
			return code, leaves
		}
	}
	return code, false
}

// complain reports a mistake of whoever wrote the commands.
func (s *Session) complain(message string) command.Code {
	_ = command.Report(s.env, &command.ExitError{Code: command.Usage, Kind: "usage", Message: message}) // the exit code still tells
	return command.Usage
}
