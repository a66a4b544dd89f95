package metrics_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/metrics"
	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != 200 {
		t.Fatalf("%d: %s", answer.Code, answer.Body)
	}
	return answer.Body.String()
}

// Everything that a status says of queues and workers can be scraped, with the times of the runs that were told of.
func TestScrape(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Deps{
		Log: slog.New(slog.DiscardHandler), Locks: func() (int, error) { return 3, errors.New("away") },
		Status: func(context.Context) (*apiv1.StatusResponse, error) {
			return &apiv1.StatusResponse{
				Manager: &apiv1.Manager{Name: "m1", Version: "1", State: "running", BrokerError: "gone"},
				Queues: []*apiv1.Queue{{
					Name: "q", State: "circuit-open", Waiting: -1, Dead: 2, Held: 4, Running: 5, Completed: 7, Failed: 8, Killed: 9, MaxWorkers: 6, LockWaiting: 2,
					Exits: map[string]uint64{"memory-max": 3},
				}},
				Workers: []*apiv1.Worker{{Queue: "q", State: "busy", RssBytes: 100}, {Queue: "q", State: "idle", RssBytes: 50}, {Queue: "other", State: "idle", RssBytes: 7}},
			}, nil
		},
	})
	m.Ran("q", 3*time.Millisecond, 2*time.Second)
	m.ScheduleDecided("nightly", "q", "fired", 0, 2*time.Second)
	m.ScheduleDecided("nightly", "q", "fired", 3, -1)
	m.ScheduleDecided("nightly", "q", "missed", 2, 0)
	m.ScheduleDecided("nightly", "q", "skipped", 0, 0)
	text := scrape(t, m)
	for _, line := range []string{
		`drover_broker_up 0`, `drover_manager_info{name="m1",state="running",version="1"} 1`, `drover_tasks{queue="q",state="dead"} 2`,
		`drover_tasks{queue="q",state="held"} 4`, `drover_tasks{queue="q",state="running"} 5`, `drover_runs_total{end="killed",queue="q"} 9`,
		`drover_worker_exits_total{queue="q",reason="memory-max"} 3`, `drover_workers{queue="q",state="busy"} 1`, `drover_workers{queue="q",state="draining"} 0`,
		`drover_workers_max{queue="q"} 6`, `drover_workers_rss_bytes{queue="q"} 150`, `drover_circuit_open{queue="q"} 1`, `drover_queue_paused{queue="q"} 0`,
		`drover_schedule_due_total{queue="q",schedule="nightly",verdict="fired"} 2`, `drover_schedule_due_total{queue="q",schedule="nightly",verdict="missed"} 5`,
		`drover_schedule_due_total{queue="q",schedule="nightly",verdict="skipped"} 1`, `drover_schedule_late_seconds_count{queue="q",schedule="nightly"} 1`,
		`drover_schedule_late_seconds_bucket{queue="q",schedule="nightly",le="2.5"} 1`,
		`drover_locks{state="held"} 3`, `drover_locks{state="waiting"} 2`, `drover_lock_store_up 0`, `drover_task_run_seconds_count{queue="q"} 1`,
		`drover_task_run_seconds_bucket{queue="q",le="1"} 0`, `drover_task_run_seconds_bucket{queue="q",le="2.5"} 1`, `drover_task_wait_seconds_bucket{queue="q",le="0.005"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("missing: %s", line)
		}
	}
	if strings.Contains(text, `state="waiting"`) && strings.Contains(text, `drover_tasks{queue="q",state="waiting"}`) {
		t.Error("a count that Redis did not tell is shown")
	}
}

// A manager that cannot say how it is still shows what it knows by itself.
func TestScrapeWithoutStatus(t *testing.T) {
	t.Parallel()
	m := metrics.New(metrics.Deps{
		Log: slog.New(slog.DiscardHandler), Locks: func() (int, error) { return 0, nil },
		Status: func(context.Context) (*apiv1.StatusResponse, error) { return nil, errors.New("no") },
	})
	m.Ran("q", 0, time.Second)
	if text := scrape(t, m); !strings.Contains(text, "drover_task_run_seconds_count") || !strings.Contains(text, "go_goroutines") {
		t.Errorf("%s", text)
	}
}
