package lock

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/drover-jobs/drover/protocol/task"
)

// maxKeyText bounds what is kept of a key for people, in bytes.
const maxKeyText = 200

// Key names a lock: the kind of a task and the values of the payload fields that its plugin named. The zero Key is no lock.
type Key struct {
	hash string // 64 characters; what the stores use, so that any value fits
	text string
}

// NewKey returns the key of a task: of its kind and those of the fields that its payload has, in a canonical form, so that
// the order of fields and the way values are written make no difference. The queue takes no part. A field that is missing or
// null takes none either; with no field left there is no lock, and the Key is zero. The error says why the payload cannot be read.
func NewKey(kind string, fields []string, payload []byte) (Key, error) {
	if len(fields) == 0 {
		return Key{}, nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(payload, &all); err != nil {
		return Key{}, fmt.Errorf("read the lock key from the payload: %w", err)
	}
	parts := make(map[string]json.RawMessage, len(fields))
	for _, name := range fields {
		if value, ok := all[name]; ok && string(value) != "null" {
			parts[name] = value
		}
	}
	if len(parts) == 0 {
		return Key{}, nil
	}
	joined, err := json.Marshal(parts)
	if err != nil {
		return Key{}, fmt.Errorf("read the lock key from the payload: %w", err)
	}
	canonical, err := task.Canonical(joined)
	if err != nil {
		return Key{}, fmt.Errorf("read the lock key from the payload: %w", err)
	}
	return keyOf(kind + " " + string(canonical)), nil
}

// keyOf returns the key of a text. A kind has no space in it, so kind and values cannot run into each other.
func keyOf(text string) Key {
	sum := sha256.Sum256([]byte(text))
	if len(text) > maxKeyText {
		end := maxKeyText
		for end > 0 && !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end] + " ..."
	}
	return Key{hash: hex.EncodeToString(sum[:]), text: text}
}

// IsZero reports whether k is no lock.
func (k Key) IsZero() bool { return k.hash == "" }

// String returns the key as people read it, such as `feed-pull {"url":"https://example.org/feed"}`, cut to about 200 bytes.
func (k Key) String() string { return k.text }
