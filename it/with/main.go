//go:build it

// Command with runs another command while a separate S3 server is up, for the
// tests of rooms that need one and start none.
//
//	LEDGERLAKE_IT_S3      the URL of an empty bucket, as ledgerlake knows buckets
//	LEDGERLAKE_IT_S3_MORE of three more: with versions, with versions suspended, with Object Lock
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
	"strings"
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
	more, err := moreBuckets(ctx, s3.Endpoint)
	if err != nil {
		return err
	}
	return command(ctx, s3, more, args)
}

// moreBuckets makes buckets that keep versions, and returns their URLs.
func moreBuckets(ctx context.Context, endpoint string) (urls []string, err error) {
	for _, name := range []string{"versioned", "suspended", "locked"} {
		if name == "locked" {
			err = parts.MakeLockBucket(ctx, endpoint, name)
		} else {
			err = parts.MakeBucket(ctx, endpoint, name)
		}
		if err == nil && name != "locked" {
			err = parts.SetVersioning(ctx, endpoint, name, true)
		}
		if err == nil && name == "suspended" {
			err = parts.SetVersioning(ctx, endpoint, name, false)
		}
		if err != nil {
			return nil, err
		}
		urls = append(urls, parts.BucketURL(endpoint, name))
	}
	return urls, nil
}

func command(ctx context.Context, s3 *parts.S3, more, args []string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), parts.Credentials()...)
	cmd.Env = append(cmd.Env, "LEDGERLAKE_IT_S3="+parts.BucketURL(s3.Endpoint, "archive"), "LEDGERLAKE_IT_S3_MORE="+strings.Join(more, " "))
	return cmd.Run()
}
