package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/ledgerlake/ledgerlake/export/render"
	"github.com/ledgerlake/ledgerlake/internal/reach"
	"github.com/ledgerlake/ledgerlake/proof"
)

const checkJSONLHelp = program + ` check-jsonl checks exported lines, without the archive and without a network.

  ` + program + ` check-jsonl [flags] FILE...     - is stdin

  ` + program + ` check-jsonl rows.jsonl
  ` + program + ` check-jsonl --partial turn.jsonl

The files are those of --format jsonl, or chained, and are read one after the other. Of each log the rows must follow
each other without a hole, each must name the hash of the one before, and its own hash must be that of the columns that
the line shows. So it names the rows that were deleted, moved, put in or changed, and the last hash of each log, which a
signed head can be held against. docs/export-formats.md says what lines alone cannot show.

Exit codes, the first that holds:
  2  cannot run: a file cannot be read
  1  something does not fit
  3  there is no row: nothing could be checked; with --strict, the hash of some row could not be computed again
  0  all fits

Flags:
  --partial
        Rows may be missing, as in the answer to a query.
  --strict
        Exit with 3 where the hash of a row could not be computed again, because the line says that something of it was
        erased or scrubbed: anybody can write that into a line.
  --json
        Print the report as one JSON object.
` + reach.LogKeysHelp

func checkJSONL(_ context.Context, c call) (int, error) { return runCheckJSONL(c, os.Stdin) }

// runCheckJSONL checks the files that the arguments name, prints what it found, and
// returns the exit code.
func runCheckJSONL(c call, stdin io.Reader) (int, error) {
	f := reach.NewFlags("check-jsonl")
	var o render.CheckOptions
	var asJSON, strict bool
	var keys reach.LogKeys
	f.BoolVar(&o.Partial, "partial", false, "")
	f.BoolVar(&asJSON, "json", false, "")
	f.BoolVar(&strict, "strict", false, "")
	keys.Define(f)
	files, err := f.Parse(c.args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, err := io.WriteString(c.stdout, checkJSONLHelp)
		return exitDone, err
	case err != nil:
		return exitCannotRun, err
	case len(files) == 0:
		return exitCannotRun, fmt.Errorf("%w: want a file; --help says more", errUsage)
	}
	if o.Keys, err = keys.Keys(); err != nil {
		return exitCannotRun, err
	}
	checker := render.NewLineChecker(o)
	for _, name := range files {
		if err := readLines(checker, name, stdin); err != nil {
			return exitCannotRun, err
		}
	}
	return tellLines(c.stdout, checker.Report(), asJSON, strict)
}

func readLines(checker *render.LineChecker, name string, stdin io.Reader) error {
	if name == "-" {
		return checker.Read("stdin", stdin)
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return checker.Read(name, file)
}

// tellLines prints a report, and returns its exit code.
func tellLines(w io.Writer, r *render.LinesReport, asJSON, strict bool) (int, error) {
	code := exitDone
	switch {
	case !r.OK:
		code = exitTampered
	case len(r.Logs) == 0 || strict && len(r.Not) > 0:
		code = exitIncomplete
	}
	if asJSON {
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return exitCannotRun, err
		}
		_, err = fmt.Fprintf(w, "%s\n", text)
		return code, err
	}
	var rows int64
	for _, l := range r.Logs {
		rows += l.Rows
		fmt.Fprintf(w, "log       %.80q in %.80q/%d: %s, seq %d to %d, last rowHash %s\n", l.Tenant, l.Topic, l.Partition, proof.Count(l.Rows, "row"), l.First, l.Last, l.RowHash)
	}
	for _, f := range r.Faults {
		fmt.Fprintln(w, "fault    ", f)
	}
	if more := r.FaultCount - int64(len(r.Faults)); more > 0 {
		fmt.Fprintf(w, "fault     and %d more\n", more)
	}
	fmt.Fprintf(w, "checked   %s, %s; of %d the hash was computed again", proof.Count(r.Lines, "line"), proof.Count(rows, "row"), r.Recomputed)
	for _, not := range slices.Sorted(maps.Keys(r.Not)) {
		fmt.Fprintf(w, "; not of %d: %s", r.Not[not], not)
	}
	if r.Repeats > 0 {
		fmt.Fprintf(w, "; %s", proof.Count(r.Repeats, "repeat"))
	}
	_, err := fmt.Fprintf(w, "\n%s\n", [...]string{exitDone: "OK", exitTampered: "NOT OK", exitIncomplete: "NOT ALL could be checked"}[code])
	return code, err
}
