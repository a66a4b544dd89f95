package line

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/drover-jobs/drover/protocol/task"
)

// Bounds of a line, in bytes. An object may hold the largest result with room for what surrounds it; of any other text only
// the beginning is kept, since it goes to a log.
const (
	MaxObject = task.MaxResult + 64<<10
	MaxText   = 8 << 10
)

// ErrTooLong says that an object is longer than MaxObject. What follows in the stream has no meaning any more.
var ErrTooLong = fmt.Errorf("a line of JSON has more than %d bytes", MaxObject)

// Reader cuts a stream into lines. It never holds more than one line, and of that no more than a bound.
type Reader struct {
	in   *bufio.Reader
	line []byte
	skip bool // the rest of the current line is dropped
}

// NewReader returns a reader of lines. It is not for several goroutines.
func NewReader(in io.Reader) *Reader { return &Reader{in: bufio.NewReaderSize(in, 64<<10)} }

// Next returns the next line without its end, valid until the next call. A text is returned as soon as MaxText bytes of it
// are here, for a program may never end it; the rest of it is dropped. At the end of the stream an unfinished line is returned
// first, then the stream's error, which is io.EOF when it ended in order.
func (r *Reader) Next() ([]byte, error) {
	r.line = r.line[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		ended := err == nil
		if errors.Is(err, bufio.ErrBufferFull) {
			err = nil
		}
		if r.skip {
			r.skip = !ended
			part = nil
		} else {
			r.line = append(r.line, part...)
		}
		switch object := isObject(r.line); {
		case err != nil:
			return r.last(err)
		case object && len(r.line) > MaxObject:
			r.skip = !ended
			return nil, ErrTooLong
		case !object && len(r.line) > MaxText:
			r.skip = !ended
			return r.line[:MaxText], nil
		case ended && part != nil:
			return bytes.TrimRight(r.line, "\r\n"), nil
		}
	}
}

// last returns what there is of an unfinished line before the error.
func (r *Reader) last(err error) ([]byte, error) {
	if len(r.line) == 0 {
		return nil, err
	}
	switch {
	case isObject(r.line) && len(r.line) > MaxObject:
		return nil, ErrTooLong
	case !isObject(r.line):
		return r.line[:min(len(r.line), MaxText)], nil
	}
	return r.line, nil
}

// isObject reports whether a line begins like a JSON object.
func isObject(line []byte) bool {
	line = bytes.TrimLeft(line, " \t\r")
	return len(line) > 0 && line[0] == '{'
}
