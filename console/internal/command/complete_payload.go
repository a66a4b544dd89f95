package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// completeSubmit offers queues, and behind one the fields of its payload as the schema of its plugin has them.
func completeSubmit(ctx context.Context, env *Env, words []string) []string {
	if len(words) < 2 { //nolint:mnd // the queue and a field
		return completeQueue(ctx, env, words)
	}
	fields := payloadFields(quickStatus(ctx, env), words[0])
	last, given := words[len(words)-1], words[1:len(words)-1]
	var offers []string
	for _, f := range fields {
		head := f.name + "="
		if strings.HasPrefix(last, head) {
			for _, value := range f.values {
				offers = append(offers, head+value)
			}
			continue
		}
		if !slices.ContainsFunc(given, func(w string) bool { return strings.HasPrefix(w, head) }) {
			offers = append(offers, head)
		}
	}
	return offers
}

// payloadField is a field of a payload, and its values where there are few.
type payloadField struct {
	name   string
	values []string
}

// payloadFields are the fields that the schema of a queue's plugin names; none when it cannot be read.
func payloadFields(s *apiv1.StatusResponse, queue string) []payloadField {
	var schema struct {
		Properties map[string]struct {
			Type any   `json:"type"`
			Enum []any `json:"enum"`
		} `json:"properties"`
	}
	if err := json.Unmarshal([]byte(schemaOf(s, queue)), &schema); err != nil {
		return nil
	}
	var fields []payloadField
	for name, p := range schema.Properties {
		if strings.ContainsAny(name, ".= ") {
			continue // such a name has to be quoted by somebody who knows how
		}
		f := payloadField{name: name}
		for _, v := range p.Enum {
			f.values = append(f.values, fmt.Sprint(v))
		}
		if p.Type == "boolean" && len(p.Enum) == 0 {
			f.values = []string{"true", "false"}
		}
		fields = append(fields, f)
	}
	return fields
}

// schemaOf is the schema of a queue's plugin; empty when there is none.
func schemaOf(s *apiv1.StatusResponse, queue string) string {
	for _, q := range s.GetQueues() {
		if q.GetName() != queue {
			continue
		}
		for _, p := range s.GetPlugins() {
			if p.GetName() == q.GetPlugin() {
				return p.GetPayloadSchema()
			}
		}
	}
	return ""
}
