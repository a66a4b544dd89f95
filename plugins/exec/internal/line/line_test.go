package line_test

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/drover-jobs/drover/plugins/exec/internal/line"
	"github.com/drover-jobs/drover/protocol/fault"
)

// What goes down is one line, however the payload was laid out.
func TestDown(t *testing.T) {
	t.Parallel()
	got, err := line.Task{Run: 7, ID: "q:k", Kind: "thumbs", Queue: "q", Attempt: 2, DeadlineMS: 9, Payload: json.RawMessage("{\n  \"a\": \"<\\n>\"\n}")}.Encode()
	want := `{"v":1,"type":"task","run":7,"id":"q:k","kind":"thumbs","queue":"q","attempt":2,"deadline_ms":9,"payload":{"a":"<\n>"}}` + "\n"
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	if got := string(line.Cancel(7, "timeout")); got != `{"v":1,"type":"cancel","run":7,"reason":"timeout"}`+"\n" {
		t.Errorf("got %q", got)
	}
	if got := string(line.Drain()); got != `{"v":1,"type":"drain"}`+"\n" {
		t.Errorf("got %q", got)
	}
	if _, err := (line.Task{Payload: json.RawMessage("{")}).Encode(); err == nil {
		t.Error("a payload that is no JSON was written")
	}
}

// A line is a message of the protocol, a message that cannot be understood, or a text; nothing else.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text  string
		kind  line.Type
		run   uint64
		wrong string
	}{
		{`{"type":"ready"}`, line.Ready, 0, ""},
		{` {"v":1,"type":"result","run":3,"result":{"type":"error"}} ` + "\r", line.Result, 3, ""},
		{`{"type":"result","run":3}`, line.Result, 3, ""},
		{`{"type":"error","run":3,"new":true}`, line.Error, 3, ""},
		{`{"type":"log"}`, line.Log, 0, ""},
		{`{"type":"progress","run":4,"done":1}`, line.Progress, 4, ""},
		{``, line.Text, 0, ""},
		{`null`, line.Text, 0, ""},
		{`[{"type":"result","run":3}]`, line.Text, 0, ""},
		{`{"type":7}`, line.Text, 0, ""},
		{`{"level":"info","msg":"a log of its own"}`, line.Text, 0, ""},
		{`{"type":"of tomorrow"}`, line.Text, 0, ""},
		{`{broken`, line.Text, 0, ""},
		{`{"type":"result","run":3,"result":NaN}`, line.Result, 0, "not valid JSON"},
		{`{"type":"result","run":3,"result":1} {}`, line.Result, 0, "not valid JSON"},
		{`{"type":"result","result":1}`, line.Result, 0, `no "run"`},
		{`{"type":"result","run":3,"result":"` + "\xff" + `"}`, line.Result, 3, "not UTF-8"},
		{`{"type":"error","run":-3}`, line.Error, 0, "cannot be understood"},
		{`{"type":"ready","v":"1"}`, line.Ready, 0, "cannot be understood"},
	} {
		got, err := line.Parse([]byte(test.text))
		if got.Type != test.kind || got.Run != test.run {
			t.Errorf("%s: got %+v", test.text, got)
		}
		if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
			t.Errorf("%s: got %v, want %q", test.text, err, test.wrong)
		}
	}
}

// The reader cuts any stream into lines: texts are cut, the last line needs no end, and an object over its bound is told as
// soon as it is, though it never ends.
func TestReader(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300<<10)
	object := `{"pad":"` + strings.Repeat("y", 1<<20) + `"}`
	in := "one\r\n\n" + long + "\n  " + object + "\n" + long + "\ntwo\n{last"
	want := []string{"one", "", long[:line.MaxText], "  " + object, long[:line.MaxText], "two", "{last"}
	for name, stream := range map[string]io.Reader{"whole": strings.NewReader(in), "halves": iotest.HalfReader(strings.NewReader(in))} {
		var got []string
		r := line.NewReader(stream)
		text, err := r.Next()
		for ; err == nil; text, err = r.Next() {
			got = append(got, string(text))
		}
		if !errors.Is(err, io.EOF) || !slices.Equal(got, want) {
			t.Errorf("%s: got %d lines, %v; want %d", name, len(got), err, len(want))
		}
	}
	endless := io.MultiReader(strings.NewReader(`{"type":"result","result":"`), forever{})
	if _, err := line.NewReader(endless).Next(); !errors.Is(err, line.ErrTooLong) {
		t.Errorf("got %v", err)
	}
	if text, err := line.NewReader(forever{}).Next(); err != nil || len(text) != line.MaxText {
		t.Errorf("got %d bytes, %v", len(text), err)
	}
}

// forever never ends a line.
type forever struct{}

func (forever) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'z'
	}
	return len(p), nil
}

// FuzzParse: whatever a program prints, no line is a panic, a message has what its type promises, and lines stay within
// their bounds.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"type":"ready","v":1}`, `{"type":"result","run":1,"result":[1]}`, `{"type":"error","run":1,"kind":"failed","message":"x","retry_after_ms":-5}`,
		`{"type":"progress","run":1,"done":1,"total":2,"note":"n"}`, `{"type":"log","level":"warn","message":"m","attributes":{"a":1}}`,
		`{"type":"result","run":1,"result":NaN}`, "text\n{\"type\"", "\xff\x00", `{"TYPE":"result","RUN":1}`, `{"type":"result","run":18446744073709551616}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		r := line.NewReader(strings.NewReader(string(stream)))
		for text, err := r.Next(); err == nil; text, err = r.Next() {
			if strings.ContainsRune(string(text), '\n') || len(text) > line.MaxObject {
				t.Fatalf("%q is no line", text)
			}
			m, wrong := line.Parse(text)
			switch {
			case wrong != nil && m.Type == line.Text:
				t.Errorf("%q: a text is wrong: %v", text, wrong)
			case wrong != nil:
			case m.Type == line.Result && (m.Run == 0 || !json.Valid(m.Result)):
				t.Errorf("%q: %+v", text, m)
			case m.Type == line.Error && (m.Run == 0 || m.Fault.Kind == fault.None || m.Fault.Message == "" || m.Fault.RetryAfter != nil && *m.Fault.RetryAfter < 0):
				t.Errorf("%q: %+v", text, m)
			}
		}
	})
}
