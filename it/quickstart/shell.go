//go:build it

package quickstart

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// A shell is bash, into which blocks are pasted one after another: what one
// exports, starts, or changes into is there for the next.
type shell struct {
	dir  string // where blocks and what they print are kept
	cmd  *exec.Cmd
	in   io.WriteCloser
	said *bufio.Scanner
	n    int
}

// newShell starts one in dir.
func newShell(dir string, env []string) (*shell, error) {
	s := &shell{dir: dir, cmd: exec.Command("bash", "--norc", "--noprofile")}
	s.cmd.Dir, s.cmd.Env = dir, env
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	s.said = bufio.NewScanner(out)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	// Where a command fails, -e ends the shell, and the trap says so.
	_, err = io.WriteString(s.in, "exec 3>&1; trap 'echo ended $? >&3' EXIT\n")
	return s, err
}

// kill ends the shell, and all that was started in it.
func (s *shell) kill() {
	syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL)
	s.cmd.Wait()
}

// paste runs commands in the shell itself, of which each must succeed. It
// returns what was printed, and the exit code of the last that ran.
func (s *shell) paste(commands string) (string, int, error) {
	return s.source("set -e -o pipefail; . %s; set +e +o pipefail", "set -e\n"+commands)
}

// ask runs commands in a copy of the shell, of which the last one says how it ended.
func (s *shell) ask(commands string) (string, int, error) {
	return s.source("(trap - EXIT; . %s)", commands)
}

// source has the shell read commands from a file, so that no program reads
// them from its standard input.
func (s *shell) source(how, commands string) (string, int, error) {
	s.n++
	name := filepath.Join(s.dir, fmt.Sprintf("block-%02d", s.n))
	if err := os.WriteFile(name+".sh", []byte(commands), 0o600); err != nil {
		return "", 0, err
	}
	how = fmt.Sprintf(how, "'"+name+".sh'")
	if _, err := fmt.Fprintf(s.in, "{ %s; } </dev/null >'%s.out' 2>&1; echo ended $? >&3\n", how, name); err != nil {
		return "", 0, err
	}
	code, err := s.ended()
	said, readErr := os.ReadFile(name + ".out")
	if err == nil {
		err = readErr
	}
	return string(said), code, err
}

func (s *shell) ended() (int, error) {
	if !s.said.Scan() {
		return 0, fmt.Errorf("the shell is gone: %v", s.said.Err())
	}
	return strconv.Atoi(strings.TrimPrefix(s.said.Text(), "ended "))
}
