//go:build !unix

package sdk

import "os"

// splitStdout leaves everything as it is.
func splitStdout() *os.File { return nil }

// keepFromChildren does nothing: children inherit nothing here.
func keepFromChildren(uint64) {}
