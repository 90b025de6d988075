// Command ledgerlake-devstack is a Kafka and an S3 for trying ledgerlake out,
// on this machine alone, with nothing to install.
//
//	ledgerlake-devstack up        a Kafka and an S3 that stay up until Ctrl-C
//	ledgerlake-devstack produce   plausible audit records into a topic, some of them repeats, some broken
//	ledgerlake-devstack demo      all of it in half a minute: produce, ingest, verify, and a flipped byte found
//	ledgerlake-devstack bench     what ingest costs, measured on this machine
//
// The commands demo and bench run the real ledgerlake-ingest and
// ledgerlake-verify, found beside this binary or in --bin.
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
	err := run(ctx, os.Args[1:], os.Stdout)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", program, err)
	}
	os.Exit(exitCode(err))
}

// run does what the arguments say, until it is done or ctx is.
func run(ctx context.Context, args []string, stdout io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("no command: %w", errUsage)
	}
	c, ok := commands[args[0]]
	if !ok {
		return fmt.Errorf("no command %q: %w", args[0], errUsage)
	}
	return c(ctx, args[1:], stdout)
}
