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
	"github.com/ledgerlake/ledgerlake/pipeline"
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
// looked at, makes or opens the archive, and refuses a store that is not safe.
// A store that does not answer is waited for. The archive comes before the
// probes of writing, so that they have an object to write over and never leave
// one of their own.
func examine(ctx context.Context, log *zap.Logger, p *pipeline.Settings, bucket *s3sink.Bucket) error {
	if err := consult(ctx, log, func() ([]s3sink.Finding, error) { return s3sink.Inspect(ctx, bucket) }); err != nil {
		return err
	}
	probe := func() error {
		return consult(ctx, log, func() ([]s3sink.Finding, error) { return s3sink.Doctor(ctx, bucket, false) })
	}
	err := untilAnswered(ctx, log, func() (err error) { p.Root, err = pipeline.OpenArchive(ctx, *p); return err })
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

// consult logs the warnings among findings, and returns what refuses the store.
func consult(ctx context.Context, log *zap.Logger, look func() ([]s3sink.Finding, error)) error {
	var findings []s3sink.Finding
	err := untilAnswered(ctx, log, func() (err error) { findings, err = look(); return err })
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

// untilAnswered asks until the store answers: no fault of the way to it is a
// verdict on the settings.
func untilAnswered(ctx context.Context, log *zap.Logger, ask func() error) error {
	for attempt := 1; ; attempt++ {
		err := ask()
		if err == nil || !s3sink.Transient(err) {
			return err
		}
		log.Warn("the bucket does not answer; trying again", zap.Int("attempt", attempt), zap.Error(err))
		if pipeline.BackOff(ctx, attempt) != nil {
			return err
		}
	}
}
