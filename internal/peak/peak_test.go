//go:build linux

package peak

import (
	"os/exec"
	"testing"
)

// The peak of a program is its own, however much the process holds that starts it.
func TestPeakIsThatOfTheProgram(t *testing.T) {
	const held = 256 << 20
	memory := make([]byte, held)
	for i := 0; i < held; i += 4096 {
		memory[i] = 1
	}
	cmd := exec.CommandContext(t.Context(), "cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := Begin(cmd.Process.Pid)
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	if peak := w.End(); peak <= 0 || peak >= held/4 {
		t.Errorf("cat took %d bytes beside the %d that its parent holds", peak, len(memory))
	}
}

// A process that has ended is not seen, and no number is made up.
func TestPeakOfNobody(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "cat")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if peak := Begin(cmd.Process.Pid).End(); peak != 0 {
		t.Errorf("%d bytes", peak)
	}
}
