// Package peak tells how much memory another process was resident with at most.
//
// What wait4 says of a child that has ended (ru_maxrss) is no use: Linux counts in
// it what the process held before exec, which is the memory of whoever started it.
// So the peak is read from /proc/PID/status, VmHWM, every ten milliseconds while
// the process runs (proc_pid_status(5)): it is exact but for what the process grew
// by in its last ten. Other systems do not say it, and the answer is 0.
package peak

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
)

// A Watch reads the peak of one process.
type Watch struct {
	ended chan struct{}
	peak  chan int64
}

// Begin begins with a process that was started, and has read once when it returns.
func Begin(pid int) *Watch {
	w := &Watch{ended: make(chan struct{}), peak: make(chan int64, 1)}
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

// End returns what was read, in bytes: 0 where nothing could be. It is called once,
// also after the process has ended.
func (w *Watch) End() int64 {
	close(w.ended)
	return <-w.peak
}

// peakOf reads VmHWM, which is in KiB. A process that has ended has none.
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
