package client

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// EncodePayload returns a payload as JSON. Transports call it. Whether it is one object that fits the queue's schema is
// checked later.
func EncodePayload(payload any) ([]byte, error) {
	if raw, ok := payload.(json.RawMessage); ok {
		return raw, nil
	}
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false) // escapes would count against the bound of its size
	if err := enc.Encode(payload); err != nil {
		return nil, fmt.Errorf("the payload cannot be written as JSON: %w", err)
	}
	return bytes.TrimSuffix(data.Bytes(), []byte("\n")), nil
}
