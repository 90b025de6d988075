//go:build it

// Command benchlookup measures what it takes to look up turns, records, sessions
// and people in a large archive:
//
//	benchlookup -bin FOLDER -rows 5000000
//
// It builds an archive as ingest would have made it from records of about 1.3 KB,
// in an object store in memory, but for the last hundredth of each line; runs
// ledgerlake-compact once, as a process of its own; puts the rest of the segments
// behind it, which no compactor has seen; and looks up rows of one tenant through
// the S3 driver, each time by an archive that was opened for it. For each kind of
// look-up it prints GETs and bytes for every data file of the tenant, beside what
// reading the same files whole takes; segments that are not compacted stand apart.
// Rows are held against what whole reading finds.
//
// It fails where a look-up of a turn takes more than two GETs for a data file that
// has none of its rows, or eight and 16 MiB for one that has; a file of which a
// bloom filter says by mistake that it may have them is counted, and more than one
// in a hundred of these is too many.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/it/bench"
	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/parquet"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchlookup:", err)
		os.Exit(1)
	}
}

// A runner is one run of the command.
type runner struct {
	bin    string // folder of the binaries
	memory string // of compact
	target string // size of data files
	plan   bench.Plan
	asks   int // look-ups of each kind
	out    io.Writer

	store   *faults3.Server
	archive *bench.Archive
	folder  string // of files that the programs need
	late    *heldBack
	bucket  *s3sink.Bucket
	truth   *truth
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	b := &runner{out: out, plan: bench.Plan{Lines: 4, Anchor: 25}}
	f := flag.NewFlagSet("benchlookup", flag.ContinueOnError)
	f.StringVar(&b.bin, "bin", "bin", "the folder of the binaries")
	f.StringVar(&b.memory, "memory", "512MiB", "memory of ledgerlake-compact")
	f.StringVar(&b.target, "target", "128MiB", "size of data files")
	f.Int64Var(&b.plan.Rows, "rows", 5_000_000, "how many rows")
	f.IntVar(&b.plan.Tenants, "tenants", 4, "how many tenants each line has")
	f.IntVar(&b.plan.Segment, "segment", 2048, "rows of a segment")
	f.IntVar(&b.asks, "asks", 25, "how many look-ups of each kind")
	if err := f.Parse(args); err != nil {
		return err
	}
	if b.folder, err = os.MkdirTemp("", "ledgerlake-bench"); err != nil {
		return err
	}
	defer os.RemoveAll(b.folder)
	b.store = faults3.Start(faults3.Options{})
	defer b.store.Close()
	for _, step := range []func(context.Context) error{b.build, b.compact, b.open, b.ask} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// say prints a line at once, as a run takes minutes.
func (b *runner) say(format string, args ...any) { fmt.Fprintf(b.out, format+"\n", args...) }

// build makes the archive. What comes last is held back.
func (b *runner) build(context.Context) (err error) {
	began := time.Now()
	b.late = newHeldBack(b.store, b.plan, b.say)
	if b.archive, err = bench.Build(b.plan, b.late.put); err != nil {
		return err
	}
	if err := os.WriteFile(b.key(), []byte(b.archive.Key), 0o600); err != nil {
		return err
	}
	objects, bytes := b.late.sum()
	b.say("%d rows in %d segments of %d bytes: %d lines, %d tenants in each; %d objects are held back; built in %.0f s",
		b.plan.Rows, b.archive.Segments, bytes, b.plan.Lines, b.plan.Tenants, objects, time.Since(began).Seconds())
	return nil
}

// key names the file of the key that signs catalogs: that of the anchors.
func (b *runner) key() string { return filepath.Join(b.folder, "key") }

func (b *runner) url() string {
	return "s3://" + faults3.Bucket + "?endpoint=" + b.store.URL + "&region=us-east-1"
}

// anyKey are credentials that the store does not check.
var anyKey = []string{"AWS_ACCESS_KEY_ID=bench", "AWS_SECRET_ACCESS_KEY=bench"}

// compact runs ledgerlake-compact once, and then puts back what was held back.
func (b *runner) compact(ctx context.Context) error {
	began := time.Now()
	s, err := bench.Spend(ctx, nil, anyKey, filepath.Join(b.bin, "ledgerlake-compact"), "once", "--bucket", b.url(), "--compact.assign", "offline",
		"--key", b.archive.Verifier, "--catalog-key", b.key(), "--compact.memory", b.memory, "--compact.target-bytes", b.target)
	if err != nil {
		return err
	}
	b.say("compacted in %.0f s (%.0f CPU s, %d MiB)", time.Since(began).Seconds(), s.CPU.Seconds(), s.Peak>>20)
	return b.late.release()
}

func (b *runner) open(ctx context.Context) (err error) {
	b.bucket, err = s3sink.Open(ctx, "s3://"+faults3.Bucket, s3sink.Options{Endpoint: b.store.URL, Region: "us-east-1", AccessKey: "bench", SecretKey: "bench"})
	if err != nil {
		return err
	}
	b.truth, err = b.learn(ctx)
	return err
}

// heldBack puts objects into a store, but for the last ones of each line.
type heldBack struct {
	store *faults3.Server
	until int64 // rows of a line
	all   int64
	say   func(string, ...any)

	mu    sync.Mutex
	lines map[string]int64 // rows so far, by folder
	late  map[string][]byte
	done  int64
	bytes int64
}

func newHeldBack(s *faults3.Server, p bench.Plan, say func(string, ...any)) *heldBack {
	line := p.Rows / int64(p.Lines)
	return &heldBack{store: s, until: line - line/100, all: p.Rows, say: say, lines: map[string]int64{}, late: map[string][]byte{}}
}

// put is given the objects of a line in their order.
func (h *heldBack) put(key string, body []byte) error {
	rows := int64(0)
	if strings.HasPrefix(key, archive.LogPrefix) {
		var err error
		if _, rows, err = parquet.TailMetadata(body, int64(len(body))); err != nil {
			return err
		}
	}
	line := lineOf(key)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines[line] += rows
	if rows > 0 {
		h.bytes += int64(len(body))
		if h.done/500_000 < (h.done+rows)/500_000 {
			h.say("%d of %d rows are built", h.done+rows, h.all)
		}
		h.done += rows
	}
	if line != "" && h.lines[line] > h.until {
		h.late[key] = body
		return nil
	}
	h.store.Set(key, body)
	return nil
}

// lineOf returns topic, topic id and partition of a key, "" for none.
func lineOf(key string) string {
	parts := strings.Split(key, "/")
	if len(parts) < 5 {
		return ""
	}
	return strings.Join(parts[1:4], "/")
}

func (h *heldBack) sum() (objects int, bytes int64) { return len(h.late), h.bytes }

func (h *heldBack) release() error {
	if len(h.late) == 0 {
		return errors.New("nothing was held back: too few rows")
	}
	for key, body := range h.late {
		h.store.Set(key, body)
	}
	h.late = nil
	return nil
}
