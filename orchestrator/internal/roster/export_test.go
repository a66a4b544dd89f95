package roster

import "time"

// Hasten makes a roster write more often.
func (r *Roster) Hasten(every time.Duration) { r.every = every }

// Key is the hash of all managers.
const Key = key
