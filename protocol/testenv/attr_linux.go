package testenv

import "syscall"

// processAttr puts a server into a group of its own, to be killed with its children, and ties its life to the
// thread that started it.
func processAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
