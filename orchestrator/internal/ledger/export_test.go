package ledger

import "time"

// Patient gives Redis more time to answer, on a machine that is busy with other tests.
func (l *Ledger) Patient(timeout time.Duration) { l.timeout = timeout }
