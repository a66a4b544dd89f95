package fetch_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/drover-jobs/drover/plugins/internal/fetch"
	"github.com/drover-jobs/drover/protocol/fault"
)

func pack(t testing.TB, name string, data []byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	var w io.WriteCloser
	var err error
	switch name {
	case "gzip":
		w = gzip.NewWriter(&buf)
	case "zlib":
		w = zlib.NewWriter(&buf)
	case "flate":
		w, err = flate.NewWriter(&buf, 6)
	case "br":
		w = brotli.NewWriter(&buf)
	case "zstd":
		w, err = zstd.NewWriter(&buf)
	default:
		return data
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// Whatever the header says, the body comes out as it was before compression, and a lie is told as a warning.
func TestCompression(t *testing.T) {
	t.Parallel()
	text := []byte(strings.Repeat("<rss>some text</rss>\n", 200))
	gz := pack(t, "gzip", text)
	for name, c := range map[string]struct {
		header  string
		body    []byte
		warning string
		damaged bool
	}{
		"none":            {"", text, "", false},
		"gzip":            {"gzip", gz, "", false},
		"x-gzip":          {"x-gzip", gz, "", false},
		"gzip undeclared": {"", gz, "", false},
		"gzip twice":      {"gzip, gzip", pack(t, "gzip", gz), "", false},
		"gzip, tail":      {"gzip", append(bytes.Clone(gz), "rubbish"...), "", false},
		"says gzip":       {"gzip", text, "says gzip", false},
		"says br":         {"br", text, "says br", false},
		"says deflate":    {"deflate", text, "says deflate", false},
		"zlib":            {"deflate", pack(t, "zlib", text), "", false},
		"zlib undeclared": {"", pack(t, "zlib", text), "", false},
		"raw deflate":     {"deflate", pack(t, "flate", text), "", false},
		"br":              {"br", pack(t, "br", text), "", false},
		"zstd":            {"zstd", pack(t, "zstd", text), "", false},
		"zstd as gzip":    {"gzip", pack(t, "zstd", text), "says gzip", false},
		"cut":             {"gzip", gz[:len(gz)-6], "damaged", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, base := serve(t, fetch.Config{}, func(w http.ResponseWriter, _ *http.Request) {
				if c.header != "" {
					w.Header().Set("Content-Encoding", c.header)
				}
				_, _ = w.Write(c.body)
			})
			resp, err := client.Get(t.Context(), fetch.Request{URL: base})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(resp.Body, text) {
				t.Errorf("body has %d bytes, want %d", len(resp.Body), len(text))
			}
			warnings := strings.Join(resp.Warnings, "; ")
			if !strings.Contains(warnings, c.warning) || (c.warning == "") != (warnings == "") || resp.Damaged != c.damaged {
				t.Errorf("warnings %q, damaged %v", warnings, resp.Damaged)
			}
		})
	}
}

// A body over the limit is refused, on the wire and after decompression, however small the bomb is.
func TestLimits(t *testing.T) {
	t.Parallel()
	zeros := make([]byte, 8<<20)
	for name, c := range map[string]struct {
		header string
		body   []byte
	}{
		"plain": {"", zeros[:200<<10]}, "gzip bomb": {"gzip", pack(t, "gzip", zeros)}, "br bomb": {"br", pack(t, "br", zeros)},
		"zstd bomb": {"zstd", pack(t, "zstd", zeros)}, "deflate bomb": {"deflate", pack(t, "zlib", zeros)},
		"nested": {"gzip", pack(t, "gzip", pack(t, "gzip", zeros))},
	} {
		for _, chunked := range []bool{false, true} {
			client, base := serve(t, fetch.Config{MaxWire: 100 << 10, MaxBody: 100 << 10}, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", c.header)
				if chunked {
					w.(http.Flusher).Flush()
				}
				_, _ = w.Write(c.body)
			})
			_, err := client.Get(t.Context(), fetch.Request{URL: base})
			wantFault(t, err, fault.TooLarge, "max_bytes")
			if t.Failed() {
				t.Fatalf("in %s, chunked %v", name, chunked)
			}
		}
	}
}

// Rubbish that claims to be compressed is unreadable, not empty.
func TestRubbish(t *testing.T) {
	t.Parallel()
	client, base := serve(t, fetch.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "br")
		_, _ = w.Write([]byte{0x1f, 0x8b, 0x08, 0xff, 0xff})
	})
	_, err := client.Get(t.Context(), fetch.Request{URL: base})
	wantFault(t, err, fault.Unreadable, "gzip")
}
