package launch

import "syscall"

// attributes put a worker into a group of its own and tie its life to the thread that started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
