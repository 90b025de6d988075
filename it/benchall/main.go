//go:build it

// Command benchall measures what ledgerlake costs and prints one table, each number
// beside a floor or a peer that was measured in the same run on the same rows:
//
//	benchall -bin FOLDER [-rows 200000] [-short] [-write docs/benchmarks.md]
//
// The programs that are measured run as processes of their own, and are those that
// users run; what they took is their own user and system time, and their own peak
// of memory. docs/benchmarks.md says what each number is, and has the table of the
// run that was made with -write.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/it/bench"
	"github.com/ledgerlake/ledgerlake/it/bench/compact"
	"github.com/ledgerlake/ledgerlake/it/bench/lookup"
	"github.com/ledgerlake/ledgerlake/it/bench/verify"
)

func main() { bench.Main("benchall", run) }

// A runner is one run of the command.
type runner struct {
	bin    string
	python string
	rows   int
	seed   uint64
	short  bool
	write  string
	commit string
	out    io.Writer
	log    io.Writer // what the parts print by themselves

	table table
	wire  int64 // bytes of a record as JSON
}

func run(ctx context.Context, args []string, out io.Writer) error {
	r := &runner{out: out, log: io.Discard}
	f := flag.NewFlagSet("benchall", flag.ContinueOnError)
	f.StringVar(&r.bin, "bin", "bin", "the folder of the binaries")
	f.StringVar(&r.python, "python", os.Getenv("LEDGERLAKE_IT_PYTHON15"), "a Python with DuckDB")
	f.IntVar(&r.rows, "rows", 200_000, "how many records ingest gets; the other measurements have as many, twice as many or five times as many rows")
	f.Uint64Var(&r.seed, "seed", 1, "what the records grow from")
	f.BoolVar(&r.short, "short", false, "a tenth of the rows: numbers to look at, not to quote")
	f.StringVar(&r.write, "write", "", "a page of Markdown in which the table is replaced")
	f.StringVar(&r.commit, "commit", "an unknown commit", "what the binaries were built from")
	details := f.Bool("v", false, "print what the parts print, too")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q is no flag", f.Arg(0))
	}
	if r.short {
		r.rows /= 10
	}
	if r.rows < 1000 {
		return errors.New("-rows: at least 1,000 (10,000 with -short)")
	}
	if *details {
		r.log = out
	}
	return r.all(ctx)
}

// all measures everything, and prints the table.
func (r *runner) all(ctx context.Context) error {
	began := time.Now()
	m, err := readMachine(ctx, r.python, r.commit)
	if err != nil {
		return err
	}
	for _, part := range []struct {
		name    string
		measure func(context.Context) error
	}{
		{"ingest", r.ingest}, {"delay", r.delay}, {"memory", r.memory}, {"verify", r.verify}, {"compact", r.compact}, {"look-up", r.lookup},
	} {
		at := time.Now()
		if err := part.measure(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
		fmt.Fprintf(r.out, "%s: measured in %.0f s\n", part.name, time.Since(at).Seconds())
	}
	r.table.foot = append(m.lines(), fmt.Sprintf("%s rows in the largest part, seed %d, measured in %.0f s.", thousands(r.lookupRows()), r.seed, time.Since(began).Seconds()))
	fmt.Fprintln(r.out)
	if err := r.table.print(r.out); err != nil {
		return err
	}
	if r.write == "" {
		return nil
	}
	return r.table.replace(r.write)
}

func (r *runner) verify(ctx context.Context) error {
	p := verify.Usual()
	p.Rows = int64(r.rows)
	b := verify.Bench{Bin: r.bin, Python: r.python, SQL: verify.SQL, Plan: p, Out: r.log}
	got, err := b.Measure(ctx, p, "")
	if err != nil {
		return err
	}
	what := fmt.Sprintf("verify, %s rows in segments of %s", thousands(got.Rows), thousands(int64(p.Segment)))
	r.table.perCPU(what, got.Rows, got.Verify.CPU, got.Scan.CPU, "DuckDB reads every value of the same files, and checks nothing")
	r.table.perCPU("", got.Rows, got.Verify.CPU, got.SQL.CPU, "the same checks but signatures, in SQL, by DuckDB")
	r.table.add("peak memory of verify", mib(got.Verify.Peak), mib(got.SQL.Peak), "", "the SQL in DuckDB")
	return nil
}

func (r *runner) compact(ctx context.Context) error {
	p := compact.Usual()
	p.Rows = 2 * int64(r.rows)
	b := compact.Bench{Bin: r.bin, Python: r.python, Memory: "256MiB", Plan: p, Out: r.log}
	got, err := b.Measure(ctx)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("compact, %s rows from segments of %d to %s", thousands(got.Rows), p.Least, thousands(int64(p.Segment)))
	r.table.perCPU(what, got.Rows, got.Compact.CPU, got.DuckDB.CPU, "DuckDB copies the same segments to one file: no check of hashes, no order by tenant, no bloom filters")
	r.table.add("peak memory of compact", mib(got.Compact.Peak), mib(got.DuckDB.Peak), "", "DuckDB's copy")
	r.table.add(fmt.Sprintf("bytes a row, segments of %d to %s rows", p.Least, thousands(int64(p.Segment))), thousands(got.Segments.Bytes/got.Rows), r.json(), "", "the same records as JSON")
	r.table.add("bytes a row, data files", thousands(got.Files.Bytes/got.Rows), thousands(got.One/got.Rows), ratio(float64(got.Files.Bytes), float64(got.One)), "DuckDB's one file, zstd, every tenant mixed")
	return nil
}

// lookupRows is how many rows the archive of the look-ups has.
func (r *runner) lookupRows() int64 { return 5 * int64(r.rows) }

func (r *runner) lookup(ctx context.Context) error {
	p := lookup.Usual()
	p.Rows = r.lookupRows()
	if p.Rows < 500_000 { // a line has few segments
		p.Segment, p.Anchor = 256, 4
	}
	b := lookup.Bench{Bin: r.bin, Memory: "512MiB", Target: "128MiB", Plan: p, Asks: 25, Out: r.log}
	got, err := b.Measure(ctx)
	if err != nil {
		return err
	}
	const peer = "reading all objects of the tenant whole"
	for _, k := range got.Kinds {
		if !slices.Contains([]string{"turn of a session", "record", "session"}, k.Name) {
			continue
		}
		what := fmt.Sprintf("look-up of a %s (%.0f rows) among %s", k.Name, k.Rows, thousands(got.Rows))
		r.table.add(what+": GETs", fmt.Sprintf("%.1f", k.Gets), fmt.Sprintf("%.0f", got.Whole.Gets), ratio(k.Gets, got.Whole.Gets), peer)
		r.table.add(what+": MiB read", fmt.Sprintf("%.2f", k.Bytes/(1<<20)), fmt.Sprintf("%.0f", got.Whole.Bytes/(1<<20)), ratio(k.Bytes, got.Whole.Bytes), peer)
		r.table.add(what+": CPU", fmt.Sprintf("%.1f ms", float64(k.CPU.Microseconds())/1e3), "", "", "with the store's, which is in the same process")
	}
	open := got.Kinds[0].Open
	r.table.add("opening that archive, once a process: GETs, MiB", fmt.Sprintf("%.0f, %.2f", open.Gets, open.Bytes/(1<<20)), "", "", "4 partitions")
	return nil
}
