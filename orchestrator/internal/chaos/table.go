package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/drover-jobs/drover/orchestrator/internal/chaos/judge"
	"github.com/drover-jobs/drover/orchestrator/internal/chaos/plan"
)

// tally counts faults by their kind.
type tally map[plan.Kind]*count

type count struct {
	struck, missed int
	lasted         time.Duration // together
}

func (t tally) count(in plan.Injection, struck bool) {
	if t[in.Kind] == nil {
		t[in.Kind] = &count{}
	}
	if !struck {
		t[in.Kind].missed++
		return
	}
	t[in.Kind].struck++
	t[in.Kind].lasted += in.For
}

// mostBreaches is how many breaches of one invariant are printed.
const mostBreaches = 20

// print writes the tables and returns how many invariants are broken.
func (r *run) print(findings []judge.Finding) int {
	table := tabwriter.NewWriter(r.options.Out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(table, "\nFAULT\tINJECTED\tNO VICTIM\tLASTED\n")
	for _, kind := range plan.Kinds() {
		if c := r.tally[kind]; c != nil {
			_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", kind, c.struck, c.missed, c.lasted.Round(100*time.Millisecond))
		}
	}
	_, _ = fmt.Fprintf(table, "\nDEED\tTASKS\tCOMPLETED\tDEAD\tQUARANTINED\tRUNS\tLOSSES\tINTERRUPTIONS\n")
	r.deeds(table)
	_, _ = fmt.Fprintf(table, "\nINVARIANT\tCHECKED\tEXCUSED\tBROKEN\n")
	broken := 0
	for _, f := range findings {
		_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t%d\n", f.Name, f.Checked, f.Allowed, len(f.Broken))
		if len(f.Broken) > 0 {
			broken++
		}
	}
	_ = table.Flush()
	for _, f := range findings {
		for i, breach := range f.Broken {
			if i == mostBreaches {
				r.say("%s: and %d more", f.Name, len(f.Broken)-i)
				break
			}
			r.say("%s: %s", f.Name, breach)
		}
	}
	return broken
}

// deeds prints what became of the tasks, by what they did.
func (r *run) deeds(table *tabwriter.Writer) {
	type row struct{ tasks, completed, dead, quarantined, runs, losses, interruptions int }
	rows, names := map[string]*row{}, []string{}
	for _, s := range r.facts.Submissions {
		w := rows[s.Order.Deed]
		if w == nil {
			w = &row{}
			rows[s.Order.Deed] = w
			names = append(names, s.Order.Deed)
		}
		w.tasks++
		if record := r.facts.Records[s.ID]; record != nil {
			w.losses += record.Counters.Losses
			w.interruptions += record.Counters.Interruptions
			switch record.State.String() {
			case "completed":
				w.completed++
			case "dead":
				w.dead++
			case "quarantined":
				w.quarantined++
			}
		}
	}
	deedOf := map[string]string{}
	for _, s := range r.facts.Submissions {
		deedOf[s.ID.String()] = s.Order.Deed
	}
	for _, run := range r.facts.Runs {
		if w := rows[deedOf[run.ID.String()]]; w != nil {
			w.runs++
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(rows[b].tasks, rows[a].tasks), cmp.Compare(a, b))
	})
	for _, name := range names {
		w := rows[name]
		_, _ = fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", name, w.tasks, w.completed, w.dead, w.quarantined, w.runs, w.losses, w.interruptions)
	}
}
