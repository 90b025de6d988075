package main

import (
	"context"
	"fmt"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/internal/reach"
	"github.com/ledgerlake/ledgerlake/proof"
)

const rowHelp = `ledgerlake-verify row prints a row for a person, and checks its proof.

  ledgerlake-verify row [flags] RECORD-ID TARGET
  ledgerlake-verify row [flags] --tenant NAME --seq N TARGET
  ledgerlake-verify row [flags] --offset N --topic NAME --partition N TARGET

Exit codes, the first that holds:
  2  cannot run
  1  what is stored does not fit together
  3  no such row, no anchor covers it yet, or the anchor is not signed by a given key
  4  proved, with something to look at: the row was erased with its header
  0  proved

Flags:
  --json
        Print the answer as one JSON object.
` + reach.LogKeysHelp + locateHelp + proverHelp

func row(ctx context.Context, c call) (int, error) {
	s := newSeeker("row")
	s.rows()
	s.BoolVar(&s.json, "json", false, "")
	var logs reach.LogKeys
	logs.Define(s.Flags)
	target, err := s.parseRow(c.args)
	if err != nil {
		return showHelp(c, rowHelp, err)
	}
	p, closeSource, err := s.prover(ctx, target, c)
	if err != nil {
		return outcome(c, err)
	}
	defer closeSource()
	found, err := p.Find(ctx, s.want)
	if err != nil {
		return outcome(c, err)
	}
	b, err := found.Bundle(proof.Disclosure{})
	if err != nil {
		return outcome(c, err)
	}
	logKeys, err := logs.Keys()
	if err != nil {
		return exitCannotRun, err
	}
	r := b.Check(proof.CheckOptions{Keys: &s.keys, LogKeys: logKeys})
	if err := tellGated(c, found); err != nil {
		return exitCannotRun, err
	}
	if s.json {
		return r.Exit, writeJSON(c.stdout, struct {
			Row   *proof.BundleRow `json:"row"`
			Check *proof.Checked   `json:"check"`
			Gated []string         `json:"gated,omitempty"`
		}{&b.Row, r, found.Gated})
	}
	if err := writeChecked(c.stdout, r, b); err != nil {
		return exitCannotRun, err
	}
	_, err = fmt.Fprintln(c.stderr, cost(p))
	return r.Exit, err
}

// row prints a row that is shown.
func (p *printer) row(b *proof.Bundle) {
	p.line("row %d of tenant %s in %s/%d of archive %s", b.Row.Seq, proof.Printable(b.Log.Tenant), proof.Printable(b.Log.Topic), b.Log.Partition, proof.Printable(b.ArchiveID))
	if b.Row.Header != nil {
		p.header(&b.Row.Header.Record)
	}
	if u := b.Row.User; u != nil {
		p.column("user_id", u.ID)
	}
	for i, slot := range b.Row.Slots {
		switch {
		case slot == nil:
		case slot.Commit != nil:
			p.column(audit.Slot(i).String(), "(withheld or erased; commitment "+slot.Commit.String()+")")
		default:
			p.column(audit.Slot(i).String(), string(slot.Content))
		}
	}
}

func (p *printer) header(r *audit.Record) {
	for i := range audit.Header {
		col := &audit.Header[i]
		switch {
		case col.Text != nil && col.Text(r).Valid:
			p.column(col.Name, col.Text(r).S)
		case col.Int == nil || !col.Int(r).Valid:
		case col.Type == audit.Time:
			p.column(col.Name, time.UnixMicro(col.Int(r).N).UTC().Format(archive.TimeLayout))
		default:
			p.column(col.Name, number(col.Int(r).N))
		}
	}
}

func (p *printer) column(name, value string) { p.line("  %-20s %s", name, proof.Printable(value)) }
