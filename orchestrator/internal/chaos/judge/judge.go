package judge

import "fmt"

// Finding is what came of one invariant.
type Finding struct {
	Name    string
	Checked int      // how many things were looked at
	Allowed int      // how many would be breaches, but for a fault that excuses them
	Broken  []string // one sentence for each breach
}

func (f *Finding) breach(format string, args ...any) {
	f.Broken = append(f.Broken, fmt.Sprintf(format, args...))
}

// Judge checks every invariant.
func Judge(facts *Facts) []Finding {
	c := newCase(facts)
	checks := []struct {
		name  string
		check func(*Case, *Finding)
	}{
		{"every task has ended, with one record", recorded},
		{"every end is the one that was ordered", asOrdered},
		{"every result is the task's own", ownResult},
		{"no task ended twice", endedOnce},
		{"every wait was answered, once", answered},
		{"every completed task had its effect", effected},
		{"no two runs of one lock key at once", exclusive},
		{"no kill is charged to the innocent", innocent},
		{"no failure is charged that no worker reported", ownFailures},
		{"no process outlives its manager", orphaned},
		{"nothing is left at the end", leftovers},
		{"nothing is left in the queues", emptied},
		{"the numbers of Redis agree", agreed},
		{"every stop is in time", stoppedInTime},
		{"every report of a stop is true", reportedTruly},
		{"nothing crashed by itself", crashed},
	}
	findings := make([]Finding, len(checks))
	for i, check := range checks {
		findings[i].Name = check.name
		check.check(c, &findings[i])
	}
	return findings
}
