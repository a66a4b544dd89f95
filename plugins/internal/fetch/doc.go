// Package fetch is the one guarded HTTP client of the feed workers.
//
// It owns everything between an address and the plain bytes behind it: which addresses may be dialled, redirects, time and
// size limits, decompression, conditional requests and the words for what went wrong. It does not own what the bytes mean,
// when to fetch again, or any store.
//
// Every error that Get returns is a *fault.Fault, ready to end a task with. An answer with an error status is not an error of
// Get: it is a Response, and Response.Check says what is wrong with it.
//
// Callers are the feed workers, any number of goroutines at once. A Client starts no goroutine of its own; Close gives its
// idle connections back.
package fetch
