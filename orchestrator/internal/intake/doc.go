// Package intake takes tasks from Redis and carries out there what becomes of them. It alone speaks to asynq.
//
// Each queue is a lane: one asynq.Server on a Redis client of ours, the gateway. asynq keeps leases alive, moves delayed
// tasks when they are due and recovers those of a manager that died. Two of its steps are taken over by the gateway, which
// knows them by the keys of their scripts (a test holds asynq v0.26.0 to that):
//
//   - Dequeue. asynq polls, one task a round trip, and sleeps when there is none. The gateway asks for as many tasks as
//     the pool has room for in one script, hands them over one by one, and when there are none it waits for the
//     publish of a submit or for the base poll, and so answers a lone task within a millisecond at no cost when idle. No
//     room: nothing is asked for, so the size of buffer and pool can change while asynq's own concurrency cannot.
//   - Answering. What becomes of a task, its terminal record and its event are one script (settle.lua), for a batch of
//     tasks at once, and only if the task is still ours. What asynq then does for the same task is answered without a
//     call. One place therefore counts every way a task goes back.
//
// A verdict that cannot be written because Redis is away is kept and tried again until the stop gives up on it. The lane
// stops in this order: nothing more is taken, what was taken is given back or settled, asynq is shut down.
package intake
