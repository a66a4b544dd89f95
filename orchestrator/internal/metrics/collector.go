package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	apiv1 "github.com/drover-jobs/drover/protocol/drover/api/v1"
)

// collector makes metrics of a status.
type collector struct{ deps Deps }

var _ prometheus.Collector = (*collector)(nil)

// row is one metric: its description and the kind of its value.
type row struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func gauge(name, help string, labels ...string) row {
	return row{prometheus.NewDesc(name, help, labels, nil), prometheus.GaugeValue}
}

func counter(name, help string, labels ...string) row {
	return row{prometheus.NewDesc(name, help, labels, nil), prometheus.CounterValue}
}

// table is every metric that comes from a status.
type table struct {
	up, info, tasks, ended, workers, most, exits, rss, open, paused, locks, locksUp row
}

func rows() table {
	return table{
		up:      gauge("drover_broker_up", "1 while Redis answers."),
		info:    gauge("drover_manager_info", "1, with what the manager is in the labels.", "name", "version", "state"),
		tasks:   gauge("drover_tasks", "Tasks by where they are: waiting, scheduled, retry and dead over all managers, held and running in this one.", "queue", "state"),
		ended:   counter("drover_runs_total", "Runs that ended in this manager, by how: completed, failed, killed.", "queue", "end"),
		workers: gauge("drover_workers", "Worker processes by state.", "queue", "state"),
		most:    gauge("drover_workers_max", "The setting max_workers.", "queue"),
		exits:   counter("drover_worker_exits_total", "Ends of worker processes by reason.", "queue", "reason"),
		rss:     gauge("drover_workers_rss_bytes", "Memory of the process trees of all workers together.", "queue"),
		open:    gauge("drover_circuit_open", "1 while no worker of the queue can be started.", "queue"),
		paused:  gauge("drover_queue_paused", "1 while the queue is paused.", "queue"),
		locks:   gauge("drover_locks", "Locks that tasks of this manager have (held), and tasks that wait for one (waiting).", "state"),
		locksUp: gauge("drover_lock_store_up", "1 while the store of locks answers."),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	t := rows()
	for _, r := range []row{t.up, t.info, t.tasks, t.ended, t.workers, t.most, t.exits, t.rss, t.open, t.paused, t.locks, t.locksUp} {
		out <- r.desc
	}
}

// Collect implements prometheus.Collector. What Redis does not tell now is left out.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	s, err := c.deps.Status(ctx)
	if err != nil {
		c.deps.Log.Debug("no status for the metrics", "error", err)
		return
	}
	t := rows()
	put := func(r row, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(r.desc, r.kind, value, labels...)
	}
	m := s.GetManager()
	put(t.up, truth(m.GetBrokerError() == ""))
	put(t.info, 1, m.GetName(), m.GetVersion(), m.GetState())
	waiting := int64(0)
	for _, q := range s.GetQueues() {
		t.queue(put, q, s.GetWorkers())
		waiting += q.GetLockWaiting()
	}
	held, lockErr := c.deps.Locks()
	put(t.locks, float64(held), "held")
	put(t.locks, float64(waiting), "waiting")
	put(t.locksUp, truth(lockErr == nil))
}

// queue puts the metrics of one queue.
func (t *table) queue(put func(row, float64, ...string), q *apiv1.Queue, workers []*apiv1.Worker) {
	name := q.GetName()
	for state, n := range map[string]int64{
		"waiting": q.GetWaiting(), "scheduled": q.GetScheduled(), "retry": q.GetRetry(), "dead": q.GetDead(), "held": q.GetHeld(), "running": q.GetRunning(),
	} {
		if n >= 0 {
			put(t.tasks, float64(n), name, state)
		}
	}
	for end, n := range map[string]uint64{"completed": q.GetCompleted(), "failed": q.GetFailed(), "killed": q.GetKilled()} {
		put(t.ended, float64(n), name, end)
	}
	for reason, n := range q.GetExits() {
		put(t.exits, float64(n), name, reason)
	}
	states, rss := map[string]int{"idle": 0, "busy": 0, "draining": 0}, int64(0)
	for _, w := range workers {
		if w.GetQueue() == name {
			states[w.GetState()]++
			rss += w.GetRssBytes()
		}
	}
	for state, n := range states {
		put(t.workers, float64(n), name, state)
	}
	put(t.most, float64(q.GetMaxWorkers()), name)
	put(t.rss, float64(rss), name)
	put(t.open, truth(q.GetState() == "circuit-open"), name)
	put(t.paused, truth(q.GetState() == "paused"), name)
}

func truth(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
