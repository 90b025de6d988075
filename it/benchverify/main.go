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
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
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

// A bench is one run of the command.
type bench struct {
	bin    string // folder of the binaries
	python string // with DuckDB
	sql    string // the file of the SQL
	plan   plan
	out    io.Writer
}

func run(ctx context.Context, args []string, out io.Writer) error {
	b := &bench{out: out, plan: plan{lines: 4, tenants: 8, anchor: 25}}
	f := flag.NewFlagSet("benchverify", flag.ContinueOnError)
	f.StringVar(&b.bin, "bin", "bin", "the folder of the binaries")
	f.StringVar(&b.python, "python", os.Getenv("LEDGERLAKE_IT_PYTHON15"), "a Python with DuckDB")
	f.StringVar(&b.sql, "sql", "proof/offline/check.sql", "the SQL")
	f.Int64Var(&b.plan.rows, "rows", 2_000_000, "how many rows")
	f.IntVar(&b.plan.segment, "segment", 2000, "rows of a segment")
	keep := f.String("keep", "", "build the archive in this folder, and leave it there")
	if err := f.Parse(args); err != nil {
		return err
	}
	small := b.plan
	small.rows /= 10
	for _, p := range []plan{small, b.plan} {
		if err := b.one(ctx, p, *keep); err != nil {
			return err
		}
	}
	return nil
}

// one builds an archive and measures on it.
func (b *bench) one(ctx context.Context, p plan, keep string) error {
	folder := filepath.Join(keep, strconv.FormatInt(p.rows, 10))
	if keep == "" {
		var err error
		if folder, err = os.MkdirTemp("", "ledgerlake-bench"); err != nil {
			return err
		}
		defer os.RemoveAll(folder)
	}
	began := time.Now()
	vkey, record, err := build(folder, p)
	if err != nil {
		return err
	}
	size, files, err := measure(folder)
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "\n%d rows, %d bytes (%d a row) in %d objects: %d lines, %d tenants in each, segments of %d rows, an anchor for %d segments; built in %.0f s\n\n",
		p.rows, size, size/p.rows, files, p.lines, p.tenants, p.segment, p.anchor, time.Since(began).Seconds())
	profile := filepath.Join(folder+".cpu", "cpu.pprof")
	if err := os.MkdirAll(filepath.Dir(profile), 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(filepath.Dir(profile))
	verify, err := spend(ctx, nil, filepath.Join(b.bin, "ledgerlake-verify"), "--key", vkey, "--memory", "64MiB", "--cpuprofile", profile, folder)
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
		*spent
	}{{"ledgerlake-verify", verify}, {"DuckDB SQL", duck}} {
		fmt.Fprintf(t, "%s\t%.2f\t%.0f\t%d\t\n", s.name, s.cpu.Seconds(), float64(p.rows)/s.cpu.Seconds(), s.peak>>20)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(b.out, "verify does %.1f times as many rows per CPU second\n", duck.cpu.Seconds()/verify.cpu.Seconds())
	if err := b.top(ctx, profile); err != nil {
		return err
	}
	return b.row(ctx, folder, vkey, record)
}

// measure sums up the files of a folder.
func measure(folder string) (bytes, files int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		bytes, files = bytes+info.Size(), files+1
		return nil
	})
	return bytes, files, err
}

// spent is what a process took.
type spent struct {
	cpu  time.Duration
	peak int64 // bytes
	out  []byte
	errs []byte
}

// spend runs a program to its end, which must be a good one.
func spend(ctx context.Context, stdin io.Reader, name string, args ...string) (*spent, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "LEDGERLAKE_") }) // settings, to verify
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", filepath.Base(name), err, tail(out.String()), tail(errs.String()))
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return nil, errors.New("this system does not say what a process took")
	}
	return &spent{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), usage.Maxrss << 10, out.Bytes(), errs.Bytes()}, nil
}

func tail(s string) string { return s[max(0, len(s)-2000):] }

// top prints where the time went.
func (b *bench) top(ctx context.Context, profile string) error {
	s, err := spend(ctx, nil, "go", "tool", "pprof", "-top", "-nodecount=12", profile)
	if err != nil {
		return err
	}
	lines := strings.Split(strings.TrimSpace(string(s.out)), "\n")
	fmt.Fprintln(b.out, "\nwhere verify spent its time:")
	for _, line := range lines[min(len(lines), 4):] {
		fmt.Fprintln(b.out, "  "+line)
	}
	return nil
}
