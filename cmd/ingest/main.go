// Command ledgerlake-ingest archives Kafka topics as hash-chained Parquet
// segments in an S3 bucket.
//
//	ledgerlake-ingest run           read topics until it is told to stop
//	ledgerlake-ingest doctor        probe a bucket: is it safe to keep an archive in?
//	ledgerlake-ingest scrub         show what a policy of scrubbing makes of lines
//	ledgerlake-ingest versions      print what is known of the versions of AuditableCall
//	ledgerlake-ingest reset-chain   declare a bad tail void, and begin its logs anew
//
// It wires config, s3sink and pipeline together and says what they do: only
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
	name, args := split(args)
	c, ok := commands[name]
	if !ok {
		return unknownCommand(name)
	}
	return c(ctx, invocation{args, environ, stdout, stderr})
}
