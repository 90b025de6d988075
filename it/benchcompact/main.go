//go:build it

// Command benchcompact measures ledgerlake-compact on a large archive, beside
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
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/it/bench"
	"github.com/ledgerlake/ledgerlake/it/faults3"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchcompact:", err)
		os.Exit(1)
	}
}

// A runner is one run of the command.
type runner struct {
	bin    string // folder of the binaries
	python string // with DuckDB
	memory string // of compact
	plan   bench.Plan
	out    io.Writer

	store   *faults3.Server
	archive *bench.Archive
	folder  string // of files that the programs need
}

func run(ctx context.Context, args []string, out io.Writer) error {
	b := &runner{out: out, plan: bench.Plan{Lines: 4, Tenants: 10, Anchor: 25}}
	f := flag.NewFlagSet("benchcompact", flag.ContinueOnError)
	f.StringVar(&b.bin, "bin", "bin", "the folder of the binaries")
	f.StringVar(&b.python, "python", os.Getenv("LEDGERLAKE_IT_PYTHON15"), "a Python with DuckDB")
	f.StringVar(&b.memory, "memory", "256MiB", "memory of ledgerlake-compact")
	f.Int64Var(&b.plan.Rows, "rows", 1_000_000, "how many rows")
	f.IntVar(&b.plan.Least, "least", 32, "the fewest rows of a segment")
	f.IntVar(&b.plan.Segment, "segment", 2048, "the most rows of a segment")
	if err := f.Parse(args); err != nil {
		return err
	}
	var err error
	if b.folder, err = os.MkdirTemp("", "ledgerlake-bench"); err != nil {
		return err
	}
	defer os.RemoveAll(b.folder)
	b.store = faults3.Start(faults3.Options{})
	defer b.store.Close()
	return b.measure(ctx)
}

func (b *runner) measure(ctx context.Context) error {
	before, err := b.build()
	if err != nil {
		return err
	}
	duck, one, err := b.copy(ctx)
	if err != nil {
		return err
	}
	from := len(b.store.Requests())
	compact, err := b.compact(ctx)
	if err != nil {
		return err
	}
	requests := b.store.Requests()[from:]
	live, err := b.live(ctx)
	if err != nil {
		return err
	}
	if err := b.print(before, b.sum(live), compact, duck, one); err != nil {
		return err
	}
	b.written()
	b.requests(requests)
	return b.check(ctx, live)
}

// live returns the keys of the objects that hold the rows now: data files, and
// segments that are not compacted.
func (b *runner) live(ctx context.Context) (keys []string, err error) {
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
func (b *runner) written() {
	rows := int64(0)
	keys := b.store.Keys(archive.DataPrefix)
	for _, key := range keys {
		if n, ok := archive.ParseDataKey(key); ok {
			rows += n.LastSeq - n.FirstSeq + 1
		}
	}
	fmt.Fprintf(b.out, "\n%d data files were written in all, and a row %.1f times\n", len(keys), float64(rows)/float64(b.plan.Rows))
}

// A sum is what objects are together.
type sum struct{ bytes, objects int64 }

func (b *runner) sum(keys []string) (s sum) {
	for _, key := range keys {
		body, _ := b.store.Object(key)
		s.bytes, s.objects = s.bytes+int64(len(body)), s.objects+1
	}
	return s
}

// build makes the archive, and writes its segments to the folder, too.
func (b *runner) build() (s sum, err error) {
	began, folder := time.Now(), bench.Folder(b.folder)
	b.archive, err = bench.Build(b.plan, func(key string, body []byte) error {
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
	fmt.Fprintf(b.out, "%d rows, %d bytes in %d segments of %d to %d rows: %d lines, %d tenants in each, an anchor for %d segments; built in %.0f s\n\n",
		b.plan.Rows, s.bytes, s.objects, b.plan.Least, b.plan.Segment, b.plan.Lines, b.plan.Tenants, b.plan.Anchor, time.Since(began).Seconds())
	return s, nil
}

// key names the file of the key that signs catalogs: that of the anchors.
func (b *runner) key() string { return filepath.Join(b.folder, "key") }

func (b *runner) url() string {
	return "s3://" + faults3.Bucket + "?endpoint=" + b.store.URL + "&region=us-east-1"
}

// anyKey are credentials that the store does not check.
var anyKey = []string{"AWS_ACCESS_KEY_ID=bench", "AWS_SECRET_ACCESS_KEY=bench"}

// compact runs ledgerlake-compact once.
func (b *runner) compact(ctx context.Context) (*bench.Spent, error) {
	return bench.Spend(ctx, nil, anyKey, filepath.Join(b.bin, "ledgerlake-compact"), "once", "--bucket", b.url(), "--compact.assign", "offline",
		"--key", b.archive.Verifier, "--catalog-key", b.key(), "--compact.memory", b.memory)
}

// copy has DuckDB copy all segments to one file, and returns its size.
func (b *runner) copy(ctx context.Context) (*bench.Spent, int64, error) {
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
func (b *runner) duckdb(ctx context.Context, statement string) (*bench.Spent, error) {
	file := filepath.Join(b.folder, "statement.sql")
	if err := os.WriteFile(file, []byte(statement), 0o600); err != nil {
		return nil, err
	}
	s, err := bench.Spend(ctx, strings.NewReader(script), nil, b.python, "-", file)
	if err != nil {
		return nil, fmt.Errorf("DuckDB: %w", err)
	}
	return s, nil
}

func (b *runner) print(before, after sum, compact, duck *bench.Spent, one int64) error {
	t := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "program\tCPU s\trows per CPU s\tMB per CPU s\tfiles\tbytes per row\tpeak MiB\t\n")
	row := func(name string, s *bench.Spent, files, bytes int64) {
		cpu := s.CPU.Seconds()
		fmt.Fprintf(t, "%s\t%.2f\t%.0f\t%.1f\t%d\t%d\t%d\t\n", name, cpu, float64(b.plan.Rows)/cpu, float64(before.bytes)/1e6/cpu, files, bytes/b.plan.Rows, s.Peak>>20)
	}
	fmt.Fprintf(t, "(segments)\t\t\t\t%d\t%d\t\t\n", before.objects, before.bytes/b.plan.Rows)
	row("ledgerlake-compact once", compact, after.objects, after.bytes)
	row("DuckDB COPY", duck, 1, one)
	return t.Flush()
}

// requests prints how many requests compaction took.
func (b *runner) requests(all []faults3.Request) {
	counts := map[faults3.Op]int64{}
	for _, r := range all {
		counts[r.Op]++
	}
	var parts []string
	for op, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n*1_000_000/b.plan.Rows, op))
	}
	slices.Sort(parts)
	fmt.Fprintf(b.out, "requests per million rows: %s\n", strings.Join(parts, ", "))
}

// sums is SQL that tells whether two sets of files hold the same rows.
const sums = `select count(*), sum(seq), sum(kafka_offset), sum(input_tokens), sum(latency_us), count(distinct record_id), bit_xor(hash(row_hash)),
  bit_xor(hash(row_salt)), bit_xor(hash(coalesce(context, ext))), max(created_at)::text from read_parquet(%s, hive_partitioning = false)`

// check requires that the archive is right, and that the live files have the rows
// of the segments.
func (b *runner) check(ctx context.Context, live []string) error {
	v, err := bench.Spend(ctx, nil, anyKey, filepath.Join(b.bin, "ledgerlake-verify"), "--key", b.archive.Verifier, b.url())
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "ledgerlake-verify: no fault (%.1f CPU s)\n", v.CPU.Seconds())
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
	fmt.Fprintf(b.out, "DuckDB: the same sums before and after: %s\n", strings.Join(answers[0], " "))
	return nil
}
