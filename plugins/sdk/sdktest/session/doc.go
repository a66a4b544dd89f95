// Package session is the manager's side of one life of a worker: Describe, Configure, the Work stream, and the runs on it.
//
// It owns the stream and the books about its runs, and says through its Complain function when the worker breaks the protocol. It does not
// own the connection, nor the process behind it: whoever made them (package launch for processes, package sdktest in a
// test's memory) ends them. Callers are the conformance kit and sdktest. A session ends when its stream does; Close
// breaks the stream and waits for what reads it.
package session
