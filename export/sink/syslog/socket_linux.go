package syslog

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// unacknowledged returns how many bytes of a TCP socket the other system has not
// acknowledged, FIN included, or the error that the socket ended with.
func unacknowledged(raw syscall.Conn) (left int, err error) {
	if raw == nil {
		return 0, nil
	}
	sock, err := raw.SyscallConn()
	if err != nil {
		return 0, err
	}
	controlErr := sock.Control(func(fd uintptr) {
		var errno int
		if errno, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err == nil && errno != 0 {
			err = syscall.Errno(errno)
		}
		if err == nil {
			left, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
		}
	})
	if controlErr != nil {
		return 0, controlErr
	}
	return left, err
}
