package embedded

import (
	"bufio"
	"bytes"
	"fmt"
	"time"
)

// Snapshot takes a snapshot of a running broker and returns its body.
func (b *Broker) Snapshot() (body []byte, held time.Duration, err error) {
	body, _, held, err = b.take()
	return body, held, err
}

// File wraps a body into a whole snapshot file.
func File(body []byte, at time.Time) []byte { return append(header(body, at), body...) }

// Lists returns the length of every list and set of a body.
func Lists(body []byte) (map[string]int, error) {
	out := map[string]int{}
	d := decoder{rest: body}
	for r, ok := d.next(); ok; r, ok = d.next() {
		out[r.key] = len(r.texts)
	}
	return out, d.err
}

// Load does with the bytes of a file what the start of a broker does.
func Load(raw []byte, now time.Time) (keys int, err error) {
	body, _, err := openFile(raw)
	if err != nil {
		return 0, fmt.Errorf("opening: %w", err)
	}
	return LoadBody(body, now)
}

// LoadBody is Load without header and checksum.
func LoadBody(body []byte, now time.Time) (keys int, err error) {
	r, err := restore(body, now)
	return r.keys, err
}

// ErrDamaged and ErrNewerFormat are the two ways in which a file is not used.
func ErrDamaged() error     { return errDamaged }
func ErrNewerFormat() error { return errNewerFormat }

// Age is the decision of the clock.
func Age(mono, wall time.Duration) (time.Duration, bool) { return age(mono, wall) }

// FormatVersion is the newest format this program reads.
const FormatVersion = formatVersion

// Admitted reads commands as a stranger's connection does, until an error, and
// says whether one of them showed the password.
func Admitted(sent []byte, password string) bool {
	in := bufio.NewReaderSize(bytes.NewReader(sent), admitBytes+2)
	for {
		var seen bytes.Buffer
		args, err := readCommand(in, &seen)
		if err != nil {
			return false
		}
		if secret, tried := credentials(args); tried && sameSecret(secret, password) {
			return true
		}
	}
}
