package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/daemon"
	"github.com/ledgerlake/ledgerlake/kafka"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// doctor is the command that probes a bucket and the control topic, and prints
// what it found.
func doctor(ctx context.Context, in invocation) error {
	var c config.Compact
	var o config.Operators
	origins, done, err := load(in, &c, o.Section(), func(s config.Setting) bool {
		return ordering(s) && s.Name != "retention-file" || s.Name == "catalog-lock" || s.Name == "catalog-lock-days" || s.Name == "compact.sql-manifests"
	}, doctorHelp)
	if done || err != nil {
		return err
	}
	t, err := newTool(ctx, in, &c, origins, nil)
	if err != nil {
		return err
	}
	findings, err := t.consult(ctx, true)
	control, topicErr := t.lookAtControl(ctx, append([]string{}, o.Principals...))
	if err := daemon.WriteFindings(in.stdout, append(findings, control...)); err != nil {
		return err
	}
	if err != nil {
		return fmt.Errorf("doctor: no verdict: %w", err)
	}
	return errors.Join(s3sink.Verdict(findings), topicErr)
}

// consult probes the bucket for what the settings need.
func (t *tool) consult(ctx context.Context, full bool) ([]s3sink.Finding, error) {
	findings, err := s3sink.DoctorCompact(ctx, t.bucket, full)
	if err != nil || !t.settings.Manifests {
		return findings, err
	}
	more, err := s3sink.DoctorManifests(ctx, t.bucket)
	return append(findings, more...), err
}

// controlPatience is how long brokers may take to tell of the control topic.
const controlPatience = 30 * time.Second

// lookAtControl looks at the control topic, where there is one.
func (t *tool) lookAtControl(ctx context.Context, principals []string) (findings []s3sink.Finding, err error) {
	if t.settings.ControlTopic == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, controlPatience)
	defer cancel()
	remarks, err := kafka.LookAtControlTopic(ctx, t.kafka, t.settings.ControlTopic, principals)
	if err != nil {
		return nil, fmt.Errorf("control topic: no verdict: %w", err)
	}
	for _, r := range remarks {
		f := s3sink.Finding{Name: r.Name, Level: s3sink.OK, Detail: r.Text}
		if r.Warn {
			f.Level = s3sink.Warn
		}
		findings = append(findings, f)
	}
	return findings, nil
}
