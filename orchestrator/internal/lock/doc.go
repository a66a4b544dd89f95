// Package lock sees to it that two tasks with the same lock key never run at once, on whichever manager and in whichever
// queue of their plugin.
//
// It owns the locks that this manager holds and the jobs that wait for one. It stands between intake and pool: to intake each
// Queue is where jobs are handed down, and what has its lock is handed on to the pool. It does not own where the locks lie
// (memcached or Redis, behind Store), does not decide what becomes of a task (it ends jobs through Ender), and stops no
// process: it asks the pool to interrupt a job whose lock is lost.
//
//	                 +--------- no lock key, or lock_missing=run ----------+
//	                 |                                                     v
//	Offer --> queued --> taking --held--> passed ----------------------> pool
//	             ^         |                | ^                            |
//	             |         |                | renewed                      | verdict: Ended
//	             |         v                v                              v
//	             +---- waiting            lost --> pool: Interrupt      released
//	           (join, own   |
//	            old lock,   +--> ended with the holder's result (join), with null (skip), returned with a delay (return)
//	            store away)
//
// # What is promised
//
// A lock is a lease. The store keeps it for at least its time; the holder believes in it for a quarter less, counted by its
// own clock from before the request was sent. So a holder that is paused, cut off or slow stops believing before anybody else
// can get the lock, and there are never two who believe. A quarter of the lease is what a run has to end after Interrupt:
// half of it by itself, and half to be gone after its process was killed, whatever kill_grace says.
//
// Taking the work twice is prevented as well as a lease can: what a worker writes in its last moments is not fenced.
//
// # Joining
//
// A job that finds its lock held by another task waits without a slot of a worker, in memory, at most maxAside per queue;
// more go back with a delay. It waits for the holder's end and tries the lock now and then, because a holder that failed and
// is to be tried again in an hour gives the lock up without an end. A lock that bears the job's own task is left from an
// earlier run of it, whose manager died: its time is waited for, whatever the queue's policy.
//
// # Goroutines
//
// Run renews all held locks, by batches, and wakes what waits; it blocks until its context ends, gives back what waits, goes
// on renewing until the last job has ended, and returns when the last lock is released and all goroutines are gone. Calls to
// the store are made by at most maxTakers goroutines that exist only while there is something to do; each joined job has one.
package lock
