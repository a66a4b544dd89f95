// Package settings owns what may be changed while a manager runs: the limits of each queue, a few limits of the manager
// itself, and when schedules are due. One table describes every setting once (name, kind, range, default, meaning); decoding, validation, help, completion
// and the reference page are all read from it.
//
// A value comes from layers, lowest first: the table's default, the default limits of the plugin's manifest, the
// configuration file, and what was changed live. The Store keeps the layers, and hands out the result as an immutable
// Snapshot with a version:
//
//	Apply(changes) -> copy the live layer -> patch -> resolve and validate all of it -> swap one pointer, version+1
//	                                             \-> any problem: nothing changes, every problem is reported
//
// What was changed live is one overlay. Save writes it where it outlives a restart, and Restore lays it over the source at the
// next start; so a saved value can be unset like any other, and is gone from the file with the next save. Undo brings back
// the overlay as it was before the last change, over whatever the file says by then.
//
// It does not own acting on a setting: intake, pool, worker and controller read the Snapshot, or Watch for the next one, and
// do what it says. It does not read files: the configuration hands it a Source, and package overlay below it reads and writes
// the saved changes. Of ours it imports only package
// timetable below it, which reads what a schedule says.
//
// The package has no goroutines and nothing to stop; a watch ends with its context.
package settings
