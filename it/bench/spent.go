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
	"time"

	"github.com/ledgerlake/ledgerlake/internal/peak"
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
	Peak int64 // of memory, in bytes, but for what it grew by in its last ten milliseconds
	Out  []byte
	Errs []byte
}

// errUnseen: there is no number to print.
var errUnseen = errors.New("this system does not say what a process took")

// Spend runs a program to its end, which must be a good one.
func Spend(ctx context.Context, stdin io.Reader, env []string, name string, args ...string) (*Spent, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LEDGERLAKE_") }) // settings
	cmd.Env = append(cmd.Env, env...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	watch := peak.Begin(cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		watch.End()
		return nil, fmt.Errorf("%s: %w\n%s%s", filepath.Base(name), err, tail(out.String()), tail(errs.String()))
	}
	s := &Spent{CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), Peak: watch.End(), Out: out.Bytes(), Errs: errs.Bytes()}
	if s.Peak == 0 {
		return nil, errUnseen
	}
	return s, nil
}

func tail(s string) string { return s[max(0, len(s)-2000):] }
