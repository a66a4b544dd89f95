// Package conform checks what every worker owes its manager: it plays the manager to a worker, one life after another, and says for
// each promise whether it was kept, broken, or could not be tested.
//
// It owns the checks, their order and their words. It does not own how a worker is brought up: a Subject brings lives, in a test's
// memory (package sdktest) or as processes (package launch). Callers are sdktest.Conform and `drover plugin test`. Run ends
// when the last check has, or soon after its context, and leaves no life behind.
package conform
