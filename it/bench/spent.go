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
	"strconv"
	"strings"
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
	peak := watchPeak(cmd.Process.Pid)
	if err := cmd.Wait(); err != nil {
		peak.stop()
		return nil, fmt.Errorf("%s: %w\n%s%s", filepath.Base(name), err, tail(out.String()), tail(errs.String()))
	}
	s := &Spent{CPU: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), Peak: peak.stop(), Out: out.Bytes(), Errs: errs.Bytes()}
	if s.Peak == 0 {
		return nil, errUnseen
	}
	return s, nil
}

// A peakWatch reads the most memory that a process was resident with while it
// runs. What wait4 says afterwards (ru_maxrss) is no use: Linux counts in it what
// the process held before exec, which is the memory of whoever started it, here
// one that holds the whole archive.
type peakWatch struct {
	ended chan struct{}
	peak  chan int64
}

// watchPeak begins with a process that was started, and has read once when it
// returns.
func watchPeak(pid int) *peakWatch {
	w := &peakWatch{ended: make(chan struct{}), peak: make(chan int64, 1)}
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", pid)) // stays that of this process, whoever has the number next
	if err != nil {
		w.peak <- 0
		return w
	}
	first := peakOf(status)
	go func() {
		defer status.Close()
		most, tick := first, time.NewTicker(10*time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-w.ended:
				w.peak <- most
				return
			case <-tick.C:
				most = max(most, peakOf(status))
			}
		}
	}()
	return w
}

// stop returns what was read, in bytes: 0 where nothing could be.
func (w *peakWatch) stop() int64 {
	close(w.ended)
	return <-w.peak
}

// peakOf reads VmHWM, which is in KiB (proc_pid_status(5)). A process that has
// ended has none.
func peakOf(status io.ReaderAt) int64 {
	b := make([]byte, 8<<10)
	n, _ := status.ReadAt(b, 0)
	_, rest, ok := strings.Cut(string(b[:n]), "\nVmHWM:")
	line, _, whole := strings.Cut(rest, "kB\n")
	kib, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if !ok || !whole || err != nil {
		return 0
	}
	return kib << 10
}

func tail(s string) string { return s[max(0, len(s)-2000):] }
