package chaos

import (
	"fmt"
	"strings"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos/actor"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/plan"
)

// configuration returns what a manager's file says.
func (r *run) configuration(m *actor.Manager, variant uint64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "manager: {name: %s, state_dir: %q, drain_timeout: %s, log: {level: debug}}\n", m.Name, m.State(), drainTimeout)
	fmt.Fprintf(&b, "redis: {address: %q}\n", "unix://"+r.redis.Socket()+"?db=0")
	if r.cache != nil {
		fmt.Fprintf(&b, "locks: {memcached: [%q]}\n", r.cache.Socket())
	}
	fmt.Fprintf(&b, "plugins:\n  misbehave: {command: [%q], env: {MISBEHAVE_LEDGER: %q}}\n", r.options.Worker, r.ledgerPath())
	b.WriteString("queues:\n")
	for _, q := range r.plan.Queues {
		fmt.Fprintf(&b, "  %s: {plugin: misbehave, %s, %s}\n", q.Name, q.Settings, chosen(q, variant))
	}
	return b.String()
}

func chosen(q plan.Queue, variant uint64) string { return q.Variants[variant%uint64(len(q.Variants))] }
