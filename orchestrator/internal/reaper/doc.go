// Package reaper makes sure that no process of a worker outlives its worker or its manager.
//
// What belongs to a worker is told in three ways, because a process can leave each of them:
//
//	environment     DROVER_WORKER_DIR names the worker's own directory below the manager's; children inherit it
//	process group   the launcher notes every worker's group in the manager's directory: pid, start time, session, boot
//	descent         strays are descendants that were seen to lead a group of their own while their parents lived; their groups
//	                are noted as well
//
// A manager inherits what its workers orphan (Inherit), so that it sees the orphans, counts them to their workers and kills those
// that belong to nobody. A process that leaves the group, cleans its environment and is orphaned in the last moment of a manager
// that is killed is not found.
//
// Three parties use it. The launcher kills what a worker that ended has left. The reaper, a small process of its own, waits for
// the end of the manager, however it comes, kills what is left and removes the directory; a Keeper in the manager starts it and
// replaces it when it dies. A manager that starts sweeps the directories of dead ones, for when the reaper was killed as well.
//
// A process number may be given away again, so no signal is sent to a number: it goes to a process that is held by a file
// descriptor and whose start time was compared after that (pidfd_open(2)).
//
// The package is a leaf: it knows no worker, only directories and processes. Linux only.
package reaper
