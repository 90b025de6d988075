// Package sqlview writes SQL by which engines read an archive: views in which each
// row is there once, typed views of slots, and queries that are ready to run.
//
//	a moment of the archive ── which objects, what is hidden ──▶ Views ──▶ ledgerlake_rows, v_calls, v_family_lock, …
//	queries/*.sql ── the engine's dialect ──▶ Query
//
// DuckDB and Spark get views over exactly the files and segments of one moment;
// Athena and Trino a table over the manifests that ledgerlake-compact keeps
// (docs/format.md, section 5), which move on with the archive.
//
// Everything that a producer has named (tenants, users, sessions, topics) comes
// into the text as a literal of its engine, and nowhere else. The package is pure:
// it opens nothing, and equal inputs give equal text.
//
// # What a view does not do
//
// It checks nothing: a hash is a value like any other. What is to be hidden is
// known as of the moment at which the text was made.
package sqlview

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/control"
)

// ErrUnknown: there is no engine, or no query, of that name.
var ErrUnknown = errors.New("unknown")

// The names of what [Views] makes.
const (
	Table  = "ledgerlake_objects" // every row of the objects that were named
	Rows   = "ledgerlake_rows"    // of those the rows that are shown
	Places = "ledgerlake_places"  // where each row stands, hidden ones too, without content
	Prices = "ledgerlake_prices"
)

// A Moment is what an archive holds at one time.
type Moment struct {
	Archive   string   // archiveId
	Lines     []string // what was taken of each, in words
	Objects   []string // keys: each row once, and no void segments
	Manifests []string // tenants that manifests are kept of
	Orders    []*control.Order
}

// Options say what [Views] writes.
type Options struct {
	Engine   *Engine
	Location string // of the archive: s3://bucket/prefix/ or a folder, with a slash at its end
	Tenant   string // only this one's rows; "": all
	Gated    bool   // with what is ordered to be erased, and is not yet
	Repeats  bool   // with rows that repeat another one
	Erased   bool   // with rows of which all content is erased
	Prices   []Price
	Schema   string // of Trino, in which partitions are registered; "" is "default"
}

// Views returns the statements that make the views. Each ends with ";\n", which is
// nowhere else in the text.
func Views(m *Moment, o Options) string {
	w := &writer{m: m, o: o, d: o.Engine}
	w.head()
	w.setup()
	w.table()
	w.places()
	w.rows()
	w.prices()
	for i := range views {
		w.view(&views[i])
	}
	return w.b.String()
}

// A writer writes the statements.
type writer struct {
	b bytes.Buffer
	m *Moment
	o Options
	d *Engine
}

func (w *writer) f(format string, a ...any) { fmt.Fprintf(&w.b, format, a...) }

// comment writes text that nobody but we made: no line break can end it early.
func (w *writer) comment(format string, a ...any) {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return '?'
		}
		return r
	}, fmt.Sprintf(format, a...))
	w.f("%s\n", strings.TrimRight("-- "+text, " "))
}

func (w *writer) head() {
	w.comment("Archive %s, for %s. Each row is there once.", w.m.Archive, w.d.Title)
	for _, l := range w.m.Lines {
		w.comment("  %s", l)
	}
	for _, c := range []struct {
		said bool
		text string
	}{
		{w.o.Tenant != "", "Only rows of tenant " + quoteGo(w.o.Tenant) + "."},
		{!w.o.Gated, "Without what is ordered to be erased and not erased yet, as of now."},
		{w.o.Gated, "With what is ordered to be erased and not erased yet."},
		{!w.o.Erased, "Without rows of which all content is erased; --include-erased brings them."},
		{!w.o.Repeats, "Without rows that repeat another one, as far as compaction has found them; --include-repeats brings them."},
	} {
		if c.said {
			w.comment("%s", c.text)
		}
	}
	for _, text := range w.d.notes {
		w.comment("%s", text)
	}
	w.f("\n")
}

func (w *writer) setup() {
	if w.d.setup != "" {
		w.f("%s;\n\n", w.d.setup)
	}
}

// table writes what all else is made from.
func (w *writer) table() {
	if w.d.manifest {
		w.manifestTable()
		return
	}
	if len(w.m.Objects) == 0 {
		w.f("%s %s AS\nSELECT %s\nWHERE false;\n\n", w.d.create, Table, w.nulls())
		return
	}
	w.d.objects(w)
}

// nulls returns a select list of all columns, without values.
func (w *writer) nulls() string {
	var all []string
	for _, c := range columns {
		all = append(all, fmt.Sprintf("CAST(NULL AS %s) AS %s", w.d.types[c.kind], w.d.ident(c.name)))
	}
	return strings.Join(all, ", ")
}

// places writes the view of where rows stand.
func (w *writer) places() {
	w.comment("%s: where each row stands, hidden ones too; no content", Places)
	w.f("%s %s AS\nSELECT", w.d.view, Places)
	for i, name := range []string{"tenant_id", "topic", "topic_id", "partition", "epoch", "seq", "kind", "kafka_offset", "archived_at", "repeat_of", "redaction_id"} {
		w.f("%s %s", strings.Repeat(",", min(i, 1)), w.d.ident(name))
	}
	w.f("\nFROM %s", Table)
	w.where(w.ofTenant())
}

// where ends a statement with its conditions.
func (w *writer) where(conditions []string) {
	for i, c := range conditions {
		w.f("\n%s %s", []string{"WHERE", "  AND"}[min(i, 1)], c)
	}
	w.f(";\n\n")
}

// ofTenant returns the condition of rows that are asked for, and each of them once.
func (w *writer) ofTenant() []string {
	var all []string
	if w.d.manifest {
		all = append(all, w.d.ident("tenant_id")+" = "+w.d.ident(partitionColumn))
	}
	if w.o.Tenant != "" {
		all = append(all, w.d.ident("tenant_id")+" = "+w.d.literal(w.o.Tenant))
	}
	if w.d.manifest && w.o.Tenant != "" {
		all = append(all, w.d.ident(partitionColumn)+" = "+w.d.literal(w.o.Tenant)) // reads its manifests alone
	}
	return all
}

// rows writes the view of rows that are shown.
func (w *writer) rows() {
	g := newGate(w)
	w.comment("%s: every row that is shown, once", Rows)
	w.f("%s %s AS\nSELECT", w.d.view, Rows)
	for i, c := range columns {
		w.f("%s\n  %s", strings.Repeat(",", min(i, 1)), g.column(c.name))
	}
	w.f("\nFROM %s", Table)
	conditions := w.conditions()
	if hidden := g.whole(); hidden != "" {
		conditions = append(conditions, "NOT coalesce("+hidden+", false)")
	}
	w.where(conditions)
}

func (w *writer) conditions() []string {
	all := w.ofTenant()
	if !w.o.Erased {
		all = append(all, "("+w.d.ident("redaction")+" IS NULL OR "+w.d.ident("residual")+" IS NOT NULL)")
	}
	if !w.o.Repeats {
		all = append(all, w.d.ident("repeat_of")+" IS NULL")
	}
	return all
}

// tenants returns those that the views are of.
func (w *writer) tenants(all []string) []string {
	if w.o.Tenant == "" {
		return all
	}
	if slices.Contains(all, w.o.Tenant) {
		return []string{w.o.Tenant}
	}
	return nil
}

// quoteGo returns text for a comment. Spark would put the value of a ${variable} in
// its place there too.
func quoteGo(s string) string { return strings.ReplaceAll(fmt.Sprintf("%q", s), "${", "$ {") }
