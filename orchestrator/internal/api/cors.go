package api

import (
	"net/http"
	"time"

	connectcors "connectrpc.com/cors"
	"github.com/rs/cors"
)

// preflightKept is how long a browser believes what it was told of an origin.
const preflightKept = time.Hour

// shared lets the pages of some origins call the API from a browser. Without any, browsers keep all pages but those of the API's
// own origin from it.
func shared(origins []string, next http.Handler) http.Handler {
	if len(origins) == 0 {
		return next
	}
	return cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: connectcors.AllowedMethods(),
		AllowedHeaders: append(connectcors.AllowedHeaders(), "Authorization", "Last-Event-ID"),
		ExposedHeaders: append(connectcors.ExposedHeaders(), "Retry-After"),
		MaxAge:         int(preflightKept / time.Second),
	}).Handler(next)
}
