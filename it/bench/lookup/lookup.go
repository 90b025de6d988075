//go:build it

// Package lookup measures what it takes to look up turns, records, sessions
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
package lookup

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/it/bench"
	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/parquet"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// A Bench is one run.
type Bench struct {
	Bin    string // folder of the binaries
	Memory string // of compact
	Target string // size of data files
	Plan   bench.Plan
	Asks   int // look-ups of each kind
	Out    io.Writer

	store   *faults3.Server
	archive *bench.Archive
	folder  string // of files that the programs need
	late    *heldBack
	bucket  *s3sink.Bucket
	truth   *truth
	result  Result
}

// A Result is what was measured.
type Result struct {
	Rows  int64 // of the archive
	Whole Cost  // of reading all objects of the tenant whole
	Kinds []Kind
}

// A Cost is what reading took.
type Cost struct{ Gets, Bytes float64 }

// A Kind is the mean of all look-ups of one kind.
type Kind struct {
	Name string
	Rows float64 // that were found
	Cost         // beyond opening the archive
	Open Cost    // the archive, for the first look-up
	CPU  time.Duration
}

// Usual is the archive that is measured on, but for its rows.
func Usual() bench.Plan {
	return bench.Plan{Rows: 5_000_000, Lines: 4, Tenants: 4, Anchor: 25, Segment: 2048}
}

// Run reads flags, measures and prints.
func Run(ctx context.Context, args []string, out io.Writer) (err error) {
	b := &Bench{Out: out, Plan: Usual()}
	f := flag.NewFlagSet("benchlookup", flag.ContinueOnError)
	f.StringVar(&b.Bin, "bin", "bin", "the folder of the binaries")
	f.StringVar(&b.Memory, "memory", "512MiB", "memory of ledgerlake-compact")
	f.StringVar(&b.Target, "target", "128MiB", "size of data files")
	f.Int64Var(&b.Plan.Rows, "rows", b.Plan.Rows, "how many rows")
	f.IntVar(&b.Plan.Tenants, "tenants", b.Plan.Tenants, "how many tenants each line has")
	f.IntVar(&b.Plan.Segment, "segment", b.Plan.Segment, "rows of a segment")
	f.IntVar(&b.Asks, "asks", 25, "how many look-ups of each kind")
	if err := f.Parse(args); err != nil {
		return err
	}
	_, err = b.Measure(ctx)
	return err
}

// Measure builds the archive, looks rows up in it and prints what that took. The
// error names look-ups that took more than they may, too.
func (b *Bench) Measure(ctx context.Context) (_ *Result, err error) {
	if b.folder, err = os.MkdirTemp("", "ledgerlake-bench"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(b.folder)
	b.store = faults3.Start(faults3.Options{})
	defer b.store.Close()
	for _, step := range []func(context.Context) error{b.build, b.compact, b.open, b.ask} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return &b.result, nil
}

// say prints a line at once, as a run takes minutes.
func (b *Bench) say(format string, args ...any) { fmt.Fprintf(b.Out, format+"\n", args...) }

// build makes the archive. What comes last is held back.
func (b *Bench) build(context.Context) (err error) {
	began := time.Now()
	b.late = newHeldBack(b.store, b.Plan, b.say)
	if b.archive, err = bench.Build(b.Plan, b.late.put); err != nil {
		return err
	}
	if err := os.WriteFile(b.key(), []byte(b.archive.Key), 0o600); err != nil {
		return err
	}
	objects, bytes := b.late.sum()
	b.say("%d rows in %d segments of %d bytes: %d lines, %d tenants in each; %d objects are held back; built in %.0f s",
		b.Plan.Rows, b.archive.Segments, bytes, b.Plan.Lines, b.Plan.Tenants, objects, time.Since(began).Seconds())
	return nil
}

// key names the file of the key that signs catalogs: that of the anchors.
func (b *Bench) key() string { return filepath.Join(b.folder, "key") }

func (b *Bench) url() string {
	return "s3://" + faults3.Bucket + "?endpoint=" + b.store.URL + "&region=us-east-1"
}

// anyKey are credentials that the store does not check.
var anyKey = []string{"AWS_ACCESS_KEY_ID=bench", "AWS_SECRET_ACCESS_KEY=bench"}

// compact runs ledgerlake-compact once, and then puts back what was held back.
func (b *Bench) compact(ctx context.Context) error {
	began := time.Now()
	s, err := bench.Spend(ctx, nil, anyKey, filepath.Join(b.Bin, "ledgerlake-compact"), "once", "--bucket", b.url(), "--compact.assign", "offline",
		"--key", b.archive.Verifier, "--catalog-key", b.key(), "--compact.memory", b.Memory, "--compact.target-bytes", b.Target)
	if err != nil {
		return err
	}
	b.say("compacted in %.0f s (%.0f CPU s, %d MiB)", time.Since(began).Seconds(), s.CPU.Seconds(), s.Peak>>20)
	return b.late.release()
}

func (b *Bench) open(ctx context.Context) (err error) {
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
