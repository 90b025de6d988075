package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// binaries are the programs of ours that a demonstration runs.
type binaries struct {
	ingest, verify string // absolute paths
}

// findBinaries looks in dir, or beside this program where dir is "".
func findBinaries(dir string) (b binaries, err error) {
	if dir == "" {
		self, err := os.Executable()
		if err != nil {
			return b, err
		}
		dir = filepath.Dir(self)
	}
	if b.ingest, err = findBinary(dir, "ledgerlake-ingest"); err != nil {
		return b, err
	}
	b.verify, err = findBinary(dir, "ledgerlake-verify")
	return b, err
}

func findBinary(dir, name string) (string, error) {
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(path); err != nil || info.IsDir() {
		return "", fmt.Errorf("%w: no %s in %s: build it (make build), or say where it is with --bin", errCannotRun, name, dir)
	}
	return path, nil
}

// beside is how a person in the folder here would call another program of
// ours: by its path where it lies below, else by its name.
func beside(here, name string) string {
	self, err := os.Executable()
	if err != nil {
		return name
	}
	if path := relative(here, filepath.Join(filepath.Dir(self), name)); !filepath.IsAbs(path) {
		return path
	}
	return name
}

// A child is a process that this one started, and that it ends.
type child struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how, after done
}

// startChild starts a program in the folder dir, its output going to out.
func startChild(dir string, env []string, out io.Writer, path string, args ...string) (*child, error) {
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, out, out
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%w: %v", errCannotRun, err)
	}
	c := &child{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = cmd.Wait()
	}()
	return c, nil
}

// stop asks the process to end and waits. One that does not end in time is
// killed, which is an error, as is an exit code other than 0.
func (c *child) stop(within time.Duration) error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-c.done:
		return c.err
	case <-time.After(within):
		c.kill()
		return fmt.Errorf("%s did not end within %v of SIGTERM", filepath.Base(c.cmd.Path), within)
	}
}

// kill ends the process at once, if it is still there.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // an error means that it has ended
	<-c.done
}

// childEnv is the environment of a child: this process's own without settings
// that would lead it elsewhere, and what is added.
func childEnv(added []string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AWS_") && !strings.HasPrefix(v, "LEDGERLAKE_") {
			env = append(env, v)
		}
	}
	return append(env, added...)
}

// runVerify runs verify over an archive and returns what it said and its exit
// code.
func runVerify(ctx context.Context, path, dir string, args ...string) (said string, code int, err error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir, cmd.Env = dir, childEnv(nil)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
		return string(out), exit.ExitCode(), nil
	}
	return string(out), 0, err
}
