package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/ledgerlake/ledgerlake/internal/devstack"
)

// program is what the binary is called.
const program = "ledgerlake-devstack"

// commands are what the first argument can be.
var commands = map[string]func(ctx context.Context, args []string, stdout io.Writer) error{
	"up": up, "produce": produceCommand, "demo": demo, "bench": bench,
	"help": help, "--help": help, "-h": help,
	"version": printVersion, "--version": printVersion,
}

// The causes of an exit code of 2: nothing was done.
var (
	// errUsage: the arguments name no command.
	errUsage = errors.New("want up, produce, demo or bench; --help says more")
	// errBadFlag: a flag cannot be read, or its value is not possible.
	errBadFlag = errors.New("bad flag")
	// errCannotRun: something that is needed is not there.
	errCannotRun = errors.New("cannot run")
)

// The exit codes.
const (
	exitDone   = 0
	exitWrong  = 1 // something is not as it should be
	exitBadUse = 2 // nothing was done
)

func exitCode(err error) int {
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errUsage), errors.Is(err, errBadFlag), errors.Is(err, errCannotRun),
		errors.Is(err, devstack.ErrPortTaken), errors.Is(err, devstack.ErrInUse), errors.Is(err, devstack.ErrPartitions):
		return exitBadUse
	}
	return exitWrong
}

const overview = `ledgerlake-devstack: a Kafka and an S3 for trying ledgerlake out, on this machine alone.

  ledgerlake-devstack demo      all of it in half a minute: begin here
  ledgerlake-devstack up        a Kafka and an S3 that stay up until Ctrl-C, their data as plain files
  ledgerlake-devstack produce   plausible audit records of agents into a topic
  ledgerlake-devstack bench     what ledgerlake-ingest costs on this machine

Each command explains itself with --help.
Exit codes: 0 done, 1 something is not as it should be, 2 nothing was done (bad flags, a port that is taken).
`

func help(_ context.Context, _ []string, stdout io.Writer) error {
	_, err := io.WriteString(stdout, overview)
	return err
}

func printVersion(_ context.Context, _ []string, stdout io.Writer) error {
	_, err := fmt.Fprintln(stdout, program, version)
	return err
}

// A flagSet reads the flags of one command.
type flagSet struct {
	*pflag.FlagSet
	about string // what --help says above the flags
}

func newFlags(command, about string) *flagSet {
	f := &flagSet{pflag.NewFlagSet(command, pflag.ContinueOnError), about}
	f.SortFlags = false
	f.Usage = func() {}
	return f
}

// parse reads the arguments. It reports false where help was asked for and
// given, and nothing is left to do.
func (f *flagSet) parse(args []string, stdout io.Writer) (bool, error) {
	switch err := f.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		_, err := fmt.Fprintf(stdout, "%s\nFlags:\n%s", f.about, f.FlagUsages())
		return false, err
	case err != nil:
		return false, fmt.Errorf("%s: %w: %v", f.Name(), errBadFlag, err)
	case f.NArg() > 0:
		return false, fmt.Errorf("%s: %w: %q is no flag", f.Name(), errBadFlag, f.Arg(0))
	}
	return true, nil
}

// share checks that a flag is a share, from 0 to 1.
func (f *flagSet) share(name string, v float64) error {
	if math.IsNaN(v) || v < 0 || v > 1 {
		return fmt.Errorf("%s: %w: --%s is %v, want a share from 0 to 1", f.Name(), errBadFlag, name, v)
	}
	return nil
}

// atLeast checks a number of things.
func (f *flagSet) atLeast(name string, v, least int) error {
	if v < least {
		return fmt.Errorf("%s: %w: --%s is %d, want at least %d", f.Name(), errBadFlag, name, v, least)
	}
	return nil
}

// thousands writes a count for people: 12,345.
func thousands[T ~int | ~int64](n T) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// size writes a number of bytes for people.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
