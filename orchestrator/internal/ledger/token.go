package ledger

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// token says where a page ended: in which source of its list, and after which task.
type token struct {
	source int
	after  string // key of the last task that was looked at; empty at the beginning
	score  string // its score, or its place in a list
}

// String writes the token as callers carry it.
func (t token) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.Itoa(t.source) + " " + t.score + " " + t.after))
}

// maxToken bounds what is read as a token, in bytes; a key has 255 at most in Drover, but asynq allows more.
const maxToken = 4 << 10

// errToken says that a token is none.
func errToken() error {
	return invalid("page_token: it is not one that an answer had; begin with the first page again")
}

// parseToken reads a token of a list with so many sources; the beginning for an empty one.
func parseToken(s string, sources int) (token, error) {
	if s == "" {
		return token{}, nil
	}
	refused := errToken()
	if len(s) > maxToken {
		return token{}, refused
	}
	data, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return token{}, refused
	}
	const fields = 3
	parts := strings.SplitN(string(data), " ", fields)
	if len(parts) != fields {
		return token{}, refused
	}
	n, err := strconv.Atoi(parts[0])
	if err != nil || n < 0 || n >= sources {
		return token{}, refused
	}
	if _, err := strconv.ParseFloat(parts[1], 64); (err != nil || strings.Trim(parts[1], "0123456789.-+e") != "") && parts[1]+parts[2] != "" {
		return token{}, refused
	}
	return token{source: n, score: parts[1], after: parts[2]}, nil
}
