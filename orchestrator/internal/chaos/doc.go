// Package chaos runs managers, workers that misbehave, Redis and memcached, strikes them with faults while tasks are submitted, and
// proves at the end that nothing was lost, nothing ended twice and nothing was left behind.
//
//	plan     what is submitted, what strikes when: a pure function of the seed
//	actor    the processes, and what is done to them
//	ledger   what the workers themselves wrote down
//	judge    whether the promises were kept: a pure function of the facts
//
// This package puts them together: it submits, strikes, listens, waits until everything has ended, stops everything, gathers the
// facts and prints the tables. The command drover-chaos calls it, and a test. Run blocks; when it returns, every process that it
// started is gone, and the run's directory as well unless something was broken.
package chaos
