// Package pull is what the program feed-pull does with a task: one feed, asked for, read and stored.
//
// It owns the order of the steps and the words of the result. It does not own the steps: fetching, reading, identity and the
// store are packages under plugins/internal. A walk through one task:
//
//	find     the feed by its number or address; a new address is no error
//	fetch    with the validators last seen; an address that the guard refuses ends the task and leaves no trace of a new feed
//	judge    304, 410, error status, the same body again, or something to read
//	read     into a document, with warnings for all that was repaired or lost
//	save     feed, entries, penalty and log row in one transaction
//	icon     once a week, look for the feed's icon; what goes wrong there is no failure of the pull
//
// A pull that fails is recorded with its penalty and then ends the task for good: when the feed is tried again is the
// schedule's business, not the queue's. Only a store that did not do its work makes the queue try again.
//
// Program is called by main and by tests. The worker runs several tasks at once; it starts no goroutine of its own.
package pull
