// Package budget shares the processes and the memory that a manager may have (max_processes, max_memory) among its queues.
//
//	pool --Ask(need)--> grant: so many may be started, so many should be let go
//	pool --Give-------> a process is gone
//
// Each queue has a Seat. A pool asks before it starts a process and gives back when the process is gone. What a seat gets is a
// pure function of all seats (share.go): user queues come before system queues, and among equals who has no process and has waited
// longest is first. A system queue gets nothing and lets its processes go while a user queue waits; nothing is ever killed for the
// budget. A seat whose turn has come, or whose processes are asked for, is kicked, and asks again.
//
// The package is a leaf, called by the pools. It starts nothing and has nothing to stop.
package budget
