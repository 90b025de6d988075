package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// doctor is the command that probes a bucket and prints what it found.
func doctor(ctx context.Context, in invocation) error {
	var s config.Ingest
	all := s.Sections()
	offered := config.Select(all, func(s config.Setting) bool {
		return s.Name == "bucket" || strings.HasPrefix(s.Name, "s3.") || strings.HasPrefix(s.Name, "anchor-lock")
	})
	_, err := config.Load(all, offered, config.Input{Args: in.args, Environ: in.environ})
	if errors.Is(err, config.ErrHelp) {
		return writeHelp(in.stdout, doctorHelp, offered)
	}
	if err != nil {
		return err
	}
	bucket, err := openBucket(ctx, &s)
	if err != nil {
		return err
	}
	findings, err := s3sink.Doctor(ctx, bucket, true)
	if err := daemon.WriteFindings(in.stdout, findings); err != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("doctor: no verdict: %w", err)
	}
	return s3sink.Verdict(findings)
}

// examine is the short form, for each start of ingest: it logs what is to be
// looked at, makes or opens the archive, and refuses a store that is not safe.
// A store that does not answer is waited for. The archive comes before the
// probes of writing, so that they have an object to write over and never leave
// one of their own.
func examine(ctx context.Context, log *zap.Logger, p *pipeline.Settings, bucket *s3sink.Bucket) error {
	if err := daemon.Consult(ctx, log, func() ([]s3sink.Finding, error) { return s3sink.Inspect(ctx, bucket) }); err != nil {
		return err
	}
	probe := func() error {
		return daemon.Consult(ctx, log, func() ([]s3sink.Finding, error) { return s3sink.Doctor(ctx, bucket, false) })
	}
	err := daemon.UntilAnswered(ctx, log, func() (err error) { p.Root, err = pipeline.OpenArchive(ctx, *p); return err })
	if err != nil {
		// Where the store refused the write, the doctor may know why, and what
		// to set.
		if why := probe(); errors.Is(why, s3sink.ErrUnsafe) {
			return why
		}
		return fmt.Errorf("bucket: %w", err)
	}
	return probe()
}
