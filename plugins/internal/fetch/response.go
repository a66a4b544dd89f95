package fetch

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Response is one complete answer.
type Response struct {
	// URL is the address that answered, after all redirects.
	URL string
	// Status is the HTTP status code.
	Status int
	Header http.Header
	// Body is the decompressed body. Of an error page at most the first 64 KiB are kept.
	Body []byte
	// Wire is the number of body bytes that came.
	Wire int64
	// Hops are the redirects that led here.
	Hops []Hop
	// Warnings say what was odd but could be dealt with.
	Warnings []string
	// Damaged is true when the compressed body broke off and Body holds only what could be saved.
	Damaged bool
	// Elapsed is the time from the first request to the last byte.
	Elapsed time.Duration
}

// NotModified is true for a 304.
func (r *Response) NotModified() bool { return r.Status == http.StatusNotModified }

// ETag returns the validator exactly as it came.
func (r *Response) ETag() string { return r.Header.Get("ETag") }

// LastModified returns the validator exactly as it came.
func (r *Response) LastModified() string { return r.Header.Get("Last-Modified") }

// Moved returns the address that answered when there was a redirect and every hop was a permanent one, and "" otherwise.
func (r *Response) Moved() string {
	if len(r.Hops) == 0 {
		return ""
	}
	for _, hop := range r.Hops {
		if !hop.Permanent() {
			return ""
		}
	}
	return r.URL
}

// read takes the body off the wire and decompresses it.
func (c *Client) read(answer *http.Response, body io.ReadCloser, target *url.URL) (*Response, error) {
	defer body.Close()
	resp := &Response{URL: target.String(), Status: answer.StatusCode, Header: answer.Header}
	maxWire, maxBody := c.cfg.MaxWire, c.cfg.MaxBody
	failed := answer.StatusCode < 200 || answer.StatusCode > 299
	if failed {
		maxWire, maxBody = min(maxWire, errorBodyBytes), min(maxBody, errorBodyBytes)
	}
	if !failed && answer.ContentLength > maxWire {
		return nil, fmt.Errorf("%w: the server announces %d bytes, the limit max_bytes is %d", errTooLarge, answer.ContentLength, maxWire)
	}
	wire, err := io.ReadAll(io.LimitReader(body, maxWire+1))
	resp.Wire = int64(len(wire))
	switch {
	case err != nil && failed:
		// The status alone says enough.
	case err != nil && errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("the connection broke after %d bytes: %w", len(wire), err)
	case err != nil:
		return nil, err
	case resp.Wire > maxWire && !failed:
		return nil, fmt.Errorf("%w: more than %d bytes came (limit max_bytes)", errTooLarge, maxWire)
	}
	plain := decompress(wire, answer.Header.Values("Content-Encoding"), maxBody)
	resp.Body, resp.Warnings, resp.Damaged = plain.body, plain.warnings, plain.damaged
	if plain.err != nil && !failed {
		return nil, plain.err
	}
	return resp, nil
}
