// Command ledgerlake-export answers from an archive, and sends it elsewhere.
//
//	ledgerlake-export turn      the records of a turn, in order
//	ledgerlake-export session   the records of a session, the newest first
//	ledgerlake-export range     the records of a range of time
//	ledgerlake-export record    the record of an id, or of a place in a log
//	ledgerlake-export subject   all records of a person
//	ledgerlake-export replay    a bundle from which a turn can be run again
//
//	ledgerlake-export stream    send rows to destinations, for as long as it runs
//	ledgerlake-export status    how destinations stand; pause and resume change that
//	ledgerlake-export check     send a test event to a destination
//	ledgerlake-export backfill  send rows once more; dead lists those that were refused
//
// It wires config, the store, and the packages of export together: only here are
// flags and the environment read. What is shown of a record is what governs the
// archive lets be shown.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// version is set by the linker: make build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	context.AfterFunc(ctx, stop) // from the first signal on, a second one has its default effect
	code, err := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
	}
	os.Exit(code)
}

// run does what the arguments say, and returns the exit code. An error is what is
// still to be said.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (int, error) {
	if len(args) == 0 {
		return exitCannotRun, unknownCommand("")
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, call{args[1:], environ, stdout, stderr})
		}
	}
	switch args[0] {
	case "help", "--help", "-h":
		_, err := io.WriteString(stdout, help())
		return exitDone, err
	case "version", "--version":
		_, err := fmt.Fprintln(stdout, program, version)
		return exitDone, err
	}
	return exitCannotRun, unknownCommand(args[0])
}
