// Command ledgerlake-verify checks an archive from its bucket alone, and says
// in plain words what that proves.
//
//	ledgerlake-verify s3://bucket/prefix?endpoint=URL
//	ledgerlake-verify ./copy-of-the-bucket
//
// It wires config, s3sink or a folder, and package proof together, and prints
// the report: only here are flags and the environment read. It never writes to
// an archive.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
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

// run does what the arguments say, and returns the exit code. An error means
// that there is no verdict.
func run(ctx context.Context, args, environ []string, stdout, stderr io.Writer) (int, error) {
	c, args := commandOf(args)
	return c.run(ctx, call{args, environ, stdout, stderr})
}

// verifyArchive verifies the archive that the arguments name, and prints the
// report.
func verifyArchive(ctx context.Context, c call) (int, error) {
	in, err := parse(c.args, c.environ)
	if err != nil {
		return exitCannotRun, err
	}
	if in.print != "" {
		_, err := io.WriteString(c.stdout, in.print)
		return 0, err
	}
	r := ran{began: time.Now()}
	var fault error
	r.report, fault = in.verify(ctx, c.stderr)
	if fault == nil {
		r.exit, fault = r.report.ExitCode(), in.write(c.stdout, r.report)
	}
	if fault != nil {
		r.exit = exitCannotRun
	}
	r.ended = time.Now()
	file := metricsFile{in.metricsFile, targetLabel(in.target)}
	if err := file.write(&r); err != nil {
		fault = errors.Join(fault, err)
		if r.good() {
			r.exit = exitCannotRun // whoever looks at the file would see an older run
		}
	}
	return r.exit, fault
}
