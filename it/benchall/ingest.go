//go:build it

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"github.com/ledgerlake/ledgerlake/it/bench"
)

// A course is a line of ledgerlake-devstack bench --json.
type course struct {
	Course                      string
	Records, Rows               int64
	Tenants, Segments           int
	WireBytes, Bytes, PeakBytes int64
	CPUSeconds, Seconds         float64
	Puts, OtherRequests         int
}

func (c *course) cpu() time.Duration { return time.Duration(c.CPUSeconds * float64(time.Second)) }

// devstack has ledgerlake-devstack run courses of ingest, which it counts and
// verifies.
func (r *runner) devstack(ctx context.Context, rows, tenants int, courses string) (all map[string]*course, err error) {
	s, err := bench.Spend(ctx, nil, nil, filepath.Join(r.bin, "ledgerlake-devstack"), "bench", "--json", "--courses", courses, "--bin", r.bin,
		"--rows", strconv.Itoa(rows), "--tenants", strconv.Itoa(tenants))
	if err != nil {
		return nil, err
	}
	all = map[string]*course{}
	for d := json.NewDecoder(bytes.NewReader(s.Out)); ; {
		c := new(course)
		switch err := d.Decode(c); {
		case err == io.EOF:
			return all, nil
		case err != nil:
			return nil, err
		}
		all[c.Course] = c
	}
}

// courses are those of ledgerlake-devstack bench. A batch also closes where a turn
// ends, so that strict ones have fewer rows than they may.
var courses = []struct{ course, what string }{
	{"strict", "32 rows or 50 ms, never more"}, {"default", "32 rows or 50 ms, growing while a PUT is under way"}, {"large", "20,000 rows or 2 s"},
}

// ingest measures rows per CPU second, beside what no ingest can do without.
func (r *runner) ingest(ctx context.Context) error {
	got, err := r.devstack(ctx, r.rows, 64, "strict,default,large")
	if err != nil {
		return err
	}
	least, err := r.floor(ctx)
	if err != nil {
		return err
	}
	const peer = "the least: franz-go reads the topic; decode, SHA-256, zstd of the JSON in batches of as many"
	for _, c := range courses {
		g := got[c.course]
		batch := int(g.Rows / int64(g.Segments))
		of := least.read + least.rows(batch)
		what := fmt.Sprintf("ingest, %s (%s rows, %s a segment)", c.what, thousands(g.Rows), thousands(int64(batch)))
		r.table.perCPU(what, g.Rows, g.cpu(), of*time.Duration(g.Rows), peer)
	}
	alone := time.Duration(got["large"].Rows)
	r.table.perCPU("the read loop of franz-go alone, beside the ingest before", got["large"].Rows, got["large"].cpu(), least.read*alone, "reads and drops the same records")
	r.wire = got["large"].WireBytes / got["large"].Records
	for _, c := range courses {
		g := got[c.course]
		r.table.add(fmt.Sprintf("bytes a row, %s: segments of %s", c.what, thousands(g.Rows/int64(g.Segments))), thousands(g.Bytes/g.Rows), r.json(),
			ratio(float64(g.Bytes)/float64(g.Rows), float64(r.wire)), "the same records as JSON")
	}
	return nil
}

// json is how long a record is on the wire.
func (r *runner) json() string { return thousands(r.wire) }

// memory measures the peak of ingest with few tenants and with many.
func (r *runner) memory(ctx context.Context) error {
	idle, err := r.devstack(ctx, 1, 1, "default")
	if err != nil {
		return err
	}
	for _, tenants := range []int{1, 100, 10_000} {
		got, err := r.devstack(ctx, r.rows/2, tenants, "default")
		if err != nil {
			return err
		}
		c := got["default"]
		r.table.add(fmt.Sprintf("peak memory of ingest, %s rows of %s tenants", thousands(c.Rows), thousands(int64(c.Tenants))), mib(c.PeakBytes), mib(idle["default"].PeakBytes), "",
			"ingest that archives one record; --memory, 256 MiB of records, is the default")
	}
	return nil
}
