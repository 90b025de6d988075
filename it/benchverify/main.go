//go:build it

// Command benchverify measures ledgerlake-verify on a large archive, beside the
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
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/ledgerlake/ledgerlake/it/bench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchverify:", err)
		os.Exit(1)
	}
}

// A runner is one run of the command.
type runner struct {
	bin    string // folder of the binaries
	python string // with DuckDB
	sql    string // the file of the SQL
	plan   bench.Plan
	out    io.Writer
}

func run(ctx context.Context, args []string, out io.Writer) error {
	b := &runner{out: out, plan: bench.Plan{Lines: 4, Tenants: 8, Anchor: 25}}
	f := flag.NewFlagSet("benchverify", flag.ContinueOnError)
	f.StringVar(&b.bin, "bin", "bin", "the folder of the binaries")
	f.StringVar(&b.python, "python", os.Getenv("LEDGERLAKE_IT_PYTHON15"), "a Python with DuckDB")
	f.StringVar(&b.sql, "sql", "proof/offline/check.sql", "the SQL")
	f.Int64Var(&b.plan.Rows, "rows", 2_000_000, "how many rows")
	f.IntVar(&b.plan.Segment, "segment", 2000, "rows of a segment")
	keep := f.String("keep", "", "build the archive in this folder, and leave it there")
	if err := f.Parse(args); err != nil {
		return err
	}
	small := b.plan
	small.Rows /= 10
	for _, p := range []bench.Plan{small, b.plan} {
		if err := b.one(ctx, p, *keep); err != nil {
			return err
		}
	}
	return nil
}

// one builds an archive and measures on it.
func (b *runner) one(ctx context.Context, p bench.Plan, keep string) error {
	folder := filepath.Join(keep, strconv.FormatInt(p.Rows, 10))
	if keep == "" {
		var err error
		if folder, err = os.MkdirTemp("", "ledgerlake-bench"); err != nil {
			return err
		}
		defer os.RemoveAll(folder)
	}
	began := time.Now()
	a, err := bench.Build(p, bench.Folder(folder))
	if err != nil {
		return err
	}
	size, files, err := bench.Measure(folder)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "\n%d rows, %d bytes (%d a row) in %d objects: %d lines, %d tenants in each, segments of %d rows, an anchor for %d segments; built in %.0f s\n\n",
		p.Rows, size, size/p.Rows, files, p.Lines, p.Tenants, p.Segment, p.Anchor, time.Since(began).Seconds())
	profile := filepath.Join(folder+".cpu", "cpu.pprof")
	if err := os.MkdirAll(filepath.Dir(profile), 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Dir(profile))
	verify, err := bench.Spend(ctx, nil, nil, filepath.Join(b.bin, "ledgerlake-verify"), "--key", a.Verifier, "--memory", "64MiB", "--cpuprofile", profile, folder)
	if err != nil {
		return err
	}
	duck, err := b.duckdb(ctx, folder)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(b.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "program\tCPU s\trows per CPU s\tpeak MiB\t\n")
	for _, s := range []struct {
		name string
		*bench.Spent
	}{{"ledgerlake-verify", verify}, {"DuckDB SQL", duck}} {
		fmt.Fprintf(t, "%s\t%.2f\t%.0f\t%d\t\n", s.name, s.CPU.Seconds(), float64(p.Rows)/s.CPU.Seconds(), s.Peak>>20)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "verify does %.1f times as many rows per CPU second\n", duck.CPU.Seconds()/verify.CPU.Seconds())
	if err := b.top(ctx, profile); err != nil {
		return err
	}
	return b.row(ctx, folder, a.Verifier, a.Record)
}

// top prints where the time went.
func (b *runner) top(ctx context.Context, profile string) error {
	s, err := bench.Spend(ctx, nil, nil, "go", "tool", "pprof", "-top", "-nodecount=12", profile)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(s.Out)), "\n")
	fmt.Fprintln(b.out, "\nwhere verify spent its time:")
	for _, line := range lines[min(len(lines), 4):] {
		fmt.Fprintln(b.out, "  "+line)
	}
	return nil
}
