//go:build unix && !linux

package actor

import "syscall"

// attributes puts a child into a group of its own. There is no way here to tie its life to ours.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
