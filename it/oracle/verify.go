//go:build it

package oracle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"

	"github.com/ledgerlake/ledgerlake/it/parts"
)

// The exit codes of ledgerlake-verify. Source: docs/format.md, section 7.
const (
	Proved   = 0
	Tampered = 1
	CannotDo = 2
	LessThan = 3 // less than asked for was proved
	LookAt   = 4 // proved, with something to look at
)

// A Verdict is what ledgerlake-verify said.
type Verdict struct {
	Code   int
	Stdout string
	Stderr string
}

// A Report is what verify --json prints, as far as tests ask.
type Report struct {
	Exit   int
	Totals struct {
		Segments, Rows, Made, Duplicates int64
		Rejects                          map[string]int64 // rows, by reason
		Gaps                             map[string]int64 // offsets, by cause
	}
	Faults []struct {
		Key    string
		Tenant string
		Seq    *int64
	}
}

// Report reads the output of verify --json.
func (v Verdict) Report() (r Report, err error) {
	if err := json.Unmarshal([]byte(v.Stdout), &r); err != nil {
		return r, fmt.Errorf("verify --json prints no report: %w: %s%s", err, v.Stdout, v.Stderr)
	}
	return r, nil
}

// Verify runs ledgerlake-verify on a bucket URL or a folder, in
// [parts.Environ] of env. Without a --key among args it asks for consistency
// alone.
func Verify(target string, env []string, args ...string) (Verdict, error) {
	if !slices.Contains(args, "--key") {
		args = append(args, "--allow-unsigned")
	}
	cmd := exec.Command(parts.Binary("ledgerlake-verify"), append(args, target)...)
	cmd.Env = parts.Environ(env)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return Verdict{}, err
	}
	return Verdict{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}, nil
}
