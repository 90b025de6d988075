package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// doctor is the command that probes a bucket and the control topic, and prints
// what it found.
func doctor(ctx context.Context, in invocation) error {
	var c config.Compact
	origins, done, err := load(in, &c, config.Section{}, func(s config.Setting) bool {
		return ordering(s) && s.Name != "retention-file" || s.Name == "catalog-lock" || s.Name == "catalog-lock-days"
	}, doctorHelp)
	if done || err != nil {
		return err
	}
	t, err := newTool(ctx, in, &c, origins, nil)
	if err != nil {
		return err
	}
	findings, err := s3sink.DoctorCompact(ctx, t.bucket, true)
	if err := daemon.WriteFindings(in.stdout, findings); err != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("doctor: no verdict: %w", err)
	}
	return errors.Join(s3sink.Verdict(findings))
}
