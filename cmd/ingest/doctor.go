package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"go.uber.org/zap"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// doctor is the command that probes a bucket and prints what it found.
func doctor(ctx context.Context, in invocation) error {
	var s config.Ingest
	all := s.Sections()
	offered := config.Select(all, func(s config.Setting) bool {
		return s.Name == "bucket" || strings.HasPrefix(s.Name, "s3.")
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
	if err := writeFindings(in.stdout, findings); err != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("doctor: no verdict: %w", err)
	}
	return s3sink.Verdict(findings)
}

// writeFindings writes one line a finding.
func writeFindings(w io.Writer, findings []s3sink.Finding) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range findings {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\n", f.Level, f.Name, f.Detail)
	}
	return table.Flush() // has the error of any write before
}

// examine is the short form, for each start of ingest: it logs what is to be
// looked at, and refuses a store that is not safe.
func examine(ctx context.Context, log *zap.Logger, bucket *s3sink.Bucket) error {
	findings, err := s3sink.Doctor(ctx, bucket, false)
	if err != nil {
		return fmt.Errorf("bucket: %w", err)
	}
	for _, f := range findings {
		if f.Level == s3sink.Warn {
			log.Warn("bucket", zap.String("finding", f.Name), zap.String("detail", f.Detail))
		}
	}
	return s3sink.Verdict(findings)
}
