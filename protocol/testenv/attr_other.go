//go:build unix && !linux

package testenv

import "syscall"

// processAttr puts a server into a group of its own, to be killed with its children. Only Linux can also tie its
// life to that of the test process.
func processAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
