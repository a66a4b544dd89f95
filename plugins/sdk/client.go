package sdk

import (
	"fmt"
	"os"

	"github.com/drover-jobs/drover/protocol"
	"github.com/drover-jobs/drover/protocol/client"
)

// Client returns a client of the manager that started this process, with the right to submit tasks and to wait for them. It
// connects when it is first used; the caller closes it. The error says that the program was not started by a manager, or
// by one that offers no API to its workers.
func Client() (client.Client, error) {
	address := os.Getenv(protocol.EnvAPI)
	if address == "" {
		return nil, fmt.Errorf("reach the manager: %s is not set: this program was not started by a manager that offers its API to workers", protocol.EnvAPI)
	}
	c, err := client.Dial(address)
	if err != nil {
		return nil, fmt.Errorf("reach the manager at %s=%q: %w", protocol.EnvAPI, address, err)
	}
	return c, nil
}
