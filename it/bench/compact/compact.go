//go:build it

// Package compact measures ledgerlake-compact on a large archive, beside
// DuckDB, which copies the same segments to one Parquet file in the same run:
//
//	benchcompact -bin FOLDER -rows 1000000 [-python FILE]
//
// It builds an archive as ingest would have made it from records of about 1.3 KB,
// in segments of 32 to 2,048 rows, small ones more often; serves it by an object
// store in memory, which counts requests; runs ledgerlake-compact once, as a
// process of its own; and prints rows and megabytes per CPU second, bytes per row
// before and after, requests per million rows, and peak memory. Then it requires
// that ledgerlake-verify finds no fault, and that DuckDB finds the same sums in
// the data files as in the segments.
package compact

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/it/bench"
	"github.com/ledgerlake/ledgerlake/it/faults3"
)

// A Bench is one run.
type Bench struct {
	Bin    string // folder of the binaries
	Python string // with DuckDB
	Memory string // of compact
	Plan   bench.Plan
	Out    io.Writer

	store   *faults3.Server
	archive *bench.Archive
	folder  string // of files that the programs need
}

// Usual is the archive that is measured on, but for its rows: segments of 32 to
// 2,048 rows.
func Usual() bench.Plan {
	return bench.Plan{Rows: 1_000_000, Lines: 4, Tenants: 10, Anchor: 25, Least: 32, Segment: 2048}
}

// Run reads flags, measures and prints.
func Run(ctx context.Context, args []string, out io.Writer) error {
	b := &Bench{Out: out, Plan: Usual()}
	f := flag.NewFlagSet("benchcompact", flag.ContinueOnError)
	f.StringVar(&b.Bin, "bin", "bin", "the folder of the binaries")
	f.StringVar(&b.Python, "python", os.Getenv("LEDGERLAKE_IT_PYTHON15"), "a Python with DuckDB")
	f.StringVar(&b.Memory, "memory", "256MiB", "memory of ledgerlake-compact")
	f.Int64Var(&b.Plan.Rows, "rows", b.Plan.Rows, "how many rows")
	f.IntVar(&b.Plan.Least, "least", b.Plan.Least, "the fewest rows of a segment")
	f.IntVar(&b.Plan.Segment, "segment", b.Plan.Segment, "the most rows of a segment")
	if err := f.Parse(args); err != nil {
		return err
	}
	_, err := b.Measure(ctx)
	return err
}

// A Result is what was measured.
type Result struct {
	Rows            int64
	Segments, Files Sum   // what held the rows before and after
	One             int64 // bytes of DuckDB's file
	Compact, DuckDB *bench.Spent
}

// Measure builds the archive, compacts it, prints what that took, and checks what
// came out.
func (b *Bench) Measure(ctx context.Context) (r *Result, err error) {
	if b.folder, err = os.MkdirTemp("", "ledgerlake-bench"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(b.folder)
	b.store = faults3.Start(faults3.Options{})
	defer b.store.Close()
	r = &Result{Rows: b.Plan.Rows}
	return r, b.measure(ctx, r)
}

func (b *Bench) measure(ctx context.Context, r *Result) (err error) {
	if r.Segments, err = b.build(); err != nil {
		return err
	}
	if r.DuckDB, r.One, err = b.copy(ctx); err != nil {
		return err
	}
	from := len(b.store.Requests())
	if r.Compact, err = b.compact(ctx); err != nil {
		return err
	}
	requests := b.store.Requests()[from:]
	live, err := b.live(ctx)
	if err != nil {
		return err
	}
	r.Files = b.sum(live)
	if err := b.print(r); err != nil {
		return err
	}
	b.written()
	b.requests(requests)
	return b.check(ctx, live)
}

// live returns the keys of the objects that hold the rows now: data files, and
// segments that are not compacted.
func (b *Bench) live(ctx context.Context) (keys []string, err error) {
	if err := b.store.Dump(b.folder); err != nil {
		return nil, err
	}
	src, err := archive.OpenDir(b.folder)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	lines, err := archive.Lines(ctx, src)
	if err != nil {
		return nil, err
	}
	for _, l := range lines {
		s, err := archive.ReadSnapshot(ctx, src, l, nil)
		if err != nil {
			return nil, err
		}
		for i := range s.Files {
			keys = append(keys, s.Files[i].Key)
		}
		for i := range s.Segments {
			keys = append(keys, s.Segments[i].Key)
		}
	}
	return keys, nil
}

// written prints how often a row was written: into a first file, and into those
// that files were merged into.
func (b *Bench) written() {
	rows := int64(0)
	keys := b.store.Keys(archive.DataPrefix)
	for _, key := range keys {
		if n, ok := archive.ParseDataKey(key); ok {
			rows += n.LastSeq - n.FirstSeq + 1
		}
	}
	fmt.Fprintf(b.Out, "\n%d data files were written in all, and a row %.1f times\n", len(keys), float64(rows)/float64(b.Plan.Rows))
}

// A Sum is what objects are together.
type Sum struct{ Bytes, Objects int64 }

func (b *Bench) sum(keys []string) (s Sum) {
	for _, key := range keys {
		body, _ := b.store.Object(key)
		s.Bytes, s.Objects = s.Bytes+int64(len(body)), s.Objects+1
	}
	return s
}

// build makes the archive, and writes its segments to the folder, too.
func (b *Bench) build() (s Sum, err error) {
	began, folder := time.Now(), bench.Folder(b.folder)
	b.archive, err = bench.Build(b.Plan, func(key string, body []byte) error {
		b.store.Set(key, body)
		return folder(key, body)
	})
	if err != nil {
		return s, err
	}
	if err := os.WriteFile(b.key(), []byte(b.archive.Key), 0o600); err != nil {
		return s, err
	}
	s = b.sum(b.store.Keys("log/"))
	fmt.Fprintf(b.Out, "%d rows, %d bytes in %d segments of %d to %d rows: %d lines, %d tenants in each, an anchor for %d segments; built in %.0f s\n\n",
		b.Plan.Rows, s.Bytes, s.Objects, b.Plan.Least, b.Plan.Segment, b.Plan.Lines, b.Plan.Tenants, b.Plan.Anchor, time.Since(began).Seconds())
	return s, nil
}

// key names the file of the key that signs catalogs: that of the anchors.
func (b *Bench) key() string { return filepath.Join(b.folder, "key") }

func (b *Bench) url() string {
	return "s3://" + faults3.Bucket + "?endpoint=" + b.store.URL + "&region=us-east-1"
}

// anyKey are credentials that the store does not check.
var anyKey = []string{"AWS_ACCESS_KEY_ID=bench", "AWS_SECRET_ACCESS_KEY=bench"}

// compact runs ledgerlake-compact once.
func (b *Bench) compact(ctx context.Context) (*bench.Spent, error) {
	return bench.Spend(ctx, nil, anyKey, filepath.Join(b.Bin, "ledgerlake-compact"), "once", "--bucket", b.url(), "--compact.assign", "offline",
		"--key", b.archive.Verifier, "--catalog-key", b.key(), "--compact.memory", b.Memory)
}

// copy has DuckDB copy all segments to one file, and returns its size.
func (b *Bench) copy(ctx context.Context) (*bench.Spent, int64, error) {
	one := filepath.Join(b.folder, "one.parquet")
	s, err := b.duckdb(ctx, fmt.Sprintf("copy (select * from read_parquet('%s/log/**/*.parquet')) to '%s' (format parquet, compression zstd)", b.folder, one))
	if err != nil {
		return nil, 0, err
	}
	info, err := os.Stat(one)
	if err != nil {
		return nil, 0, err
	}
	return s, info.Size(), os.Remove(one)
}

const script = `import sys, json, duckdb
print(json.dumps([str(v) for v in duckdb.connect().execute(open(sys.argv[1]).read()).fetchall()[0]]))
`

// duckdb runs a statement.
func (b *Bench) duckdb(ctx context.Context, statement string) (*bench.Spent, error) {
	file := filepath.Join(b.folder, "statement.sql")
	if err := os.WriteFile(file, []byte(statement), 0o600); err != nil {
		return nil, err
	}
	s, err := bench.Spend(ctx, strings.NewReader(script), nil, b.Python, "-", file)
	if err != nil {
		return nil, fmt.Errorf("DuckDB: %w", err)
	}
	return s, nil
}

func (b *Bench) print(r *Result) error {
	t := tabwriter.NewWriter(b.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "program\tCPU s\trows per CPU s\tMB per CPU s\tfiles\tbytes per row\tpeak MiB\t\n")
	row := func(name string, s *bench.Spent, files, bytes int64) {
		cpu := s.CPU.Seconds()
		fmt.Fprintf(t, "%s\t%.2f\t%.0f\t%.1f\t%d\t%d\t%d\t\n", name, cpu, float64(b.Plan.Rows)/cpu, float64(r.Segments.Bytes)/1e6/cpu, files, bytes/b.Plan.Rows, s.Peak>>20)
	}
	fmt.Fprintf(t, "(segments)\t\t\t\t%d\t%d\t\t\n", r.Segments.Objects, r.Segments.Bytes/b.Plan.Rows)
	row("ledgerlake-compact once", r.Compact, r.Files.Objects, r.Files.Bytes)
	row("DuckDB COPY", r.DuckDB, 1, r.One)
	return t.Flush()
}

// requests prints how many requests compaction took.
func (b *Bench) requests(all []faults3.Request) {
	counts := map[faults3.Op]int64{}
	for _, r := range all {
		counts[r.Op]++
	}
	var parts []string
	for op, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n*1_000_000/b.Plan.Rows, op))
	}
	slices.Sort(parts)
	fmt.Fprintf(b.Out, "requests per million rows: %s\n", strings.Join(parts, ", "))
}

// sums is SQL that tells whether two sets of files hold the same rows.
const sums = `select count(*), sum(seq), sum(kafka_offset), sum(input_tokens), sum(latency_us), count(distinct record_id), bit_xor(hash(row_hash)),
  bit_xor(hash(row_salt)), bit_xor(hash(coalesce(context, ext))), max(created_at)::text from read_parquet(%s, hive_partitioning = false)`

// check requires that the archive is right, and that the live files have the rows
// of the segments.
func (b *Bench) check(ctx context.Context, live []string) error {
	v, err := bench.Spend(ctx, nil, anyKey, filepath.Join(b.Bin, "ledgerlake-verify"), "--key", b.archive.Verifier, b.url())
	if err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "ledgerlake-verify: no fault (%.1f CPU s)\n", v.CPU.Seconds())
	var files []string
	for _, key := range live {
		files = append(files, "'"+b.folder+"/"+key+"'")
	}
	var answers [2][]string
	for i, from := range []string{"'" + b.folder + "/log/**/*.parquet'", "[" + strings.Join(files, ", ") + "]"} {
		s, err := b.duckdb(ctx, fmt.Sprintf(sums, from))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(s.Out, &answers[i]); err != nil {
			return err
		}
	}
	if !slices.Equal(answers[0], answers[1]) {
		return errors.New("DuckDB: sums of the segments are " + strings.Join(answers[0], " ") + ", of the files that hold the rows now " + strings.Join(answers[1], " "))
	}
	fmt.Fprintf(b.Out, "DuckDB: the same sums before and after: %s\n", strings.Join(answers[0], " "))
	return nil
}
