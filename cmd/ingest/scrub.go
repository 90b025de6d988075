package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/redact"
)

// scrub is the command that shows what a policy makes of lines.
func scrub(_ context.Context, in invocation) error {
	var s config.Ingest
	var trial config.Scrub
	all := append([]config.Section{trial.Section()}, s.Sections()...)
	offered := config.Select(all, func(s config.Setting) bool { return s.Name == "in" || s.Name == "tenant" || s.Name == "scrub-policy" })
	origins, err := config.Load(all, offered, config.Input{Args: in.args, Environ: in.environ})
	if errors.Is(err, config.ErrHelp) {
		return writeHelp(in.stdout, scrubHelp, offered)
	}
	if err != nil {
		return err
	}
	policy, err := config.ReadScrubPolicy(s.ScrubPolicy, origins)
	if err != nil {
		return err
	}
	if policy == nil {
		return &config.Error{Name: "scrub-policy", Fault: "not set: want the path of a file"}
	}
	from := os.Stdin
	if trial.In != "" {
		if from, err = os.Open(trial.In); err != nil {
			return &config.Error{Name: "in", Source: origins["in"], Fault: err.Error()}
		}
		defer func() { _ = from.Close() }()
	}
	lines, changed, err := scrubLines(in.stdout, from, policy, trial.Tenant)
	_, _ = fmt.Fprintf(in.stderr, "%s: %d of %d lines changed\n", policy.ID(), changed, lines)
	return err
}

// scrubLines writes lines as they would be stored.
func scrubLines(w io.Writer, from io.Reader, p *redact.Policy, tenant string) (lines, changed int, err error) {
	r := bufio.NewReader(from)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			lines++
			text, fault := p.Try(tenant, bytes.TrimSuffix(line, []byte("\n")))
			if fault != nil {
				return lines, changed, fmt.Errorf("line %d: %w", lines, fault)
			}
			if !bytes.Equal(text, bytes.TrimSuffix(line, []byte("\n"))) {
				changed++
			}
			if _, fault := w.Write(append(text, '\n')); fault != nil {
				return lines, changed, fault
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return lines, changed, nil
		case err != nil:
			return lines, changed, err
		}
	}
}
