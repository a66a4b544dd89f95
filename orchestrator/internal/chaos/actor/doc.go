// Package actor holds the processes of a chaos run and does to them what the plan says: managers with their workers, a
// redis-server and a memcached.
//
// It owns the processes that it starts, and their end: whatever it started dies with the thread that did, so nothing outlives
// the harness. It reads /proc to find workers and what is left of them, so it works on Linux alone. It decides nothing and
// judges nothing; what it did and saw it returns. Each actor is used by one goroutine at a time, Close aside.
package actor
