package rescue

import "time"

// Hasten makes a rescue watch in a shorter time, for tests.
func (r *Rescue) Hasten(after, every time.Duration) { r.after, r.every = after, every }

// Bound is the longest time from a manager's last beat, or from the start of the first manager after it, to the rescue.
const Bound = lookEvery + abandonedAfter + lookEvery
