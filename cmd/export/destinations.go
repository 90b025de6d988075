package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/oklog/ulid/v2"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/export/sink"
	"github.com/ledgerlake/ledgerlake/export/stream"
	"github.com/ledgerlake/ledgerlake/proof"
)

const statusHelp = `ledgerlake-export status prints how each destination stands, by what exporters left in the bucket: its state, how many rows
it has not got yet, dead letters, backfills. Nothing is written.

  ledgerlake-export status --bucket s3://audit

Rows count until the cursor has passed them, those that the destination's filter drops too. Cursors are held against the
archive: one that does not fit is named, with exit code 1, and so is a log of which the archive lacks rows that an anchor
states. An exporter does not go on with such logs.
`

// status is the command that prints how destinations stand.
func status(ctx context.Context, c call) (int, error) {
	var asJSON bool
	e, err := newExporter(ctx, c, config.Printing(&asJSON), func(s config.Setting) bool {
		return looking(s) || s.Name == "key" || s.Name == "anchor-keys" || s.Name == "catalog-keys"
	}, statusHelp, nil)
	if e == nil || err != nil {
		return failed(err), err
	}
	if err := e.open(ctx); err != nil {
		return failed(err), err
	}
	names, err := stream.Names(ctx, e.bucket)
	if err != nil {
		return failed(err), err
	}
	all, faults := []*stream.Status{}, []error(nil)
	for _, name := range names {
		s, err := stream.ReadStatus(ctx, e.bucket, e.root, e.ring, name, time.Now)
		if errors.Is(err, stream.ErrNoDestination) {
			continue // nothing but dead letters of one that was taken away by hand
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", name, err)) // others can be read
			continue
		}
		all = append(all, s)
	}
	code, err := printStatus(c, all, asJSON)
	if err := errors.Join(append(faults, err)...); err != nil {
		return failed(err), err
	}
	return code, nil
}

func printStatus(c call, all []*stream.Status, asJSON bool) (code int, err error) {
	for _, s := range all {
		for _, l := range s.Lines {
			if l.Fault != "" || len(l.Misfits) > 0 {
				code = exitTampered
			}
		}
	}
	if asJSON {
		return code, printJSON(c.stdout, struct {
			Destinations []*stream.Status `json:"destinations"`
		}{all})
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(c.stdout, "no destination was ever exported to")
		return code, err
	}
	for _, s := range all {
		if err := printOne(c.stdout, s); err != nil {
			return code, err
		}
	}
	return code, nil
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func printOne(w io.Writer, s *stream.Status) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(t, "%s\t%s, %s since %s", printable(s.Name), printable(s.Type), printable(s.State), moment(s.Since))
	if n := misfits(s); n > 0 {
		_, _ = fmt.Fprintf(t, ", stopped at %s", proof.Count(int64(n), "log"))
	}
	if s.Reason != "" {
		_, _ = fmt.Fprintf(t, ": %s", printable(s.Reason))
	}
	_, _ = fmt.Fprintf(t, "\n  exporter\t%s\n", exporterOf(s))
	_, _ = fmt.Fprintf(t, "  rows\t%d delivered, %d to go", s.Delivered, s.Rows)
	if s.Oldest != nil {
		_, _ = fmt.Fprintf(t, ", the oldest archived %s", moment(*s.Oldest))
	}
	_, _ = fmt.Fprintf(t, "\n  refused\t%d rows, %d dead letters not sent again\n", s.Dead, s.Open)
	if s.Dropped > 0 {
		_, _ = fmt.Fprintf(t, "  dropped\t%d rows, by retention, before they were delivered\n", s.Dropped)
	}
	for i := range s.Lines {
		printLine(t, &s.Lines[i])
	}
	for _, j := range s.Backfills {
		how := "under way"
		if j.Done != nil {
			how = "done " + moment(*j.Done)
		}
		_, _ = fmt.Fprintf(t, "  backfill %s\t%s, %d rows delivered of %d passed\n", j.ID, how, j.Delivered, j.Passed)
	}
	return t.Flush()
}

// misfits counts the logs of all lines that do not fit.
func misfits(s *stream.Status) (n int) {
	for i := range s.Lines {
		n += len(s.Lines[i].Misfits)
	}
	return n
}

// misfitsShown is how many logs of a line are named, of those that do not fit; all
// of them are in what --json prints.
const misfitsShown = 10

func printLine(w io.Writer, l *stream.LineStatus) {
	where := fmt.Sprintf("%s/%d", printable(l.Topic), l.Partition)
	switch {
	case l.Fault != "":
		_, _ = fmt.Fprintf(w, "  %s\t%s\n", where, printable(l.Fault))
	case l.Stored == nil:
		_, _ = fmt.Fprintf(w, "  %s\tnot begun, %d rows to go\n", where, l.Rows)
	default:
		_, _ = fmt.Fprintf(w, "  %s\t%d rows to go, cursors stored %s\n", where, l.Rows, moment(*l.Stored))
	}
	for i, m := range l.Misfits {
		if i == misfitsShown {
			_, _ = fmt.Fprintf(w, "\tand %d logs more that do not fit: --json names them\n", len(l.Misfits)-i)
			break
		}
		_, _ = fmt.Fprintf(w, "\t%s\n", printable(m.Fault))
	}
}

func exporterOf(s *stream.Status) string {
	if s.By == "" {
		return "none"
	}
	return printable(s.By) + ", last sign of life " + moment(s.LastSign)
}

// printable returns a text on one line, without what does not print: it was written
// by whoever can write to the bucket.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

func moment(t archive.Time) string { return t.UTC().Format(time.RFC3339) }

const pauseHelp = `ledgerlake-export pause stops delivery to a destination, until ledgerlake-export resume. Rows are kept: its cursors stay.

  ledgerlake-export pause siem --reason 'maintenance' --bucket s3://audit
`

const resumeHelp = `ledgerlake-export resume goes on with a destination that was paused or suspended, from where it stands.

  ledgerlake-export resume siem --bucket s3://audit
`

func pause(ctx context.Context, c call) (int, error) {
	return setState(ctx, c, stream.Paused, pauseHelp)
}

func resume(ctx context.Context, c call) (int, error) {
	return setState(ctx, c, stream.Active, resumeHelp)
}

func setState(ctx context.Context, c call, state, help string) (int, error) {
	var reason string
	name, rest, err := c.named()
	if err != nil {
		return exitCannotRun, err
	}
	e, err := newExporter(ctx, rest, config.ReasonOf(&reason), looking, help, nil)
	if e == nil || err != nil {
		return failed(err), err
	}
	if err := e.open(ctx); err != nil {
		return failed(err), err
	}
	s, changed, err := stream.SetState(ctx, e.bucket, name, state, reason, c.person(), time.Now())
	if errors.Is(err, stream.ErrNoDestination) {
		return exitIncomplete, err
	}
	if err != nil {
		return failed(err), err
	}
	was := ""
	if !changed {
		was = " already"
	}
	_, err = fmt.Fprintf(c.stdout, "%s is %s%s\n", name, s.State, was)
	return failed(err), err
}

const checkHelp = `ledgerlake-export check sends one event to a destination, which is marked as a test, and prints the answer.

  ledgerlake-export check siem --config export.yaml --bucket s3://audit

Exit code 0 where it was taken, 3 where it was not.
`

// check is the command that tries a destination.
func check(ctx context.Context, c call) (int, error) {
	name, rest, err := c.named()
	if err != nil {
		return exitCannotRun, err
	}
	e, err := newExporter(ctx, rest, config.Section{}, looking, checkHelp, nil)
	if e == nil || err != nil {
		return failed(err), err
	}
	set, err := e.destinationNamed(name)
	if err != nil {
		return failed(err), err
	}
	if err := e.open(ctx); err != nil {
		return failed(err), err
	}
	d := e.destination(ctx, set)
	began := time.Now()
	id, v, err := stream.Probe(ctx, d, e.root, version, rand.Text(), began.UTC())
	if d.Sink != nil {
		defer func() { _ = d.Sink.Close(ctx) }()
	}
	if err != nil {
		return exitCannotRun, fmt.Errorf("%s: %w", name, err)
	}
	took := time.Since(began).Round(time.Millisecond)
	if v.Outcome == sink.Delivered {
		_, err = fmt.Fprintf(c.stdout, "%s took event %s in %v: look for it there\n", name, id, took)
		return failed(err), err
	}
	_, err = fmt.Fprintf(c.stdout, "%s did not take event %s (%v, after %v): %s\n", name, id, v.Outcome, took, v.Reason)
	return exitIncomplete, err
}

const backfillHelp = `ledgerlake-export backfill sends rows once more: it registers what is to be sent, and the running exporter sends it in a
lane of its own, beside what is live. status shows how far it is.

  ledgerlake-export backfill siem --tenant acme --from 2026-11-01 --to 2026-12-01 --bucket s3://audit

Without flags all rows are sent.
`

// backfill is the command that registers one.
func backfill(ctx context.Context, c call) (int, error) {
	var r config.Refill
	name, rest, err := c.named()
	if err != nil {
		return exitCannotRun, err
	}
	e, err := newExporter(ctx, rest, r.Section(), looking, backfillHelp, nil)
	if e == nil || err != nil {
		return failed(err), err
	}
	if !r.From.IsZero() && !r.To.IsZero() && !r.From.Before(r.To) {
		return exitCannotRun, fmt.Errorf("%w: --from is not before --to: no row is in between", errUsage)
	}
	j := stream.Job{Destination: name, Tenants: r.Tenants}
	if r.FromSeq >= 0 {
		j.FromSeq = &r.FromSeq
	}
	if !r.From.IsZero() {
		j.From = &archive.Time{Time: r.From}
	}
	if !r.To.IsZero() {
		j.To = &archive.Time{Time: r.To}
	}
	return e.register(ctx, c, j)
}

// register has a running exporter carry out a job.
func (e *exporter) register(ctx context.Context, c call, j stream.Job) (int, error) {
	if err := e.open(ctx); err != nil {
		return failed(err), err
	}
	if s, err := stream.ReadState(ctx, e.bucket, j.Destination); err != nil || s == nil {
		if err == nil {
			return exitIncomplete, fmt.Errorf("%w: %s was never exported to", stream.ErrNoDestination, j.Destination)
		}
		return failed(err), err
	}
	now := time.Now().UTC()
	id, err := ulid.New(ulid.Timestamp(now), rand.Reader)
	if err != nil {
		return failed(err), err
	}
	j.ID, j.Created = id.String(), archive.Time{Time: now}
	if err := stream.Backfill(ctx, e.bucket, j); err != nil {
		return failed(err), err
	}
	_, err = fmt.Fprintf(c.stdout, "backfill %s of %s is registered: a running exporter begins with it within a minute\n", j.ID, j.Destination)
	return failed(err), err
}

const deadHelp = `ledgerlake-export dead prints what a destination refused for good: which rows, and why. --replay sends them again, once the
cause is mended.

  ledgerlake-export dead siem --bucket s3://audit
`

// dead is the command that lists dead letters, and sends them again.
func dead(ctx context.Context, c call) (int, error) {
	var replay, asJSON bool
	name, rest, err := c.named()
	if err != nil {
		return exitCannotRun, err
	}
	e, err := newExporter(ctx, rest, config.ReplayOf(&replay, &asJSON), looking, deadHelp, nil)
	if e == nil || err != nil {
		return failed(err), err
	}
	if err := e.open(ctx); err != nil {
		return failed(err), err
	}
	j := stream.Job{Destination: name}
	all := []*stream.Letters{}
	for l, err := range stream.DeadLetters(ctx, e.bucket, name) {
		if err != nil {
			return failed(err), err
		}
		all = append(all, l)
		if !l.Replayed {
			j.Dead = append(j.Dead, l.Key)
		}
	}
	if len(all) == 0 {
		if s, err := stream.ReadState(ctx, e.bucket, name); err != nil || s == nil {
			if err != nil {
				return failed(err), err
			}
			return exitIncomplete, fmt.Errorf("%w: %s was never exported to", stream.ErrNoDestination, name)
		}
	}
	if err := printDead(c.stdout, all, asJSON); err != nil || !replay {
		return failed(err), err
	}
	if len(j.Dead) == 0 {
		_, err = fmt.Fprintln(c.stdout, "there is nothing to send again")
		return failed(err), err
	}
	return e.register(ctx, c, j)
}

func printDead(w io.Writer, all []*stream.Letters, asJSON bool) error {
	if asJSON {
		return printJSON(w, struct {
			DeadLetters []*stream.Letters `json:"deadLetters"`
		}{all})
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no dead letters")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, of := range all {
		for _, l := range of.Letters {
			again := ""
			if of.Replayed {
				again = "sent again"
			}
			_, _ = fmt.Fprintf(t, "%s\t%s/%d\t%q\tseq %d\t%s\t%s\t%s\n", moment(l.Time), printable(of.Topic), of.Partition, l.Tenant, l.Seq, printable(l.ID), again, printable(l.Reason))
		}
	}
	return t.Flush()
}
