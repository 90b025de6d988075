//go:build it

// Command with runs another command while a separate S3 server is up, for the
// tests of rooms that need one and start none.
//
//	LEDGERLAKE_IT_S3      the URL of an empty bucket, as ledgerlake knows buckets
//	AWS_ACCESS_KEY_ID …   credentials for it
//
// It ends with the command's exit code, and leaves nothing behind.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ledgerlake/ledgerlake/it/parts"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return
	case errors.As(err, &exit):
		os.Exit(max(exit.ExitCode(), 1))
	}
	fmt.Fprintln(os.Stderr, "with:", err)
	os.Exit(2)
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("want a command to run")
	}
	dir, err := os.MkdirTemp("", "ledgerlake-it-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s3, err := parts.StartS3(filepath.Join(dir, "s3"))
	if err != nil {
		return err
	}
	defer s3.Kill()
	if err := parts.MakeBucket(ctx, s3.Endpoint, "archive"); err != nil {
		return err
	}
	return command(ctx, s3, args)
}

func command(ctx context.Context, s3 *parts.S3, args []string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), parts.Credentials()...)
	cmd.Env = append(cmd.Env, "LEDGERLAKE_IT_S3="+parts.BucketURL(s3.Endpoint, "archive"))
	return cmd.Run()
}
