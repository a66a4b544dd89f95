package conform

import (
	"strings"
	"time"

	"google.golang.org/grpc/status"
)

// plain is an error of gRPC without gRPC's words.
func plain(err error) string {
	if s, ok := status.FromError(err); ok && s.Message() != "" {
		return s.Message()
	}
	return err.Error()
}

// cut bounds a text, in bytes.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + " ..."
}

// shown is a payload or result, short.
func shown(data []byte) string {
	const most = 200
	return cut(strings.ToValidUTF8(string(data), "\uFFFD"), most)
}

// rounded is a time that somebody reads.
func rounded(d time.Duration) string {
	if d < time.Second {
		return d.Round(time.Millisecond).String()
	}
	return d.Round(10 * time.Millisecond).String()
}
