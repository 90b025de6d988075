//go:build it

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Measure sums up the files of a folder.
func Measure(folder string) (bytes, files int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		bytes, files = bytes+info.Size(), files+1
		return nil
	})
	return bytes, files, err
}

// Spent is what a process took.
type Spent struct {
	CPU  time.Duration
	Peak int64 // of memory, in bytes
	Out  []byte
	Errs []byte
}

// Spend runs a program to its end, which must be a good one.
func Spend(ctx context.Context, stdin io.Reader, env []string, name string, args ...string) (*Spent, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LEDGERLAKE_") }) // settings
	cmd.Env = append(cmd.Env, env...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", filepath.Base(name), err, tail(out.String()), tail(errs.String()))
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return nil, errors.New("this system does not say what a process took")
	}
	return &Spent{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), usage.Maxrss << 10, out.Bytes(), errs.Bytes()}, nil
}

func tail(s string) string { return s[max(0, len(s)-2000):] }
