package sdk

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"
)

// logHandler sends slog's records to the manager. The JSON of the attributes is slog's own: an inner JSONHandler writes it
// into a buffer that all handlers derived from one share.
type logHandler struct {
	out    *outbox
	run    uint64
	inner  slog.Handler
	buffer *lineBuffer
}

type lineBuffer struct {
	mu   sync.Mutex
	line bytes.Buffer
}

func (b *lineBuffer) Write(p []byte) (int, error) { return b.line.Write(p) }

var _ slog.Handler = (*logHandler)(nil)

func newLogHandler(out *outbox, run uint64) *logHandler {
	buffer := &lineBuffer{}
	inner := slog.NewJSONHandler(buffer, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: withoutHead})
	return &logHandler{out: out, run: run, inner: inner, buffer: buffer}
}

// withoutHead drops the level and the message, which travel in fields of their own. Handle writes the message as "", so
// that an author's own attribute of that name stays.
func withoutHead(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	_, isLevel := a.Value.Any().(slog.Level)
	if a.Key == slog.LevelKey && isLevel || a.Key == slog.MessageKey && a.Value.Equal(slog.StringValue("")) {
		return slog.Attr{}
	}
	return a
}

// Enabled lets everything from debug on through: the manager decides what it keeps.
func (h *logHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= slog.LevelDebug
}

// Handle implements slog.Handler. It never fails and never blocks.
func (h *logHandler) Handle(ctx context.Context, record slog.Record) error {
	line := slog.NewRecord(time.Time{}, record.Level, "", 0)
	record.Attrs(func(a slog.Attr) bool {
		line.AddAttrs(a)
		return true
	})
	h.out.log(logReport(h.run, int32(record.Level), record.Message, h.attributes(ctx, line))) //nolint:gosec // slog's levels are small
	return nil
}

func (h *logHandler) attributes(ctx context.Context, line slog.Record) []byte {
	h.buffer.mu.Lock()
	defer h.buffer.mu.Unlock()
	h.buffer.line.Reset()
	if err := h.inner.Handle(ctx, line); err != nil {
		return nil
	}
	text := bytes.TrimSpace(h.buffer.line.Bytes())
	switch {
	case len(text) <= len("{}"):
		return nil
	case len(text) > maxLine:
		return []byte(`{"attributes":"left out: too long"}`)
	}
	return bytes.Clone(text)
}

// WithAttrs implements slog.Handler.
func (h *logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.inner = h.inner.WithAttrs(attrs)
	return &c
}

// WithGroup implements slog.Handler.
func (h *logHandler) WithGroup(name string) slog.Handler {
	c := *h
	c.inner = h.inner.WithGroup(name)
	return &c
}
