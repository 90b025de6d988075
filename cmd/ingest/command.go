package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// program is what the binary is called.
const program = "ledgerlake-ingest"

// An invocation is what a command is run with.
type invocation struct {
	args           []string // behind the command's name
	environ        []string
	stdout, stderr io.Writer
}

// commands are what the first argument can be.
var commands = map[string]func(context.Context, invocation) error{
	"run":         ingest,
	"doctor":      doctor,
	"scrub":       scrub,
	"versions":    versions,
	"reset-chain": resetChain,
	"help":        help,
	"--help":      help,
	"-h":          help,
	"version":     printVersion,
	"--version":   printVersion,
}

// split parts the command's name from its arguments.
func split(args []string) (name string, rest []string) {
	if len(args) == 0 {
		return "", nil
	}
	return args[0], args[1:]
}

// errUsage: the arguments are not understood.
var errUsage = errors.New("not understood")

func unknownCommand(name string) error {
	return daemon.UnknownCommand(errUsage, name, "run", "doctor", "scrub", "versions", "reset-chain")
}

func help(_ context.Context, in invocation) error {
	_, err := io.WriteString(in.stdout, helpText)
	return err
}

func printVersion(_ context.Context, in invocation) error {
	_, err := fmt.Fprintln(in.stdout, program, version)
	return err
}

// The exit codes.
const (
	exitClean   = 0
	exitFailure = 1
	exitBadUse  = 2 // bad configuration: nothing was done
	exitBack    = 3 // the bucket does not hold what Kafka knows that it held
)

// exitCode returns the exit code of an error of run.
func exitCode(err error) int {
	var fault *config.Error
	switch {
	case err == nil:
		return exitClean
	case errors.As(err, &fault), errors.Is(err, errUsage):
		return exitBadUse
	case errors.Is(err, pipeline.ErrWentBack):
		return exitBack
	}
	return exitFailure
}
