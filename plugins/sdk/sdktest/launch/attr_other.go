//go:build !linux

package launch

import "syscall"

// attributes put a worker into a group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
