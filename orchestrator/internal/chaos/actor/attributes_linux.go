package actor

import "syscall"

// attributes puts a child into a group of its own and ties its life to the thread that started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
