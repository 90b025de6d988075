//go:build it

package parts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Process is a program that runs beside the test, in a process group of its
// own, with its output in a file.
//
// It ends with [Process.Stop]. Should the test die before that, the kernel
// kills it (on Linux), so that no run leaves a server behind.
type Process struct {
	Name string
	Log  string // the file that stdout and stderr go to, appended

	cmd  *exec.Cmd
	done chan struct{}
	once sync.Once
}

// Start starts path with args, in [Environ] of env.
func Start(name, log string, env []string, path string, args ...string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p := &Process{Name: name, Log: log, cmd: exec.Command(path, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env = Environ(env)
	p.cmd.SysProcAttr = ownGroup()
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		p.cmd.Wait() // the exit code is read from ProcessState
		close(p.done)
	}()
	return p, nil
}

// Environ returns the environment of the test without what would change the
// programs under test (settings of ours, and of AWS clients), and with env.
func Environ(env []string) []string {
	kept := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "LEDGERLAKE_") || strings.HasPrefix(v, "AWS_")
	})
	return append(kept, env...)
}

// Pid returns the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Running reports whether the process has not ended yet.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Signal sends sig to the process alone. A process that has ended is no error.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return nil
}

// Wait waits for the process to end and returns its exit code, -1 if a signal
// ended it. It is an error if that takes longer than d.
func (p *Process) Wait(d time.Duration) (int, error) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), nil
	case <-time.After(d):
		return 0, fmt.Errorf("%s still runs after %v", p.Name, d)
	}
}

// Kill kills the whole group with SIGKILL and waits until it is gone.
func (p *Process) Kill() {
	p.once.Do(func() { syscall.Kill(-p.Pid(), syscall.SIGKILL) })
	<-p.done
}

// Stop asks the process to end, waits d, and then kills its group.
func (p *Process) Stop(d time.Duration) (int, error) {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	code, err := p.Wait(d)
	p.Kill()
	return code, err
}

// Output returns all that the process has printed so far.
func (p *Process) Output() string {
	b, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
