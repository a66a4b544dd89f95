// Package plan decides everything about a chaos run that can be decided before it: which tasks are submitted when, what each
// does to its worker and how it must therefore end, and which faults strike whom, when and for how long.
//
// It owns the vocabulary of faults (Kind), of deeds and of expected ends (Want). It touches no process: Make is a pure function
// of its options, the seed among them, so that a run is repeated by its seed as well as a busy machine allows.
package plan
