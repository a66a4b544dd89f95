package api_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/api"
	"github.com/drover-jobs/drover/protocol/drover/api/v1/apiv1connect"
)

// Whatever comes as a request, it is answered, and never with the panic of a handler.
func FuzzRequests(f *testing.F) {
	procedures := []string{
		apiv1connect.TaskServiceSubmitProcedure, apiv1connect.TaskServiceSubmitBatchProcedure, apiv1connect.TaskServiceGetProcedure, apiv1connect.TaskServiceWaitProcedure,
		apiv1connect.TaskServiceSubscribeProcedure, apiv1connect.TaskServiceCancelProcedure, "/",
	}
	procedures = append(procedures, controlProcedures()...)
	types := []string{"application/json", "application/proto", "application/connect+json", "application/grpc", "application/grpc-web+proto", ""}
	for i := range procedures {
		for j := range types {
			f.Add(uint8(i), uint8(j), []byte(`{"id":"q:k","queue":"q","payload":"e30=","ids":["q:k"],"timeoutMs":"1","delayMs":"1"}`))
			f.Add(uint8(i), uint8(j), []byte(`{"queue":"q","worker":"1","state":4,"changes":[{"name":"x"}],"tasks":{"ids":["q:k"]},"who":"me","taskId":"q:k"}`))
			f.Add(uint8(i), uint8(j), []byte("\x00\x00\x00\x00\x02{}"))
			f.Add(uint8(i), uint8(j), []byte("\x01\xff\xff\xff\xff"))
		}
	}
	handler := api.New(api.Options{Tasks: nothing{}, Control: &panel{}, Log: quiet(), Allowance: api.Allowance{CallerWaits: 10, Waits: 10}}).Handler() // without a rate
	f.Fuzz(func(t *testing.T, procedure, kind uint8, body []byte) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		request := httptest.NewRequestWithContext(ctx, http.MethodPost, procedures[int(procedure)%len(procedures)], strings.NewReader(string(body)))
		request.Header.Set("Content-Type", types[int(kind)%len(types)])
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if text := answer.Body.String(); strings.Contains(text, "made a mistake") {
			t.Errorf("%s panicked: %s", request.URL.Path, text)
		}
	})
}

// Bytes that are no HTTP at all close the connection and nothing else.
func TestNoise(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	serve(t, w.server(0))
	for _, noise := range []string{"\x00\x01\x02\r\n\r\n", strings.Repeat("A", 200<<10), "GET / HTTP/9.9\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\xff", 1000)} {
		conn, err := net.Dial("unix", w.socket)
		if err != nil {
			t.Fatalf("connect: %v", err)
		}
		_, _ = io.WriteString(conn, noise) // it may be cut off before the end
		_ = conn.SetReadDeadline(time.Now().Add(within))
		_, err = io.Copy(io.Discard, conn)
		if isTimeout(err) {
			t.Errorf("%.20q left the connection open", noise)
		}
		_ = conn.Close()
	}
	if code, answer := post(t, plain(t, w.socket), apiv1connect.ControlServiceStatusProcedure, `{}`); code != http.StatusOK {
		t.Errorf("afterwards the status gave %d %s", code, answer)
	}
}

// Whatever is asked for as events, it is answered: with events, with 204, or with an error in words.
func FuzzEvents(f *testing.F) {
	for _, query := range []string{"id=q:k", "id=q:k&id=q:l&progress=1", "id=", "id=%zz", "progress=1", "id=q:k&x=1", "id=q:k;id=q:l", "id=\xff:\x00"} {
		for _, last := range []string{"", "AA", "Aw", "!!!!", "AAAAAAAA"} {
			f.Add(query, last)
		}
	}
	handler := api.New(api.Options{Tasks: nothing{}, Control: &panel{}, Log: quiet(), Allowance: api.Allowance{CallerWaits: 10, Waits: 10}}).Handler() // without a rate
	f.Fuzz(func(t *testing.T, query, last string) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/tasks/events", http.NoBody)
		request.URL.RawQuery = query
		request.Header.Set("Last-Event-ID", last)
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		text := answer.Body.String()
		switch answer.Code {
		case http.StatusOK:
			if !strings.HasSuffix(text, "event: done\ndata: {}\n\n") || !strings.Contains(text, "event: unknown") {
				t.Errorf("the events are %q", text)
			}
		case http.StatusNoContent:
		case http.StatusBadRequest:
			if !strings.Contains(text, `"code":"invalid_argument","message":"`) {
				t.Errorf("the error is %q", text)
			}
		default:
			t.Errorf("the answer is %d %q", answer.Code, text)
		}
	})
}
