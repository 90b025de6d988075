package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/export/sqlview"
	"github.com/ledgerlake/ledgerlake/internal/reach"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

const sqlHelp = program + ` sql prints SQL by which an engine reads the archive: views in which each row is there once, also while compaction
goes on, typed views of slots, and queries that are ready to run.

  ` + program + ` sql [flags] --engine NAME TARGET
  ` + program + ` sql --engine NAME --query NAME [--tenant NAME] [--turn ID]
  ` + program + ` sql --list

  ` + program + ` sql --engine duckdb ./data/audit > views.sql
  ` + program + ` sql --engine duckdb --query completeness > completeness.sql
  duckdb -c '.read views.sql' -c '.read completeness.sql'

For DuckDB and Spark the views name the files of this moment, which stay readable for graceSeconds of ledgerlake.json (one
hour) once compaction goes on. For Athena and Trino a table reads the manifests that ledgerlake-compact keeps where
compact.sql-manifests is on; run this again when tenants were added. docs/queries.md describes all of it.

Rows that an order of erasure reaches, or from which all content was erased, and rows that repeat another one, are left
out unless they are asked for. What was ordered is known as of now: run this again after each order.

Flags:
  --engine NAME
        duckdb, athena, trino or spark.
  --tenant NAME
        Only this tenant's rows. Default: all.
  --include-gated
        Rows and slots that are ordered to be erased, and are not yet.
  --include-erased
        Rows of which all content is erased. Their header columns, such as counts of tokens, are still there.
  --include-repeats
        Rows that repeat another one.
  --location URL
        Where the engine finds the archive. Default: TARGET, as s3://BUCKET/PREFIX/ or as an absolute path.
  --prices FILE
        Prices of models, which the views then have for the query of costs: CSV, whose first line is
        provider,model,from,input_per_million,output_per_million,cache_read_per_million,cache_write_per_million,currency
  --schema NAME
        Of Trino: the schema that has the table. Default: default.
  --query NAME
        Print a ready query in the dialect of the engine.
  --turn ID
        With --query tool-cascades: only this turn.
  --list
        List the ready queries and the views.
` + readHelp

// An sqlCommand is one call of sql.
type sqlCommand struct {
	*reading
	o           sqlview.Options
	engine      string
	location    string
	prices      string
	query, turn string
	list        bool
	given       []string // arguments that are no flags
}

func sqlViews(ctx context.Context, c call) (int, error) {
	s := &sqlCommand{reading: newReading("sql")}
	s.StringVar(&s.engine, "engine", "", "")
	s.BoolVar(&s.o.Gated, "include-gated", false, "")
	s.BoolVar(&s.o.Erased, "include-erased", false, "")
	s.BoolVar(&s.o.Repeats, "include-repeats", false, "")
	s.StringVar(&s.location, "location", "", "")
	s.StringVar(&s.prices, "prices", "", "")
	s.StringVar(&s.o.Schema, "schema", "", "")
	s.StringVar(&s.query, "query", "", "")
	s.StringVar(&s.turn, "turn", "", "")
	s.BoolVar(&s.list, "list", false, "")
	var err error
	if s.given, err = s.Parse(c.args); err != nil {
		return showHelp(c, sqlHelp, err)
	}
	if s.list {
		return exitDone, listSQL(c.stdout)
	}
	if s.o.Engine, err = sqlview.EngineOf(s.engine); err != nil {
		return exitCannotRun, fmt.Errorf("%w: --engine: %w", errUsage, err)
	}
	s.o.Tenant = s.tenant
	if s.query != "" {
		return s.printQuery(c)
	}
	return s.printViews(ctx, c)
}

// listSQL prints what there is.
func listSQL(w io.Writer) error {
	var b strings.Builder
	b.WriteString("Queries:\n")
	for _, q := range sqlview.Queries() {
		fmt.Fprintf(&b, "  %-28s %s\n", q.Name, q.About)
	}
	b.WriteString("Views:\n")
	for _, v := range sqlview.ViewNames() {
		fmt.Fprintf(&b, "  %-28s %s\n", v[0], v[1])
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (s *sqlCommand) printQuery(c call) (int, error) {
	q, err := sqlview.QueryOf(s.query)
	switch {
	case err != nil:
		return exitCannotRun, fmt.Errorf("%w: --query: %w", errUsage, err)
	case len(s.given) > 0:
		return exitCannotRun, fmt.Errorf("%w: --query needs no archive: the query runs on the views", errUsage)
	case s.prices != "":
		return exitCannotRun, fmt.Errorf("%w: --prices goes with the views, which have the prices, and not with --query", errUsage)
	case s.turn != "" && !q.OfTurn():
		return exitCannotRun, fmt.Errorf("%w: --turn goes with --query tool-cascades", errUsage)
	case s.o.Gated || s.o.Erased || s.o.Repeats:
		return exitCannotRun, fmt.Errorf("%w: --include-… belong to the views, on which the query runs", errUsage)
	}
	text, err := q.Text(s.o.Engine, sqlview.Parameters{Tenant: s.tenant, Turn: s.turn})
	if err != nil {
		return exitCannotRun, err
	}
	_, err = io.WriteString(c.stdout, text)
	return exitDone, err
}

func (s *sqlCommand) printViews(ctx context.Context, c call) (int, error) {
	if s.turn != "" {
		return exitCannotRun, fmt.Errorf("%w: --turn goes with --query", errUsage)
	}
	if err := s.readPrices(); err != nil {
		return exitCannotRun, err
	}
	if err := s.open(ctx, c, s.given); err != nil {
		return outcome(c, err)
	}
	defer s.close()
	if err := s.locate(); err != nil {
		return exitCannotRun, err
	}
	m, err := s.moment(ctx)
	if err != nil {
		return outcome(c, err)
	}
	if _, err := io.WriteString(c.stdout, sqlview.Views(m, s.o)); err != nil {
		return exitCannotRun, err
	}
	return exitDone, s.tellCost(c)
}

func (s *sqlCommand) readPrices() error {
	if s.prices == "" {
		return nil
	}
	f, err := os.Open(s.prices)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if s.o.Prices, err = sqlview.ReadPrices(f); err != nil {
		return fmt.Errorf("%s: %w", s.prices, err)
	}
	return nil
}

// locate finds out where the engine is to find the archive.
func (s *sqlCommand) locate() (err error) {
	target := s.Bucket
	if len(s.given) > 0 {
		target = s.given[0]
	}
	switch {
	case s.location != "":
		s.o.Location = strings.TrimSuffix(s.location, "/") + "/"
	case strings.HasPrefix(target, "s3://"):
		u, err := s3sink.ParseURL(target)
		if err != nil {
			return err
		}
		s.o.Location = "s3://" + u.Bucket + "/" + u.Prefix
	default:
		folder, err := reach.Folder(target)
		if err == nil {
			folder, err = filepath.Abs(folder)
		}
		if err != nil {
			return err
		}
		s.o.Location = folder + "/"
	}
	if err := s.o.Engine.CheckLocation(s.o.Location); err != nil {
		return fmt.Errorf("%w: %w: give --location", errUsage, err)
	}
	return nil
}

// moment reads what the archive holds now.
func (s *sqlCommand) moment(ctx context.Context) (*sqlview.Moment, error) {
	lines, err := s.archive.Objects(ctx, s.tenant)
	if err != nil {
		return nil, err
	}
	m := &sqlview.Moment{Archive: s.archive.Root().ArchiveID}
	tenants := map[string]bool{}
	for i := range lines {
		m.Lines = append(m.Lines, describe(&lines[i]))
		for _, f := range lines[i].Files {
			m.Objects = append(m.Objects, f.Key)
			tenants[f.Tenant] = true
		}
		for _, o := range lines[i].Segments {
			m.Objects = append(m.Objects, o.Key)
			for _, t := range o.Tenants {
				tenants[t] = true
			}
		}
	}
	m.Orders = orders(s.archive.Governance())
	if s.o.Engine.ReadsManifests() {
		m.Manifests, err = s.manifests(ctx, sortedKeys(tenants))
	}
	return m, err
}

// describe says of a line what its rows were taken from.
func describe(l *export.LineObjects) string {
	text := fmt.Sprintf("%s/%d: %d data files", l.Line.Topic, l.Line.Partition, len(l.Files))
	if l.Version >= 0 {
		text += fmt.Sprintf(" of version %d of the catalog", l.Version)
	}
	text += fmt.Sprintf(", %d segments", len(l.Segments))
	if n := len(l.Segments); n > 0 {
		text += fmt.Sprintf(", %d to %d", l.Segments[0].Ordinal, l.Segments[n-1].Ordinal)
	}
	return text
}

// orders returns the redactions of all tenants.
func orders(g *control.Governance) (all []*control.Order) {
	for _, name := range g.Tenants() {
		all = slices.AppendSeq(all, g.Tenant(name).Orders())
	}
	return all
}

// errNoManifests: there is nothing for the engine to read.
var errNoManifests = errors.New("no manifests are there: set compact.sql-manifests for ledgerlake-compact, and wait for its next pass")

// manifests returns those of the tenants that manifests are kept of.
func (s *sqlCommand) manifests(ctx context.Context, tenants []string) (kept []string, err error) {
	folders := map[string]bool{}
	for o, err := range s.source.List(ctx, archive.ManifestPrefix, "") {
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", archive.ManifestPrefix, err)
		}
		if folder, _, ok := strings.Cut(strings.TrimPrefix(o.Key, archive.ManifestPrefix), "/"); ok {
			folders[folder] = true
		}
	}
	if len(folders) == 0 {
		return nil, errNoManifests
	}
	for _, t := range tenants {
		if folders["tenant="+chain.Escape(t)] {
			kept = append(kept, t)
		}
	}
	return kept, nil
}
