package bridge_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// order is what a task tells the program to do.
type order struct {
	Do    string          `json:"do"`
	Value json.RawMessage `json:"value"`
	N     int             `json:"n"`
	Text  string          `json:"text"`
}

type taskLine struct {
	V          int    `json:"v"`
	Type       string `json:"type"`
	Run        uint64 `json:"run"`
	ID         string `json:"id"`
	Kind       string `json:"kind"`
	Attempt    int    `json:"attempt"`
	DeadlineMS int64  `json:"deadline_ms"`
	Reason     string `json:"reason"`
	Payload    order  `json:"payload"`
}

// program is a worker over lines of JSON that misbehaves on order.
func program(how string) {
	switch how {
	case "broken":
		fmt.Fprintln(os.Stderr, "Parse error: something is missing")
		os.Exit(255)
	case "unopened": // as an interpreter that says what is wrong on its standard output
		fmt.Println("Could not open input file: worker.php")
		os.Exit(1)
	case "mute":
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	case "future":
		say(`{"type":"ready","v":2}`)
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	fmt.Println("a banner of the interpreter")
	say(`{"type":"ready","v":1,"name":"test"}`)
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		t, ok := next(in)
		switch {
		case !ok:
			return
		case t.Type == "task":
			obey(in, t)
		case t.Type == "drain":
			note("drained")
		}
	}
}

func next(in *bufio.Reader) (t taskLine, ok bool) {
	text, err := in.ReadString('\n')
	if err != nil {
		return t, false
	}
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		fmt.Fprintln(os.Stderr, "a line of the worker is no JSON:", err)
		os.Exit(3)
	}
	return t, true
}

func say(format string, arguments ...any) { _, _ = fmt.Printf(format+"\n", arguments...) }

// note leaves a mark for the test, which says where by the environment.
func note(text string) {
	if path := os.Getenv("BRIDGE_TEST_NOTE"); path != "" {
		_ = os.WriteFile(path, []byte(text), 0o600)
	}
}

func obey(in *bufio.Reader, t taskLine) {
	p := t.Payload
	answer := func(result string) { say(`{"type":"result","run":%d,"result":%s}`, t.Run, result) }
	switch p.Do {
	case "echo":
		answer(string(p.Value))
	case "about":
		answer(fmt.Sprintf(`{"v":%d,"id":%q,"kind":%q,"attempt":%d,"deadline":%t,"pid":%d,"env":%q}`,
			t.V, t.ID, t.Kind, t.Attempt, t.DeadlineMS > 0, os.Getpid(), strings.Join(os.Environ(), " ")))
	case "nothing":
		say(`{"type":"result","run":%d}`, t.Run)
	case "fail":
		say(`{"type":"error","run":%d,%s}`, t.Run, p.Text)
	case "progress":
		say(`{"type":"progress","run":%d,"done":1,"total":2,"note":"half"}`, t.Run)
		say(`{"type":"log","run":%d,"level":"warn","message":"careful","attributes":{"n":7}}`, t.Run)
		say(`{"type":"later","run":%d}`, t.Run)
		say("plain words")
		answer(`1`)
		say(`{"type":"progress","run":%d,"done":2,"total":2}`, t.Run)
		say(`{"type":"result","run":%d,"result":"again"}`, t.Run)
	case "junk": // N bytes without an end, then a message
		fmt.Print(strings.Repeat("x", p.N) + "\n")
		answer(`"after junk"`)
	case "size":
		answer(fmt.Sprint(len(p.Value)))
	case "big":
		answer(`"` + strings.Repeat("y", p.N) + `"`)
	case "raw":
		say("%s", strings.ReplaceAll(p.Text, "RUN", fmt.Sprint(t.Run)))
	case "exit":
		fmt.Fprintln(os.Stderr, "first words\nlast words")
		os.Exit(p.N)
	case "die":
		signalSelf(syscall.SIGKILL)
	case "leave": // a child that holds the streams
		sleeper := exec.Command("sleep", "600")
		sleeper.Stdout, sleeper.Stderr = os.Stdout, os.Stderr
		if sleeper.Start() != nil {
			os.Exit(4)
		}
		answer(fmt.Sprint(sleeper.Process.Pid))
		os.Exit(0)
	case "close": // its output, and go on
		_ = os.Stdout.Close()
		<-time.After(time.Hour)
	default:
		wait(in, t)
	}
}

// wait does what a program may do while its task is cancelled.
func wait(in *bufio.Reader, t taskLine) {
	switch t.Payload.Do {
	case "freeze":
		say(`{"type":"progress","run":%d,"done":1}`, t.Run)
		signalSelf(syscall.SIGSTOP)
	case "polite": // reads the cancel line and answers it
		say(`{"type":"progress","run":%d,"done":1}`, t.Run)
		c, _ := next(in)
		say(`{"type":"error","run":%d,"message":%q}`, c.Run, c.Type+" because of "+c.Reason)
	case "terminate": // reads nothing and leaves on SIGTERM, after an answer
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		say(`{"type":"progress","run":%d,"done":1}`, t.Run)
		<-signals
		say(`{"type":"result","run":%d,"result":"saved"}`, t.Run)
		os.Exit(0)
	case "stubborn": // reads nothing and does not leave
		signal.Ignore(syscall.SIGTERM)
		say(`{"type":"progress","run":%d,"done":1}`, t.Run)
		<-time.After(time.Hour)
	}
}

func signalSelf(s syscall.Signal) { _ = syscall.Kill(os.Getpid(), s) }
