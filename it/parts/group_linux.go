//go:build it

package parts

import "syscall"

// ownGroup lets a child lead a group of its own, and die with us.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
