// Command ledgerlake-compact turns the segments of an archive into data files,
// and does what its control logs order: erasures, holds, retention.
//
//	ledgerlake-compact run          compact, erase and expire until it is told to stop
//	ledgerlake-compact once         the same, until nothing is left to do now
//	ledgerlake-compact plan         print what would be done now
//	ledgerlake-compact status       print how far each line is
//	ledgerlake-compact erase        order that something is erased; cancel takes it back
//	ledgerlake-compact hold         set a legal hold; release lifts it
//	ledgerlake-compact erasures     print the state of each order
//	ledgerlake-compact retention    order what is due to expire by policy
//	ledgerlake-compact offboard     order that all of a tenant goes
//	ledgerlake-compact doctor       probe bucket and control topic
//	ledgerlake-compact versions     list what the store keeps besides the newest versions
//
// It wires config, s3sink and compaction together and says what they do: only
// here are flags and the environment read, and only here is anything logged.
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
	err := run(ctx, os.Args[1:], os.Environ(), os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
	}
	os.Exit(exitCode(err))
}

// run does what the arguments say, until it is done or ctx is. environ is the
// whole environment and not a way to ask for one variable, because unknown
// variables of ours are errors.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) error {
	if len(args) == 0 {
		return unknownCommand("")
	}
	for _, c := range commands() {
		if c.name == args[0] {
			return c.run(ctx, invocation{args[1:], environ, stdout, stderr})
		}
	}
	switch args[0] {
	case "help", "--help", "-h":
		_, err := io.WriteString(stdout, helpText())
		return err
	case "version", "--version":
		_, err := fmt.Fprintln(stdout, program, version)
		return err
	}
	return unknownCommand(args[0])
}
