//go:build it

package main

import (
	"fmt"
	"syscall"
)

// A disk is a file system in memory that can be made full.
type disk struct{ dir string }

// room is what the disk holds, in KiB, when it is not full.
const room = 8 << 20

// mountDisk mounts a new disk on dir. The caller must be alone in its mount
// namespace, so that nothing is left when it dies.
func mountDisk(dir string) (*disk, error) {
	if err := syscall.Mount("ledgerlake", dir, "tmpfs", 0, sizeOption(room)); err != nil {
		return nil, fmt.Errorf("mount: %w", err)
	}
	return &disk{dir}, nil
}

// fill leaves no room but what is in use. Writers go on meanwhile, so that more
// may be in use than it has just seen.
func (d *disk) fill() error {
	var err error
	for range 20 {
		var s syscall.Statfs_t
		if err := syscall.Statfs(d.dir, &s); err != nil {
			return err
		}
		used := (int64(s.Blocks) - int64(s.Bfree)) * int64(s.Bsize)
		if err = d.resize(used/1024 + 64); err == nil {
			return nil
		}
	}
	return err
}

// free gives the room back.
func (d *disk) free() error { return d.resize(room) }

func (d *disk) resize(kib int64) error {
	return syscall.Mount("ledgerlake", d.dir, "tmpfs", syscall.MS_REMOUNT, sizeOption(kib))
}

func (d *disk) unmount() error { return syscall.Unmount(d.dir, syscall.MNT_DETACH) }

func sizeOption(kib int64) string { return fmt.Sprintf("size=%dk", kib) }
