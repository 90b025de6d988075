//go:build it

package parts

import "syscall"

// maxrssUnit is the unit of Rusage.Maxrss in bytes.
const maxrssUnit = 1024

// ownGroup lets a child lead a group of its own, and die with us.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
