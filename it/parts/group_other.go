//go:build it && !linux

package parts

import "syscall"

// ownGroup lets a child lead a group of its own.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
