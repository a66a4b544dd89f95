package api

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/drover-jobs/drover/protocol/client"
	"github.com/drover-jobs/drover/protocol/task"
)

// pathEvents is where tasks are followed as server-sent events, for browsers and for whoever has nothing but HTTP.
const pathEvents = "/v1/tasks/events"

const (
	// maxEventIDs bounds the tasks of one stream of server-sent events: their IDs stand in the address.
	maxEventIDs = 1000
	// heartbeat is how often a silent stream says that it lives: proxies cut connections that are silent for a minute.
	heartbeat = 15 * time.Second
	// reconnectAfter is the pause that browsers are asked to make before they ask again.
	reconnectAfter = 2 * time.Second
)

// The names of server-sent events, beside those of updates (see nameOf).
const (
	eventDone    = "done"    // every end has been sent
	eventFailure = "failure" // the stream ends early; whoever asks again misses nothing
)

// followed is what a request for server-sent events asks for.
type followed struct {
	ids      []task.ID
	told     []byte // a bit for each of ids, set when its end has been sent, on this connection or on an earlier one
	progress bool
}

// readFollowed reads a query, and what of it an earlier connection was told: browsers send the ID of the last event that they
// saw. An ID of an event that does not fit counts for nothing: then every end is sent.
func readFollowed(query, lastEventID string) (*followed, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, fmt.Errorf("the query cannot be read: %w", err)
	}
	f := &followed{}
	for name, all := range values {
		switch name {
		case "id":
		case "progress":
			if f.progress, err = strconv.ParseBool(all[len(all)-1]); err != nil {
				return nil, fmt.Errorf("progress: %.80q is neither 1 nor 0", all[len(all)-1])
			}
		default:
			return nil, fmt.Errorf("%.80q is not known here: use id=ID, once for each task, and progress=1", name)
		}
	}
	known := make(map[task.ID]bool, len(values["id"]))
	for _, text := range values["id"] {
		id, err := task.ParseID(text)
		if err != nil {
			return nil, fmt.Errorf("id: %w", err)
		}
		if !known[id] {
			known[id] = true
			f.ids = append(f.ids, id)
		}
	}
	switch n := len(f.ids); {
	case n == 0:
		return nil, errors.New("id: name at least one task, as id=ID")
	case n > maxEventIDs:
		return nil, fmt.Errorf("id: %d tasks are more than the %d that one stream follows; open another for the rest, or call Subscribe", n, maxEventIDs)
	}
	const bits = 8
	f.told = make([]byte, (len(f.ids)+bits-1)/bits)
	if told, err := base64.RawURLEncoding.DecodeString(lastEventID); err == nil && len(told) == len(f.told) {
		f.told = told
	}
	return f, nil
}

// left are the tasks whose end has not been sent, and their places.
func (f *followed) left() ([]task.ID, map[task.ID]int) {
	var ids []task.ID
	places := map[task.ID]int{}
	for i, id := range f.ids {
		if f.told[i/8]&(1<<(i%8)) == 0 {
			ids = append(ids, id)
			places[id] = i
		}
	}
	return ids, places
}

// eventID says which ends have been sent.
func (f *followed) eventID() string { return base64.RawURLEncoding.EncodeToString(f.told) }

// nameOf is the name of an update as an event.
func nameOf(u client.Update) string {
	switch {
	case u.Ended != nil:
		return "ended"
	case u.Event == nil:
		return "unknown"
	case u.Event.Progress != nil:
		return "progress"
	default:
		return "state"
	}
}

// events follows tasks as Subscribe does, as server-sent events. Each end comes once; a browser that lost the connection gets
// those that are left, and is told to stop when there are none.
func (s *tasks) events(w http.ResponseWriter, r *http.Request) {
	f, err := readFollowed(r.URL.RawQuery, r.Header.Get("Last-Event-Id"))
	if err != nil {
		refuse(w, r, connect.NewError(connect.CodeInvalidArgument, err))
		return
	}
	ids, places := f.left()
	if len(ids) == 0 {
		w.WriteHeader(http.StatusNoContent) // which ends the attempts of a browser to connect again
		return
	}
	if err := callOf(r.Context()).follow(len(ids)); err != nil {
		refuse(w, r, connectError(err))
		return
	}
	out := &eventStream{w: w, pace: paceOf(r.Context())}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // nginx would keep events until it has a buffer full
	if out.write(": drover\nretry: %d\n\n", reconnectAfter.Milliseconds()) != nil {
		return
	}
	waiting, done := s.waits(r.Context())
	defer done()
	err = s.followEvents(waiting, ids, f.progress, out, func(u client.Update) error {
		if place, ok := places[u.ID]; ok && u.Event == nil {
			f.told[place/8] |= 1 << (place % 8)
		}
		data, err := protojson.Marshal(message(u))
		if err != nil {
			return err
		}
		return out.event(f.eventID(), nameOf(u), data)
	})
	switch {
	case err == nil:
		_ = out.event(f.eventID(), eventDone, []byte("{}")) // who has gone need not be told
	case r.Context().Err() == nil && !errors.Is(err, errUnread):
		_ = out.event(f.eventID(), eventFailure, errorJSON(wire(waiting, err))) // as above
	}
}

// followEvents hands over each update, and keeps the connection alive between them. It returns when its goroutine is gone.
func (s *tasks) followEvents(ctx context.Context, ids []task.ID, progress bool, out *eventStream, take func(client.Update) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var options []client.FollowOption
	if progress {
		options = append(options, client.WithEvents())
	}
	type step struct {
		update client.Update
		err    error
	}
	steps := make(chan step)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	following.Go(func() {
		defer close(steps)
		for u, err := range s.client.Subscribe(ctx, ids, options...) {
			select {
			case steps <- step{u, err}:
			case <-ctx.Done():
				return
			}
		}
	})
	beat := time.NewTicker(s.beat)
	defer beat.Stop()
	for {
		var err error
		select {
		case next, ok := <-steps:
			if !ok {
				return ctx.Err()
			}
			if err = next.err; err == nil {
				err = take(next.update)
			}
		case <-beat.C:
			err = out.write(":\n\n")
		}
		if err != nil {
			return err
		}
	}
}

// errUnread says that the caller has gone, or does not read.
var errUnread = errors.New("the caller does not read its events")

// eventStream writes server-sent events.
type eventStream struct {
	w    http.ResponseWriter
	pace *pace
}

// event writes one event. data is one line.
func (e *eventStream) event(id, name string, data []byte) error {
	return e.write("id: %s\nevent: %s\ndata: %s\n\n", id, name, data)
}

// write sends some lines, within the time that the caller has to read them.
func (e *eventStream) write(format string, args ...any) error {
	e.pace.beforeSend()
	_, err := fmt.Fprintf(e.w, format, args...)
	if err == nil && e.pace.conn != nil {
		err = e.pace.conn.Flush()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUnread, err)
	}
	e.pace.sent()
	return nil
}

// refuse answers a call that is not carried out, in the form that the caller understands.
func refuse(w http.ResponseWriter, r *http.Request, err *connect.Error) {
	if known := connect.NewErrorWriter(); r.Method == http.MethodPost && known.IsSupported(r) {
		_ = known.Write(w, r, err) // who has gone need not be told
		return
	}
	for name, values := range err.Meta() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(statusOf(err.Code()))
	_, _ = w.Write(errorJSON(err)) // as above
}

// statusOf is the status of HTTP for a code, as the connect protocol has it.
func statusOf(code connect.Code) int {
	switch code {
	case connect.CodeInvalidArgument:
		return http.StatusBadRequest
	case connect.CodeUnauthenticated:
		return http.StatusUnauthorized
	case connect.CodePermissionDenied:
		return http.StatusForbidden
	case connect.CodeNotFound:
		return http.StatusNotFound
	case connect.CodeResourceExhausted:
		return http.StatusTooManyRequests
	case connect.CodeUnavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusInternalServerError
	}
}

// connectError is an error as the connect protocol has it.
func connectError(err error) *connect.Error {
	var known *connect.Error
	if !errors.As(err, &known) {
		known = connect.NewError(connect.CodeInternal, err)
	}
	return known
}

// errorJSON is an error as the connect protocol writes it.
func errorJSON(err error) []byte {
	known := connectError(err)
	data, _ := json.Marshal(struct { // strings only: it cannot fail
		Code    string `json:"code"`
		Message string `json:"message"`
	}{known.Code().String(), known.Message()})
	return data
}
