package embedded

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"
)

// A snapshot file is a header of 64 bytes and a body.
//
//	0   8  magic
//	8   4  format version, big endian
//	12  4  reserved, 0
//	16  8  written at, milliseconds since 1970
//	24  8  length of the body
//	32 32  SHA-256 of bytes 0-31 and the body
//
// The body is a row of records, one for each key:
//
//	kind (1 byte), database, key, expires at (milliseconds since 1970, 0 = never), content
//
// where a number is a uvarint and a text is its length and its bytes. A string
// is one text; a list and a set are a count and texts; a hash is a count and
// field, value, expiry of the field; a sorted set is a count and member, eight
// bytes of IEEE 754 score; a stream is a count and ID, list of texts.
const (
	magic         = "DROVERSN"
	formatVersion = 1
	headerSize    = 64
)

type kind byte

const (
	kindString kind = 's'
	kindHash   kind = 'h'
	kindList   kind = 'l'
	kindSet    kind = 'e'
	kindZSet   kind = 'z'
	kindStream kind = 'x'
)

// errNewerFormat is no damage: the file is good and must not be set aside.
var errNewerFormat = errors.New("written by a newer Drover; start that version, or move the file away to begin empty")

// errDamaged is wrapped by everything the decoder finds wrong.
var errDamaged = errors.New("damaged snapshot")

// record is one key. Which of the fields are used depends on the kind.
type record struct {
	kind     kind
	db       int
	key      string
	expireAt int64    // milliseconds since 1970, 0 = never
	texts    []string // string: 1; list, set: items; hash: field, value, ...; zset: members
	numbers  []int64  // hash: expiry of each field
	scores   []float64
	entries  []entry // stream
}

type entry struct {
	id     string
	values []string
}

func appendText[T string | []byte](b []byte, s T) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	return append(b, s...)
}

func appendKey(b []byte, k kind, db int, key []byte, expireAt int64) []byte {
	b = append(b, byte(k))
	b = binary.AppendUvarint(b, uint64(db))
	b = appendText(b, key)
	return binary.AppendUvarint(b, uint64(max(expireAt, 0)))
}

// fingerprint identifies a content regardless of when it was written.
func fingerprint(body []byte) [32]byte { return sha256.Sum256(body) }

// header builds the first bytes of a file with this body.
func header(body []byte, at time.Time) []byte {
	h := make([]byte, headerSize)
	copy(h, magic)
	binary.BigEndian.PutUint32(h[8:], formatVersion)
	binary.BigEndian.PutUint64(h[16:], uint64(at.UnixMilli()))
	binary.BigEndian.PutUint64(h[24:], uint64(len(body)))
	sum := checksum(h, body)
	copy(h[32:], sum[:])
	return h
}

func checksum(head, body []byte) (sum [32]byte) {
	d := sha256.New()
	d.Write(head[:32])
	d.Write(body)
	d.Sum(sum[:0])
	return sum
}

// openFile checks the header and returns the body and when it was written.
func openFile(raw []byte) (body []byte, at time.Time, err error) {
	if len(raw) < headerSize {
		return nil, at, fmt.Errorf("%w: %d bytes are too few for a header", errDamaged, len(raw))
	}
	if string(raw[:8]) != magic {
		return nil, at, fmt.Errorf("%w: it does not begin with %q", errDamaged, magic)
	}
	head, body := raw[:headerSize], raw[headerSize:]
	// The version comes before the checksum: a newer format may have another.
	if v := binary.BigEndian.Uint32(head[8:]); v > formatVersion {
		return nil, at, fmt.Errorf("format %d, this program reads up to %d: %w", v, formatVersion, errNewerFormat)
	}
	if want := binary.BigEndian.Uint64(head[24:]); want != uint64(len(body)) {
		return nil, at, fmt.Errorf("%w: %d bytes of content, %d expected", errDamaged, len(body), want)
	}
	if sum := checksum(head, body); !bytes.Equal(sum[:], head[32:]) {
		return nil, at, fmt.Errorf("%w: the checksum does not match", errDamaged)
	}
	return body, time.UnixMilli(int64(binary.BigEndian.Uint64(head[16:]))), nil
}

// decoder reads a body. Every length is checked against the bytes that are
// left before anything is allocated; after the first error all reads are empty.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) fail(what string) {
	if d.err == nil {
		d.err = fmt.Errorf("%w: %s", errDamaged, what)
	}
	d.rest = nil
}

func (d *decoder) number() uint64 {
	n, w := binary.Uvarint(d.rest)
	if w <= 0 {
		d.fail("a number is cut off")
		return 0
	}
	d.rest = d.rest[w:]
	return n
}

func (d *decoder) millis() int64 {
	n := d.number()
	if n > math.MaxInt64 {
		d.fail("a time is out of range")
		return 0
	}
	return int64(n)
}

func (d *decoder) text() string {
	n := d.number()
	if n > uint64(len(d.rest)) {
		d.fail("a text is cut off")
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}

// count reads how many items follow, each of at least size bytes.
func (d *decoder) count(size int) int {
	n := d.number()
	if n > uint64(len(d.rest)/size) {
		d.fail("more items announced than there are bytes")
		return 0
	}
	return int(n)
}

func (d *decoder) texts(n int) []string {
	out := make([]string, 0, n)
	for range n {
		out = append(out, d.text())
	}
	return out
}

func (d *decoder) score() float64 {
	if len(d.rest) < 8 {
		d.fail("a score is cut off")
		return 0
	}
	f := math.Float64frombits(binary.BigEndian.Uint64(d.rest))
	d.rest = d.rest[8:]
	if math.IsNaN(f) {
		d.fail("a score is not a number")
	}
	return f
}

// next returns one record, or false at the end or at an error.
func (d *decoder) next() (record, bool) {
	if d.err != nil || len(d.rest) == 0 {
		return record{}, false
	}
	r := record{kind: kind(d.rest[0])}
	d.rest = d.rest[1:]
	db := d.number()
	if db >= databases {
		d.fail("a database number is out of range")
	}
	r.db, r.key, r.expireAt = int(db), d.text(), d.millis()
	switch r.kind {
	case kindString:
		r.texts = d.texts(1)
	case kindList, kindSet:
		r.texts = d.texts(d.count(1))
	case kindHash:
		for range d.count(3) {
			r.texts = append(r.texts, d.text(), d.text())
			r.numbers = append(r.numbers, d.millis())
		}
	case kindZSet:
		for range d.count(9) {
			r.texts = append(r.texts, d.text())
			r.scores = append(r.scores, d.score())
		}
	case kindStream:
		for range d.count(2) {
			r.entries = append(r.entries, entry{id: d.text(), values: d.texts(d.count(1))})
		}
	default:
		d.fail("an unknown kind of key")
	}
	return r, d.err == nil
}
