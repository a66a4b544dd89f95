package judge

import (
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos/actor"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/ledger"
	"github.com/drover-jobs/drover/protocol/task"
)

// A report of an outcome takes some time from the handler's return to the manager, and a task some from the manager to its
// handler: an injury touches a run that is this near.
const near = int64(2 * time.Second)

// Case is the facts with what follows from them at once.
type Case struct {
	*Facts
	runs     map[task.ID][]ledger.Run
	injuries map[int][]actor.Injury // by process
	freezes  map[int][]Freeze
}

func newCase(facts *Facts) *Case {
	c := &Case{Facts: facts, runs: map[task.ID][]ledger.Run{}, injuries: map[int][]actor.Injury{}, freezes: map[int][]Freeze{}}
	for _, run := range facts.Runs {
		c.runs[run.ID] = append(c.runs[run.ID], run)
	}
	for _, injury := range facts.Injuries {
		c.injuries[injury.PID] = append(c.injuries[injury.PID], injury)
	}
	for _, freeze := range facts.Freezes {
		c.freezes[freeze.PID] = append(c.freezes[freeze.PID], freeze)
	}
	return c
}

// excuses is how many kills of a task may be the harness's doing: it struck a process in which the task ran, or in which it may have
// been without having begun. The latter is known only from attempts that are not in the ledger.
func (c *Case) excuses(id task.ID) int {
	n := 0
	attempts := map[int]bool{}
	for _, run := range c.runs[id] {
		attempts[run.Attempt] = true
		for _, injury := range c.injuries[run.PID] {
			if run.Begin <= injury.To+near && run.Last+near >= injury.From || !run.Ended && run.Begin <= injury.To+near {
				n++
				break
			}
		}
	}
	if r := c.Records[id]; r != nil && len(c.Injuries) > 0 {
		n += max(0, r.Attempts-len(attempts))
	}
	return n
}
