package embedded

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
)

// kinds is the order in which the keys of a database are written, with the
// name that SCAN has for each. Together with the sorted replies of miniredis it
// makes the same content always the same bytes.
func kinds() [6]struct {
	kind kind
	name string
} {
	return [6]struct {
		kind kind
		name string
	}{
		{kindString, "string"}, {kindHash, "hash"}, {kindList, "list"},
		{kindSet, "set"}, {kindZSet, "zset"}, {kindStream, "stream"},
	}
}

// walk encodes the content as a snapshot body. It runs under the server's lock,
// so it does nothing but read and append.
type walk struct {
	in       *inside
	wall     int64 // milliseconds since 1970 to which times to live are relative
	volatile func(key []byte) bool
	// fieldsExpire is false as long as no field of a hash can have a time to
	// live, which spares a question for each hash.
	fieldsExpire *atomic.Bool
	body         []byte
}

func (w *walk) all() error {
	for db := range databases {
		w.in.call("SELECT", strconv.Itoa(db))
		size := w.in.call("DBSIZE")
		if size.integer() == 0 {
			continue
		}
		for _, k := range kinds() {
			for _, key := range w.scan(k.name) {
				w.key(k.kind, db, key)
			}
			if w.in.err != nil {
				return fmt.Errorf("embedded broker: reading the %s keys of database %d: %w", k.name, db, w.in.err)
			}
		}
	}
	return nil
}

// scan returns the keys of one type. One SCAN returns all of them: miniredis
// has no cursors.
func (w *walk) scan(kind string) []string {
	r := w.in.call("SCAN", "0", "TYPE", kind)
	r.length()
	r.text()
	n := r.length()
	keys := make([]string, 0, n)
	for range n {
		if key := r.text(); !w.volatile(key) {
			keys = append(keys, string(key))
		}
	}
	return keys
}

// key appends the record of one key. A key without content is left out: Redis
// has no such thing.
func (w *walk) key(k kind, db int, key string) {
	begin := len(w.body)
	w.body = appendKey(w.body, k, db, []byte(key), w.end("PTTL", key))
	items := 1
	switch k {
	case kindString:
		r := w.in.call("GET", key)
		w.body = appendText(w.body, r.text())
	case kindHash:
		items = w.hash(key)
	case kindList:
		items = w.texts("LRANGE", key, "0", "-1")
	case kindSet:
		items = w.texts("SMEMBERS", key)
	case kindZSet:
		items = w.zset(key)
	case kindStream:
		items = w.stream(key)
	}
	if items == 0 {
		w.body = w.body[:begin]
	}
}

// end returns when a key ends, 0 for never.
func (w *walk) end(command, key string) int64 {
	r := w.in.call(command, key)
	ttl := r.integer()
	if ttl < 0 {
		return 0
	}
	return w.wall + int64(ttl)
}

func (w *walk) texts(args ...string) int {
	r := w.in.call(args...)
	n := r.length()
	w.body = binary.AppendUvarint(w.body, uint64(n))
	for range n {
		w.body = appendText(w.body, r.text())
	}
	return n
}

func (w *walk) hash(key string) int {
	r := w.in.call("HGETALL", key)
	n := r.length() / 2
	fields := make([]string, 0, n)
	values := make([]string, 0, n)
	for range n {
		fields = append(fields, string(r.text()))
		values = append(values, string(r.text()))
	}
	if n == 0 {
		return 0
	}
	ask := w.fieldsExpire.Load()
	var ttl reply
	if ask {
		ttl = w.in.call(append([]string{"HPTTL", key, "FIELDS", strconv.Itoa(n)}, fields...)...)
		ttl.length()
	}
	w.body = binary.AppendUvarint(w.body, uint64(n))
	for i := range n {
		w.body = appendText(w.body, fields[i])
		w.body = appendText(w.body, values[i])
		var end int64
		if ask {
			if left := ttl.integer(); left >= 0 {
				end = w.wall + int64(left)
			}
		}
		w.body = binary.AppendUvarint(w.body, uint64(end))
	}
	return n
}

func (w *walk) zset(key string) int {
	r := w.in.call("ZRANGE", key, "0", "-1", "WITHSCORES")
	n := r.length() / 2
	w.body = binary.AppendUvarint(w.body, uint64(n))
	for range n {
		w.body = appendText(w.body, r.text())
		score, err := strconv.ParseFloat(string(r.text()), 64)
		if err != nil && w.in.err == nil {
			w.in.err = err
		}
		w.body = binary.BigEndian.AppendUint64(w.body, math.Float64bits(score))
	}
	return n
}

func (w *walk) stream(key string) int {
	r := w.in.call("XRANGE", key, "-", "+")
	n := r.length()
	w.body = binary.AppendUvarint(w.body, uint64(n))
	for range n {
		r.length()
		w.body = appendText(w.body, r.text())
		values := r.length()
		w.body = binary.AppendUvarint(w.body, uint64(values))
		for range values {
			w.body = appendText(w.body, r.text())
		}
	}
	return n
}
