// Package program knows the file of a plugin's program: whether it is the one that the configuration asks for, whether it has
// changed, and what to start when a new one does not work.
//
//	         Changed             Adopt
//	current ---------> trial -------------> current (the trial)
//	                     \----------------> current (the old one, from its copy)
//	                             Reject
//
// A version is the content of a file, known by its SHA-256. Whether a file has changed is asked by stat alone, so it may be asked every
// second. A version of a native program (ELF) is copied into a private directory when it is first met. The copy is what a pinned
// program is always started from: nobody can change it between the check and the start. It is also the way back when a new version is
// rejected. Everything else, and every program without a copy, is started by its own path: a script would look for its neighbours
// beside the copy, in vain. A pinned script is checked right before each start, which leaves a moment between the two; and for a
// script there is no way back.
//
// Which version of a native program worked last is kept beside the copies: when a manager starts and the file does not work, it goes on
// from that copy (Prove, Recall).
//
// The catalog asks and the pools start. The package starts nothing, and all of it may be called from several goroutines.
package program
