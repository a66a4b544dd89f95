package task

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ID names a task everywhere: its queue, so that it can be found, and its key within the queue.
type ID struct {
	Queue string
	Key   string
}

// MaxKey is the longest key of a task, in bytes. Keys made here have 26; other asynq clients bring their own.
const MaxKey = 255

var (
	namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	keyEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding) //nolint:gochecknoglobals // never written
)

// CheckName reports whether name may name a queue, a plugin or a kind of task.
func CheckName(name string) error {
	if !namePattern.MatchString(name) {
		return fmt.Errorf("%q is not a name: use 1 to 64 lower case letters, digits, '.', '_' and '-', beginning with a letter or a digit", name)
	}
	return nil
}

// ContentID returns the ID of the work itself: the first 128 bits of SHA-256 over the kind and the canonical payload, so
// that the same work gets the same ID. The payload must come from Canonical.
func ContentID(queue, kind string, canonical []byte) ID {
	h := sha256.New()
	h.Write([]byte(kind))
	h.Write([]byte{0})
	h.Write(canonical)
	return ID{Queue: queue, Key: keyEncoding.EncodeToString(h.Sum(nil)[:16])}
}

// RandomID returns an ID that no other task has.
func RandomID(queue string) ID {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program instead
	return ID{Queue: queue, Key: keyEncoding.EncodeToString(b[:])}
}

// String returns "queue:key".
func (id ID) String() string { return id.Queue + ":" + id.Key }

// IsZero reports whether id names nothing.
func (id ID) IsZero() bool { return id == ID{} }

// ParseID reads "queue:key".
func ParseID(s string) (ID, error) {
	queue, key, ok := strings.Cut(s, ":")
	if !ok || key == "" {
		return ID{}, fmt.Errorf("%.80q is not a task ID: it looks like queue:key, as submit printed it", s)
	}
	if err := CheckName(queue); err != nil {
		return ID{}, fmt.Errorf("%.80q is not a task ID: its queue %w", s, err)
	}
	if len(key) > MaxKey || !utf8.ValidString(key) || strings.ContainsFunc(key, outsideKey) {
		return ID{}, fmt.Errorf("%.80q is not a task ID: its key may have at most %d bytes and no spaces, braces or control characters", s, MaxKey)
	}
	return ID{Queue: queue, Key: key}, nil
}

// outsideKey reports whether a key must not hold c: braces would move it to another slot of a Redis Cluster, and the rest
// cannot be copied from a terminal and back.
func outsideKey(c rune) bool {
	return c == '{' || c == '}' || c == utf8.RuneError || !unicode.IsPrint(c) || unicode.IsSpace(c)
}

// MarshalText implements encoding.TextMarshaler.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := ParseID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}
