// Package intake takes tasks from Redis and carries out there what becomes of them. It alone speaks to asynq.
//
// Each queue is a lane: one asynq.Server on a Redis client of ours, the gateway. asynq moves delayed tasks when they are
// due, recovers those of a manager that died, and shows its own tools what runs here. Two of its steps are taken over by
// the gateway, which knows them by the keys of their scripts (a test holds asynq v0.26.0 to that):
//
//   - Dequeue. asynq polls, one task a round trip, and sleeps when there is none. The puller asks for as many tasks as
//     the pool has room for in one script; asynq gets them one by one. When there are none it waits for the
//     publish of a submit or for the base poll, and so answers a lone task within a millisecond at no cost when idle. No
//     room: nothing is asked for, so the size of buffer and pool can change while asynq's own concurrency cannot.
//   - Answering. What becomes of a task, its terminal record and its event are one script (settle.lua), for a batch of
//     tasks at once, and only if the task is still ours. Whatever asynq wants to do at the end of a run is answered
//     without a call. One place therefore counts every way a task goes back.
//
// A task is ours while it is active and its hash bears the token of the call that took it. The token makes every step safe
// to repeat: a dequeue whose answer was lost returns what it took (dequeue.lua), a settle that was carried out or
// comes too late changes nothing, a renewal (renew.lua) tells that the task has gone to another manager, and its run is stopped.
// Leases are renewed here, because asynq knows neither what it has not been given yet nor what waits to be settled.
//
// A verdict that cannot be written because Redis is away is kept and tried again until the stop gives up on it. The lane
// stops in this order: nothing more is taken, what was taken is given back or settled, asynq is shut down.
package intake
