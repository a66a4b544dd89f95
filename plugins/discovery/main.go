// Command discovery is the worker that finds the feeds behind an address. A manager starts it; started by hand it explains
// itself.
package main

import "github.com/drover-jobs/drover/plugins/discovery/internal/discover"

func main() { discover.Program().Serve() }
