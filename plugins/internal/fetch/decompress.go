package fetch

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/drover-jobs/drover/protocol/fault"
)

// layers is how many compressions inside each other are taken off; some servers compress twice.
const layers = 3

const zstdWindow = 8 << 20 // RFC 9659: what a browser accepts

type plain struct {
	body     []byte
	warnings []string
	damaged  bool
	err      error
}

// decompress takes off what is really there. Headers lie, so magic bytes come first; the header decides only about deflate
// and br, which have none.
func decompress(wire []byte, encodings []string, limit int64) plain {
	out := plain{body: wire}
	declared := declaredCodings(encodings)
	for range layers {
		name := codingOf(out.body, declared)
		if name == "" {
			break
		}
		declared = slices.DeleteFunc(declared, func(d string) bool { return d == name })
		body, err := inflate(name, out.body, limit)
		switch {
		case errors.Is(err, errTooLarge):
			return plain{err: fmt.Errorf("%w: the %s body grows over %d bytes (limit max_bytes)", errTooLarge, name, limit)}
		case err == nil:
			out.body = body
		case (name == "br" || name == "deflate") && looksLikeText(out.body):
			out.warnings = append(out.warnings, fmt.Sprintf("the server says %s, but the body is plain text", name))
		case len(body) > 0:
			out.warnings = append(out.warnings, fmt.Sprintf("the %s body is damaged (%v); the %d bytes before the damage were kept", name, err, len(body)))
			out.body, out.damaged = body, true
		default:
			return plain{err: fault.New(fault.Unreadable, "the %s body cannot be decompressed: %v", name, err)}
		}
	}
	if int64(len(out.body)) > limit {
		return plain{err: fmt.Errorf("%w: the body has %d bytes, the limit max_bytes is %d", errTooLarge, len(out.body), limit)}
	}
	if len(declared) > 0 && len(out.warnings) == 0 && len(out.body) > 0 {
		out.warnings = append(out.warnings, fmt.Sprintf("the server says %s, but the body is not compressed so", strings.Join(declared, ", ")))
	}
	return out
}

// declaredCodings lists what Content-Encoding names, outermost first.
func declaredCodings(values []string) []string {
	var names []string
	for name := range strings.SplitSeq(strings.Join(values, ","), ",") {
		switch name = strings.ToLower(strings.TrimSpace(name)); name {
		case "", "identity", "none", "utf-8":
		case "x-gzip":
			names = append(names, "gzip")
		default:
			names = append(names, name)
		}
	}
	slices.Reverse(names)
	return names
}

func codingOf(body []byte, declared []string) string {
	switch {
	case bytes.HasPrefix(body, []byte{0x1f, 0x8b, 0x08}):
		return "gzip"
	case bytes.HasPrefix(body, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return "zstd"
	case isZlib(body) && !looksLikeText(body):
		return "deflate"
	case len(body) == 0:
		return ""
	}
	for _, name := range declared {
		if name == "deflate" || name == "br" {
			return name
		}
	}
	return ""
}

// isZlib tests the two header bytes of RFC 1950.
func isZlib(body []byte) bool {
	return len(body) > 2 && body[0]&0x0f == 8 && body[0]>>4 <= 7 && (uint(body[0])<<8|uint(body[1]))%31 == 0
}

// looksLikeText is true when the first bytes hold nothing that a compressed stream would.
func looksLikeText(body []byte) bool {
	head := bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	head = head[:min(len(head), 64)]
	return !slices.ContainsFunc(head, func(b byte) bool {
		return b < 0x20 && b != '\t' && b != '\n' && b != '\r' && b != '\f'
	})
}

// inflate returns what could be read, also beside an error.
func inflate(name string, body []byte, limit int64) ([]byte, error) {
	switch name {
	case "gzip":
		return gunzip(body, limit)
	case "zstd":
		r, err := zstd.NewReader(bytes.NewReader(body), zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		return readLimited(r, limit)
	case "br":
		return readLimited(brotli.NewReader(bytes.NewReader(body)), limit)
	}
	if isZlib(body) {
		r, err := zlib.NewReader(bytes.NewReader(body))
		if err == nil {
			return readLimited(r, limit)
		}
	}
	return readLimited(flate.NewReader(bytes.NewReader(body)), limit)
}

// gunzip reads member by member, so that rubbish behind a complete one costs nothing.
func gunzip(body []byte, limit int64) ([]byte, error) {
	source := bytes.NewReader(body)
	r, err := gzip.NewReader(source)
	if err != nil {
		return nil, err
	}
	var out []byte
	for {
		r.Multistream(false)
		part, err := readLimited(r, limit-int64(len(out)))
		if errors.Is(err, errTooLarge) {
			return nil, err
		}
		out = append(out, part...)
		if err != nil || r.Reset(source) != nil {
			return out, err
		}
	}
}

func readLimited(r io.Reader, limit int64) ([]byte, error) {
	out, err := io.ReadAll(io.LimitReader(r, limit+1))
	if int64(len(out)) > limit {
		return nil, errTooLarge
	}
	return out, err
}
