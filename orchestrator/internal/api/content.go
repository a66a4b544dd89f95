package api

import (
	"io"
	"mime"
	"net/http"
	"strings"
)

// wrongContent is how much of the body of a call in an unknown form is read before the answer: who sends it waits for the
// end of it, and a client of HTTP/2 takes a body that is left unread for a broken stream.
const wrongContent = 64 << 10

// spoken answers calls in a form that nobody here reads, such as what curl sends when it is not told otherwise, with words; connect
// would with an empty body.
func spoken(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || readable(r.Header.Get("Content-Type")) {
			next.ServeHTTP(w, r)
			return
		}
		_, _ = io.CopyN(io.Discard, r.Body, wrongContent) // an error is the end of it
		http.Error(w, "the body is in a form that is not known here: send JSON, with the header Content-Type: application/json", http.StatusUnsupportedMediaType)
	})
}

// readable reports whether a content type is one of the protocols that connect serves.
func readable(header string) bool {
	form, _, err := mime.ParseMediaType(header)
	if err != nil {
		return false
	}
	return form == "application/json" || form == "application/proto" ||
		strings.HasPrefix(form, "application/connect+") || strings.HasPrefix(form, "application/grpc")
}
