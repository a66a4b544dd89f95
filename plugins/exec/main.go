// Command exec runs any command as a worker, over lines of JSON on its standard streams or once for each task. A manager
// starts it; started by hand it explains itself. PROTOCOL.md describes what it says to the command.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/drover-jobs/drover/plugins/exec/internal/bridge"
	"github.com/drover-jobs/drover/protocol"
)

const exitUsage = 2

func main() {
	line, err := bridge.ParseCommandLine(os.Args[1:])
	byManager := os.Getenv(protocol.CookieKey) == protocol.CookieValue
	switch {
	case errors.Is(err, bridge.ErrHelp):
		_, _ = fmt.Fprint(os.Stdout, bridge.Usage())
		return
	case err != nil:
		_, _ = fmt.Fprintf(os.Stderr, "exec: %v\n", err)
		if !byManager {
			_, _ = fmt.Fprintf(os.Stderr, "\n%s", bridge.Usage())
		}
		os.Exit(exitUsage)
	case line.Describe:
		os.Args = []string{os.Args[0], "--describe"} // the SDK's own word, which must come first
	case !byManager:
		_, _ = fmt.Fprint(os.Stderr, bridge.Usage())
		os.Exit(1)
	}
	bridge.Program(line, os.Stderr).Serve()
}
