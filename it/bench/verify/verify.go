//go:build it

// Package verify measures ledgerlake-verify on a large archive, beside the
// SQL of proof/offline in DuckDB on the same files in the same run:
//
//	benchverify -bin FOLDER -rows 2000000 [-python FILE]
//
// It builds two archives, of a tenth of the rows and of all of them, as ingest
// would have made them from records of about 1.3 KB; runs each program on each as
// a process of its own; and prints rows, bytes, CPU seconds, rows per CPU second
// and peak memory, then where verify spent its time, and what the proof of one
// row costs. It ends with exit code 1 where a program does not say that all is
// right.
package verify

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ledgerlake/ledgerlake/it/bench"
)

// A Bench is one run.
type Bench struct {
	Bin    string // folder of the binaries
	Python string // with DuckDB
	SQL    string // the file of the SQL
	Plan   bench.Plan
	Out    io.Writer
}

// A Result is what was measured.
type Result struct {
	Rows, Bytes int64
	Verify, SQL *bench.Spent
	Scan        *bench.Spent // DuckDB reads every value once, and checks nothing
}

// Usual is the archive that is measured on, but for its rows.
func Usual() bench.Plan {
	return bench.Plan{Rows: 2_000_000, Lines: 4, Tenants: 8, Anchor: 25, Segment: 2000}
}

// SQL is where the SQL lies, seen from the repository.
const SQL = "proof/offline/check.sql"

// Run reads flags, measures and prints.
func Run(ctx context.Context, args []string, out io.Writer) error {
	b := &Bench{Out: out, Plan: Usual()}
	f := flag.NewFlagSet("benchverify", flag.ContinueOnError)
	f.StringVar(&b.Bin, "bin", "bin", "the folder of the binaries")
	f.StringVar(&b.Python, "python", os.Getenv("LEDGERLAKE_IT_PYTHON15"), "a Python with DuckDB")
	f.StringVar(&b.SQL, "sql", SQL, "the SQL")
	f.Int64Var(&b.Plan.Rows, "rows", b.Plan.Rows, "how many rows")
	f.IntVar(&b.Plan.Segment, "segment", b.Plan.Segment, "rows of a segment")
	keep := f.String("keep", "", "build the archive in this folder, and leave it there")
	if err := f.Parse(args); err != nil {
		return err
	}
	small := b.Plan
	small.Rows /= 10
	for _, p := range []bench.Plan{small, b.Plan} {
		if _, err := b.Measure(ctx, p, *keep); err != nil {
			return err
		}
	}
	return nil
}

// Measure builds an archive, in a folder that it leaves there or, where keep is "",
// in one that it removes, measures on it and prints.
func (b *Bench) Measure(ctx context.Context, p bench.Plan, keep string) (*Result, error) {
	folder := filepath.Join(keep, strconv.FormatInt(p.Rows, 10))
	if keep == "" {
		var err error
		if folder, err = os.MkdirTemp("", "ledgerlake-bench"); err != nil {
			return nil, err
		}
		defer os.RemoveAll(folder)
	}
	began := time.Now()
	a, err := bench.Build(p, bench.Folder(folder))
	if err != nil {
		return nil, err
	}
	size, files, err := bench.Measure(folder)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(b.Out, "\n%d rows, %d bytes (%d a row) in %d objects: %d lines, %d tenants in each, segments of %d rows, an anchor for %d segments; built in %.0f s\n\n",
		p.Rows, size, size/p.Rows, files, p.Lines, p.Tenants, p.Segment, p.Anchor, time.Since(began).Seconds())
	r := &Result{Rows: p.Rows, Bytes: size}
	return r, b.measure(ctx, r, folder, a)
}

// measure runs all programs on an archive.
func (b *Bench) measure(ctx context.Context, r *Result, folder string, a *bench.Archive) (err error) {
	profile := filepath.Join(folder+".cpu", "cpu.pprof")
	if err := os.MkdirAll(filepath.Dir(profile), 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Dir(profile))
	if r.Verify, err = bench.Spend(ctx, nil, nil, filepath.Join(b.Bin, "ledgerlake-verify"), "--key", a.Verifier, "--memory", "64MiB", "--cpuprofile", profile, folder); err != nil {
		return err
	}
	if r.SQL, err = b.duckdb(ctx, folder); err != nil {
		return err
	}
	if r.Scan, err = b.scan(ctx, folder); err != nil {
		return err
	}
	if err := b.print(r); err != nil {
		return err
	}
	if err := b.top(ctx, profile); err != nil {
		return err
	}
	return b.row(ctx, folder, a.Verifier, a.Record)
}

func (b *Bench) print(r *Result) error {
	t := tabwriter.NewWriter(b.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "program\tCPU s\trows per CPU s\tpeak MiB\t\n")
	for _, s := range []struct {
		name string
		*bench.Spent
	}{{"ledgerlake-verify", r.Verify}, {"DuckDB SQL", r.SQL}, {"DuckDB reads every value", r.Scan}} {
		fmt.Fprintf(t, "%s\t%.2f\t%.0f\t%d\t\n", s.name, s.CPU.Seconds(), float64(r.Rows)/s.CPU.Seconds(), s.Peak>>20)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "verify does %.1f times as many rows per CPU second as the SQL\n", r.SQL.CPU.Seconds()/r.Verify.CPU.Seconds())
	return nil
}

// top prints where the time went.
func (b *Bench) top(ctx context.Context, profile string) error {
	s, err := bench.Spend(ctx, nil, nil, "go", "tool", "pprof", "-top", "-nodecount=12", profile)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(s.Out)), "\n")
	fmt.Fprintln(b.Out, "\nwhere verify spent its time:")
	for _, line := range lines[min(len(lines), 4):] {
		fmt.Fprintln(b.Out, "  "+line)
	}
	return nil
}
