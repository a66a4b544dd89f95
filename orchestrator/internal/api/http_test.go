package api_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/protocol/client"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
	"github.com/drover-jobs/drover/protocol/drover/api/v1/apiv1connect"
	"github.com/drover-jobs/drover/protocol/task"
)

func payload(json string) string { return base64.StdEncoding.EncodeToString([]byte(json)) }

// Every call of a task's life works with nothing but HTTP/1.1 and JSON.
func TestPlainJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serve(t, w.server(0))
	c := plain(t, w.socket)

	code, answer := post(t, c, apiv1connect.TaskServiceSubmitProcedure, `{"queue":"misbehave","payload":"`+payload(`{"do":"return","value":7}`)+`"}`)
	var submitted struct{ ID, State string }
	if err := json.Unmarshal([]byte(answer), &submitted); err != nil || code != http.StatusOK || submitted.State != "STATE_WAITING" {
		t.Fatalf("submit gave %d %s (%v), want 200 and a waiting task", code, answer, err)
	}
	code, answer = post(t, c, apiv1connect.TaskServiceWaitProcedure, `{"id":"`+submitted.ID+`","timeoutMs":"10000"}`)
	if code != http.StatusOK || !strings.Contains(answer, `"ended":true`) || !strings.Contains(answer, payload("7")) {
		t.Errorf("wait gave %d %s, want the result", code, answer)
	}
	code, answer = post(t, c, apiv1connect.TaskServiceGetProcedure, `{"id":"`+submitted.ID+`"}`)
	if code != http.StatusOK || !strings.Contains(answer, "STATE_COMPLETED") {
		t.Errorf("get gave %d %s, want a completed task", code, answer)
	}
	code, answer = post(t, c, apiv1connect.TaskServiceSubmitProcedure, `{"queue":"misbehave","delay_ms":3600000,"payload":"`+payload(`{"do":"return","value":8}`)+`"}`)
	if err := json.Unmarshal([]byte(answer), &submitted); err != nil || code != http.StatusOK {
		t.Fatalf("submit gave %d %s (%v)", code, answer, err)
	}
	code, answer = post(t, c, apiv1connect.TaskServiceWaitProcedure, `{"id":"`+submitted.ID+`","timeoutMs":"50"}`)
	if code != http.StatusOK || strings.Contains(answer, `"ended"`) || !strings.Contains(answer, "STATE_WAITING") {
		t.Errorf("a wait that ran out gave %d %s, want the waiting task", code, answer)
	}
	code, answer = post(t, c, apiv1connect.TaskServiceCancelProcedure, `{"id":"`+submitted.ID+`"}`)
	if code != http.StatusOK || !strings.Contains(answer, "STATE_CANCELLED") {
		t.Errorf("cancel gave %d %s", code, answer)
	}
	code, answer = post(t, c, apiv1connect.ControlServiceStatusProcedure, `{}`)
	if code != http.StatusOK || !strings.Contains(answer, `"running"`) {
		t.Errorf("status gave %d %s", code, answer)
	}
}

// The description of the API is served where the API is.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serve(t, w.server(0))
	for _, socket := range []string{w.socket, w.plugin} {
		answer, err := plain(t, socket).Get("http://drover/openapi.json")
		if err != nil {
			t.Fatal(err)
		}
		var document struct{ OpenAPI string }
		err = json.NewDecoder(answer.Body).Decode(&document)
		_ = answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || document.OpenAPI != "3.1.0" {
			t.Errorf("the answer is %s, %+v, %v", answer.Status, document, err)
		}
	}
}

// A call without a content type, as curl makes it, is told what to send, over HTTP/1.1 and over HTTP/2.
func TestUnknownContentType(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	address, roots := remote(t, w, io.Discard)
	for _, two := range []bool{false, true} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: two}
		t.Cleanup(transport.CloseIdleConnections)
		for _, form := range []string{"", "application/x-www-form-urlencoded", "text/json"} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+apiv1connect.TaskServiceSubmitProcedure, strings.NewReader(`{"queue":"misbehave"}`))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer "+secretOf(api.RoleSubmit))
			if form != "" {
				request.Header.Set("Content-Type", form)
			}
			answer, err := transport.RoundTrip(request)
			if err != nil {
				t.Fatalf("HTTP/2 %t, %q: %v", two, form, err)
			}
			text, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err != nil || answer.StatusCode != http.StatusUnsupportedMediaType || !strings.Contains(string(text), "application/json") || (answer.ProtoMajor == 2) != two {
				t.Errorf("HTTP/2 %t, %q: %s, %q, %v", two, form, answer.Status, text, err)
			}
		}
	}
}

// What is wrong with a request is told with a code that fits and words that name the field.
func TestWrongRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serve(t, w.server(0))
	c := plain(t, w.socket)
	ids := `"` + strings.Repeat(`misbehave:x","`, api.MaxIDs) + `misbehave:x"`
	tests := []struct {
		procedure, body, code, names string
	}{
		{apiv1connect.TaskServiceSubmitProcedure, `{"queue":"none","payload":"e30="}`, "not_found", "none"},
		{apiv1connect.TaskServiceSubmitProcedure, `{"queue":"misbehave","payload":"` + payload(`{"do":1}`) + `"}`, "invalid_argument", "do"},
		{apiv1connect.TaskServiceSubmitProcedure, `{"queue":"misbehave","payload":"` + payload(`{"do":`) + `"}`, "invalid_argument", "payload"},
		{apiv1connect.TaskServiceSubmitProcedure, `{"queue":"misbehave"}`, "invalid_argument", "payload"},
		{apiv1connect.TaskServiceSubmitProcedure, `{"queue":"misbehave","payload":"e30=","delay_ms":-1}`, "invalid_argument", "delay_ms"},
		{apiv1connect.TaskServiceSubmitProcedure, `{"queue":"misbehave","payload":"e30=","delay_ms":"9223372036854775807"}`, "invalid_argument", "delay_ms"},
		{apiv1connect.TaskServiceSubmitProcedure, `{"queue":"misbehave","payload":"` + strings.Repeat("A", api.MaxRequest) + `"}`, "resource_exhausted", "size"},
		{apiv1connect.TaskServiceSubmitProcedure, `[]`, "invalid_argument", ""},
		{apiv1connect.TaskServiceGetProcedure, `{"id":"no colon"}`, "invalid_argument", "no colon"},
		{apiv1connect.TaskServiceGetProcedure, `{"id":"misbehave:nothing"}`, "not_found", "misbehave:nothing"},
		{apiv1connect.TaskServiceWaitProcedure, `{"id":"misbehave:nothing"}`, "not_found", "misbehave:nothing"},
		{apiv1connect.TaskServiceWaitProcedure, `{"id":"misbehave:nothing","timeout_ms":-5}`, "invalid_argument", "timeout_ms"},
		{apiv1connect.TaskServiceCancelProcedure, `{"id":"misbehave:nothing"}`, "not_found", "misbehave:nothing"},
	}
	for _, test := range tests {
		status, answer := post(t, c, test.procedure, test.body)
		if status < 400 || !strings.Contains(answer, test.code) || !strings.Contains(answer, test.names) {
			t.Errorf("%s %.80s gave %d %.300s, want %s that names %q", test.procedure, test.body, status, answer, test.code, test.names)
		}
	}
	stream := newStream(t, c, fmt.Sprintf(`{"ids":[%s]}`, ids))
	if !strings.Contains(stream, "invalid_argument") || !strings.Contains(stream, "ids") {
		t.Errorf("too many IDs gave %.300s", stream)
	}
}

// The socket of the plugins submits and waits; for the rest it says where that is allowed.
func TestPluginSocket(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serve(t, w.server(0))
	c := dial(t, w.plugin)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	submitted, err := c.Submit(ctx, "misbehave", map[string]any{"do": "return", "value": "p"})
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	if ended, err := client.Wait(ctx, c, submitted.ID); err != nil || ended.State != task.Completed {
		t.Errorf("wait gave %+v, %v", ended, err)
	}
	if _, err := c.Get(ctx, submitted.ID); err != nil {
		t.Errorf("get: %v", err)
	}
	if _, err := c.Cancel(ctx, submitted.ID); !errors.Is(err, client.ErrForbidden) || !strings.Contains(err.Error(), w.socket) {
		t.Errorf("cancel gave %v, want ErrForbidden that names %s", err, w.socket)
	}
	control, err := client.Control("unix:" + w.plugin)
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	defer func() { _ = control.Close() }()
	_, err = control.Status(ctx, &apiv1.StatusRequest{})
	if err := client.Explain(ctx, "ask for the status", err); !errors.Is(err, client.ErrForbidden) || !strings.Contains(err.Error(), w.socket) {
		t.Errorf("status gave %v, want ErrForbidden that names %s", err, w.socket)
	}
	full, err := client.Control("unix:" + w.socket)
	if err != nil {
		t.Fatalf("control: %v", err)
	}
	defer func() { _ = full.Close() }()
	if got, err := full.Status(ctx, &apiv1.StatusRequest{}); err != nil || got.GetManager().GetName() != "test" {
		t.Errorf("status on the full socket gave %v, %v", got, err)
	}
}

// While Redis is away calls say so soon, and the status still answers.
func TestRedisAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serve(t, w.server(0))
	c := dial(t, w.socket)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	w.redis.Kill()
	id := task.RandomID("misbehave")
	calls := map[string]func() error{
		"submit": func() error { _, err := c.Submit(ctx, "misbehave", map[string]any{"do": "return"}); return err },
		"get":    func() error { _, err := c.Get(ctx, id); return err },
		"cancel": func() error { _, err := c.Cancel(ctx, id); return err },
		"wait":   func() error { _, err := client.Wait(ctx, c, id); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, client.ErrUnavailable) || errors.Is(err, client.ErrNoManager) || !strings.Contains(err.Error(), "Redis") {
			t.Errorf("%s gave %v, want ErrUnavailable that names Redis", name, err)
		}
	}
	if code, answer := post(t, plain(t, w.socket), apiv1connect.ControlServiceStatusProcedure, `{}`); code != http.StatusOK {
		t.Errorf("status gave %d %s", code, answer)
	}
	w.redis.Start()
}
