package api

import (
	"errors"
	"net"
	"syscall"
)

// peerOf returns the user and the process that opened a connection.
func peerOf(conn *net.UnixConn) (uid uint32, pid int32, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		if failed = err; err == nil {
			uid, pid = cred.Uid, cred.Pid
		}
	})
	return uid, pid, errors.Join(err, failed)
}
