// Package metrics shows a manager to Prometheus.
//
// It owns the names of the metrics and how they are made from a status of the manager, and the histograms of the times that tasks
// wait and run, which it is told of as they end. It does not own what it shows: it asks for a status at each scrape. Package
// orchestrator makes it; the API serves its handler. It starts nothing.
package metrics

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// scrapeTimeout bounds the question for a status.
const scrapeTimeout = 5 * time.Second

// Deps are what the metrics are made from.
type Deps struct {
	Status func(ctx context.Context) (*apiv1.StatusResponse, error)
	// Locks are how many locks this manager's tasks have, and why the store of locks does not answer; nil when it does.
	Locks func() (held int, err error)
	Log   *slog.Logger
}

// Metrics are those of one manager.
type Metrics struct {
	deps     Deps
	registry *prometheus.Registry
	waits    *prometheus.HistogramVec
	runs     *prometheus.HistogramVec
	due      *prometheus.CounterVec
	late     *prometheus.HistogramVec
}

// buckets are the upper bounds of the histograms, in seconds: from half a millisecond to half an hour.
func buckets() []float64 {
	return []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800}
}

// New returns the metrics of a manager.
func New(d Deps) *Metrics {
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets()}, []string{"queue"})
	}
	m := &Metrics{
		deps: d, registry: prometheus.NewRegistry(),
		waits: histogram("drover_task_wait_seconds", "Time from when a task could have been taken until a worker had it."),
		runs:  histogram("drover_task_run_seconds", "Time of one run of a task, however it ended."),
	}
	m.due = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "drover_schedule_due_total", Help: "Due times that this manager decided, by what became of them: fired, skipped, queued, missed. The sum over all managers is the schedule's.",
	}, []string{"schedule", "queue", "verdict"})
	m.late = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "drover_schedule_late_seconds", Help: "How much later than planned this manager submitted runs of schedules, those that were caught up left out.", Buckets: buckets(),
	}, []string{"schedule", "queue"})
	m.registry.MustRegister(m.waits, m.runs, m.due, m.late, &collector{deps: d}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Ran takes a run that has ended, with how long it waited and took.
func (m *Metrics) Ran(queue string, wait, run time.Duration) {
	m.waits.WithLabelValues(queue).Observe(wait.Seconds())
	m.runs.WithLabelValues(queue).Observe(run.Seconds())
}

// ScheduleDecided takes a due time that this manager has decided, how many were missed before or with it, and how late its run was
// submitted; negative when that says nothing.
func (m *Metrics) ScheduleDecided(schedule, queue, verdict string, missed int, late time.Duration) {
	const fired, lost = "fired", "missed"
	if verdict != lost { // that one is among the missed
		m.due.WithLabelValues(schedule, queue, verdict).Inc()
	}
	if missed > 0 {
		m.due.WithLabelValues(schedule, queue, lost).Add(float64(missed))
	}
	if verdict == fired && late >= 0 {
		m.late.WithLabelValues(schedule, queue).Observe(late.Seconds())
	}
}

// Handler serves them in the formats of Prometheus (https://prometheus.io/docs/instrumenting/exposition_formats).
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(m.deps.Log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4,
	})
}
