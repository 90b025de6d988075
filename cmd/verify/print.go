package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ledgerlake/ledgerlake/proof"
)

// The most lines of a table that a person gets to see. --json has all.
const maxTable = 50

// A printer prints a report for a person.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(format string, a ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format+"\n", a...)
	}
}

// list prints a title and a line for each item, or nothing.
func (p *printer) list(title string, items []string, more int64) {
	if len(items) == 0 {
		return
	}
	p.line("\n%s", title)
	for _, item := range items {
		p.line("  - %s", item)
	}
	if more > 0 {
		p.line("  - and %d more", more)
	}
}

// writeReport prints a report for a person: what there is, what that proves,
// what it does not, and the verdict as the last line.
func writeReport(w io.Writer, r *proof.Report) error {
	p := &printer{w: w}
	p.line("archive %s: %s, of them %s (%s) in %s (a line is one partition of one topic)",
		orUnknown(r.ArchiveID), proof.Count(r.Objects, "object"), proof.Count(r.Totals.Segments, "segment"), proof.Count(r.Totals.Bytes, "byte"), proof.Count(int64(len(r.Lines)), "line"))
	p.tenants(r)
	p.lines(r)
	p.compacted(r)
	p.line("\nrows by kind: %s", counts(r.Totals.Kinds))
	if len(r.Totals.Rejects) > 0 {
		p.line("rejected rows by reason: %s", counts(r.Totals.Rejects))
	}
	p.keys(r)
	p.list("Proved", r.Proved, 0)
	p.list("Not proved by this (tier "+r.Tier+")", r.NotProved, 0)
	p.list("Notes", r.Notes, 0)
	p.list("To look at", append(slices.Clone(r.Looks), strays(r)...), 0)
	p.list("Less than was asked for", r.Less, 0)
	p.faults(r)
	p.line("\n%s", verdict(r))
	return p.err
}

func orUnknown(id string) string {
	if id == "" {
		return "(id unknown)"
	}
	return proof.Printable(id)
}

func (p *printer) tenants(r *proof.Report) {
	rows := [][]string{{"tenant", "logs", "rows", "rejected", "repeats", "not anchored"}}
	for _, t := range r.Tenants() {
		row := []string{proof.Printable(t.Tenant), number(t.Logs), number(t.Rows), number(t.Rejected), number(t.Duplicates), number(t.NotAnchored)}
		if !t.Proved {
			row = append(row, "not proved")
		}
		rows = append(rows, row)
	}
	p.table(rows, "more tenant")
}

func (p *printer) lines(r *proof.Report) {
	rows := [][]string{{"line", "segments", "offsets", "rows", "made", "repeats", "gaps", "tier", "newest signed anchor"}}
	for _, l := range r.Lines {
		gaps := int64(0)
		for _, n := range l.Gaps {
			gaps += n
		}
		row := []string{l.Line.String(), number(l.Segments), number(l.FirstOffset) + " to " + number(l.NextOffset), number(l.Rows), number(l.Made), number(l.Duplicates), number(gaps), l.Tier, signed(l)}
		if !l.Proved {
			row = append(row, "not proved")
		}
		rows = append(rows, row)
	}
	p.table(rows, "more line")
}

// compacted says what compaction made of segments, and what went.
func (p *printer) compacted(r *proof.Report) {
	t := &r.Totals
	if t.Catalogs == 0 {
		return
	}
	p.line("\ncompacted: %s (%s), by %s; %d rows erased (%d of them with their header), %d in part, %d dropped",
		proof.Count(t.DataFiles, "data file"), proof.Count(t.DataBytes, "byte"), proof.Count(t.Catalogs, "catalog version"), t.Erased, t.HardErased, t.PartlyErased, t.Cut)
}

// signed says which anchor of a line is the newest that a known key signed.
func signed(l *proof.LineReport) string {
	if l.Signed == nil {
		return "none"
	}
	return fmt.Sprintf("%d, %s", l.Signed.Number, l.Signed.Time.UTC().Format(time.RFC3339))
}

// keys prints the keys that were good.
func (p *printer) keys(r *proof.Report) {
	rows := [][]string{{"key", "signs", "from"}}
	for _, k := range r.Keys {
		from := proof.Printable(k.Source)
		if k.NotAfter != nil {
			from += ", until " + k.NotAfter.UTC().Format(time.RFC3339)
		}
		rows = append(rows, []string{proof.Printable(k.VKey), strings.Join(k.Roles, ", "), from})
	}
	p.table(rows, "more key")
}

// table prints a head and rows, if there are any, in columns.
func (p *printer) table(rows [][]string, more string) {
	if len(rows) < 2 {
		return
	}
	var b bytes.Buffer
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows[:min(len(rows), maxTable+1)] {
		_, _ = fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush() // to memory
	p.line("\n%s", strings.TrimRight(b.String(), "\n"))
	if n := len(rows) - 1 - maxTable; n > 0 {
		p.line("and %s", proof.Count(int64(n), more))
	}
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// counts prints a map of counts, the largest first.
func counts(m map[string]int64) string {
	names := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		if m[a] != m[b] {
			return int(min(max(m[b]-m[a], -1), 1))
		}
		return strings.Compare(a, b)
	})
	if len(names) == 0 {
		return "none"
	}
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = fmt.Sprintf("%s %d", proof.Printable(name), m[name])
	}
	return strings.Join(parts, ", ")
}

func strays(r *proof.Report) []string {
	list := make([]string, 0, len(r.Strays))
	for _, key := range r.Strays {
		list = append(list, "stray object "+proof.Printable(key))
	}
	if more := r.StrayCount - int64(len(list)); more > 0 {
		list = append(list, "and "+proof.Count(more, "more stray"))
	}
	return list
}

func (p *printer) faults(r *proof.Report) {
	shown := r.Faults[:min(len(r.Faults), maxTable)]
	list := make([]string, len(shown))
	told := int64(0)
	for i, f := range shown {
		list[i] = fmt.Sprintf("[%s] %s", f.Kind, f)
		told += 1 + f.More
	}
	p.list("Faults", list, r.FaultCount-told)
}

// verdict is the last line.
func verdict(r *proof.Report) string {
	rows := fmt.Sprintf("%s of %s in %s", proof.Count(r.Totals.Rows, "row"), proof.Count(int64(len(r.Tenants())), "tenant"), proof.Count(r.Totals.Segments, "segment"))
	if r.Totals.DataFiles > 0 {
		rows += " and " + proof.Count(r.Totals.DataFiles, "data file")
	}
	if r.Tenant != "" {
		rows = "the rows of tenant " + proof.Printable(r.Tenant)
	}
	if n := r.RowsPassed(); n > 0 {
		rows += fmt.Sprintf(", but for %s before what was asked for,", proof.Count(n, "row"))
	}
	switch r.ExitCode() {
	case 0:
		return fmt.Sprintf("OK: %s are %s (%s)", rows, proof.TierText(r.Tier), r.TierWords())
	case 4:
		return fmt.Sprintf("OK, BUT LOOK: %s are %s (%s); to look at, above: %s", rows, proof.TierText(r.Tier), r.TierWords(), proof.Count(int64(len(r.Looks)), "thing"))
	case 3:
		return fmt.Sprintf("INCOMPLETE: no fault was found, but less than was asked for could be verified (tier %s): %s", r.Tier, r.Less[0])
	}
	first := ""
	if len(r.Faults) > 0 {
		first = "; the first one is at " + r.Faults[0].Where()
	}
	return fmt.Sprintf("FAULT: the archive was tampered with or is damaged: %s%s", proof.Count(r.FaultCount, "fault"), first)
}
