// Package protocol is the agreement between Drover's processes. It imports nothing else of ours.
//
//	drover/worker/v1   manager <-> worker process: gRPC over go-plugin
//	drover/api/v1      application, plugin, console -> manager: HTTP on a socket (gRPC, gRPC-Web, JSON)
//	drover/task/v1     what every side says of a task: states, faults, records, events
//	task, fault        the same as Go types, with what lies in Redis
//	schema             the check of payloads against a worker's JSON Schema
//	client             the client library, over the API; client/direct, straight to Redis
//
// # Versions
//
// A worker program and a manager may be of different ages. They negotiate with go-plugin's protocol version: the manager
// offers the versions it speaks, the program answers with the highest that both know, and a program that shares none is
// refused with a message that names both sides' versions; its queue pauses and its tasks keep their attempts.
//
// Rules for changing what crosses a process border:
//
//  1. Add, never change. A new field has a new number and a zero value that means "as before". A number or a name once
//     used is reserved when it goes.
//  2. A reader ignores what it does not know: an unknown Instruction or Report is skipped, an unknown fault kind is read
//     as "failed", an unknown state as "unknown".
//  3. Version rises only when an old reader would do the wrong thing rather than less. Then both versions are served for
//     at least one release.
//  4. What lies in Redis follows the same rules: a manager of the next release reads what this one wrote, and this one
//     survives what the next one wrote, because managers are restarted one after the other.
//  5. `make verify` compares the definitions with the last commit (buf breaking) and fails on a change that breaks 1.
package protocol
