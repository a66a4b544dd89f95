// Command feed-pull is the worker that pulls one feed: it fetches, reads and stores it. A manager starts it; started by hand it
// explains itself.
package main

import "github.com/drover-jobs/drover/plugins/feed-pull/internal/pull"

func main() { pull.Program().Serve() }
