//go:build it

package it

import (
	"crypto/sha256"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// tamper changes copies of a good archive in every way that a hand in the
// bucket has, and requires that verify sees each one. The newest segment of a
// partition is spared: only anchors can hold that.
//
// Partitions do not depend on each other, so each is copied into an archive of
// its own, which is verified in a fraction of the time.
func tamper(t *testing.T, a oracle.Archive) {
	t.Helper()
	lines, err := filepath.Glob(filepath.Join(a.Dir, "log", "*", "*", "*"))
	if err != nil || len(lines) != partitions {
		t.Fatalf("%d partitions, want %d: %v", len(lines), partitions, err)
	}
	rng := seeded(t)
	t.Run("tamper", func(t *testing.T) {
		for i, line := range lines {
			rng := rand.New(rand.NewPCG(rng.Uint64(), 0))
			t.Run(filepath.Base(line), func(t *testing.T) {
				t.Parallel()
				c := copyLine(t, a.Dir, line)
				c.want(t, oracle.Proved)
				c.flipBits(t, rng, 200/partitions)
				c.moveObjects(t, lines[(i+1)%len(lines)])
				c.changeRows(t)
				c.want(t, oracle.Proved) // all of it was put back
			})
		}
	})
}

// A copied is an archive with one line.
type copied struct {
	dir      string
	segments []string // paths, in order
}

func copyLine(t *testing.T, dir, line string) *copied {
	t.Helper()
	c := &copied{dir: t.TempDir()}
	below, err := filepath.Rel(dir, line)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(c.dir, archive.RootKey), read(t, filepath.Join(dir, archive.RootKey)))
	if err := os.CopyFS(filepath.Join(c.dir, below), os.DirFS(line)); err != nil {
		t.Fatal(err)
	}
	if c.segments, err = filepath.Glob(filepath.Join(c.dir, below, "*.parquet")); err != nil {
		t.Fatal(err)
	}
	if len(c.segments) < 4 {
		t.Fatalf("%d segments are too few to tamper with", len(c.segments))
	}
	return c
}

// want verifies the archive and requires an exit code.
func (c *copied) want(t *testing.T, code int) oracle.Report {
	t.Helper()
	v, err := oracle.Verify(c.dir, nil, "--json")
	if err != nil {
		t.Fatal(err)
	}
	report, err := v.Report()
	if err != nil {
		t.Fatal(err)
	}
	if v.Code != code {
		t.Errorf("verify: exit %d, want %d: %s", v.Code, code, tail(v.Stdout))
	}
	return report
}

// wantFault requires that verify blames the object, by one of its faults.
func (c *copied) wantFault(t *testing.T, path string) {
	t.Helper()
	key, err := filepath.Rel(c.dir, path)
	if err != nil {
		t.Fatal(err)
	}
	report := c.want(t, oracle.Tampered)
	for _, f := range report.Faults {
		if f.Key == filepath.ToSlash(key) {
			return
		}
	}
	t.Errorf("no fault names %s: %+v", key, report.Faults)
}

// flipBits flips n bits, each in any place of any segment but the newest, one
// at a time.
func (c *copied) flipBits(t *testing.T, rng *rand.Rand, n int) {
	for range n {
		path := c.segments[rng.IntN(len(c.segments)-1)]
		good := read(t, path)
		at, bit := rng.IntN(len(good)), rng.IntN(8)
		bad := slices.Clone(good)
		bad[at] ^= 1 << bit
		write(t, path, bad)
		c.wantFault(t, path)
		write(t, path, good)
		if t.Failed() {
			t.Fatalf("bit %d of byte %d of %d of %s", bit, at, len(good), path)
		}
	}
}

// moveObjects takes whole objects away, adds some, and swaps them.
func (c *copied) moveObjects(t *testing.T, otherLine string) {
	middle := len(c.segments) / 2
	one, next := c.segments[middle], c.segments[middle+1]
	newest := c.segments[len(c.segments)-1]
	after := strings.Replace(newest, filepath.Base(newest), segmentName(len(c.segments)), 1)
	elsewhere := filepath.Join(filepath.Dir(filepath.Dir(one)), "00099", segmentName(0))
	others, err := filepath.Glob(filepath.Join(otherLine, "*.parquet"))
	if err != nil || len(others) == 0 {
		t.Fatal("no other line", err)
	}
	for _, c2 := range []struct {
		name    string
		content map[string][]byte // by path; nil takes it away
	}{
		{"removed from the middle", map[string][]byte{one: nil}},
		{"removed, the first", map[string][]byte{c.segments[0]: nil}},
		{"swapped with its neighbour", map[string][]byte{one: read(t, next), next: read(t, one)}},
		{"replaced by its neighbour", map[string][]byte{one: read(t, next)}},
		{"replaced by one of another partition", map[string][]byte{one: read(t, others[len(others)/2])}},
		{"cut short", map[string][]byte{one: read(t, one)[:100]}},
		{"emptied", map[string][]byte{one: {}}},
		{"added at the end", map[string][]byte{after: read(t, one)}},
		{"added at the end, of another partition", map[string][]byte{after: read(t, others[len(others)-1])}},
		{"added as another partition", map[string][]byte{elsewhere: read(t, c.segments[0])}},
		{"added beside", map[string][]byte{one + ".bak": read(t, one)}},
	} {
		back := map[string][]byte{}
		for path, content := range c2.content {
			back[path], _ = os.ReadFile(path) // nil where it was not there
			replace(t, path, content)
		}
		v, err := oracle.Verify(c.dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v.Code != oracle.Tampered && v.Code != oracle.LookAt {
			t.Errorf("a segment %s: exit %d: %s", c2.name, v.Code, v.Stdout)
		}
		for path, content := range back {
			replace(t, path, content)
		}
	}
}

// changeRows changes rows of a segment, and then hides it as well as a hand in
// the bucket can that does not recompute the chain: counts, coverage and the
// hashes of all later segments are right again.
func (c *copied) changeRows(t *testing.T) {
	for _, change := range []struct {
		name string
		do   func(o *archive.SegmentObject, i int) bool // false: not with this row
	}{
		{"cut", cutRow},
		{"added", func(o *archive.SegmentObject, i int) bool {
			o.Rows = slices.Insert(o.Rows, i, o.Rows[i])
			logOf(o, i).Rows++
			return true
		}},
		{"swapped", swapRows},
		{"another status", func(o *archive.SegmentObject, i int) bool {
			o.Rows[i].Status = audit.Str("provider-error, not")
			return true
		}},
		{"another user", func(o *archive.SegmentObject, i int) bool {
			o.Rows[i].UserID = audit.Str(o.Rows[i].UserID.S + "'")
			return o.Rows[i].UserID.Valid
		}},
		{"another digit in a slot", func(o *archive.SegmentObject, i int) bool {
			return changeDigit(o.Rows[i].Slots[:])
		}},
		{"a field's end moved into the next", func(o *archive.SegmentObject, i int) bool {
			r := &o.Rows[i]
			family, model := r.Family.S, r.ModelID.S
			if len(family) < 2 || model == "" {
				return false
			}
			last := len(family) - 1
			r.Family, r.ModelID = audit.Str(family[:last]), audit.Str(family[last:]+model)
			return true
		}},
	} {
		c.changeRow(t, change.name, change.do)
	}
}

// changeRow makes one change in the middle of the line, verifies, and undoes it.
func (c *copied) changeRow(t *testing.T, name string, do func(o *archive.SegmentObject, i int) bool) {
	t.Helper()
	before := map[string][]byte{}
	for _, path := range c.segments {
		before[path] = read(t, path)
	}
	defer func() {
		for path, content := range before {
			write(t, path, content)
		}
	}()
	for at := len(c.segments) / 2; at < len(c.segments)-1; at++ {
		o := segment(t, before[c.segments[at]])
		for i := range o.Rows {
			changed := segment(t, before[c.segments[at]])
			if do(changed, i) {
				c.relink(t, at, changed)
				c.want(t, oracle.Tampered)
				if t.Failed() {
					t.Fatalf("%s: row %d of %s", name, i, c.segments[at])
				}
				return
			}
		}
	}
	t.Fatalf("%s: no row in half a line lets it be done", name)
}

// relink writes a changed segment, and all later ones with the hash of the one
// before.
func (c *copied) relink(t *testing.T, at int, o *archive.SegmentObject) {
	t.Helper()
	o.Segment.Rows = int64(len(o.Rows))
	for {
		body := encode(t, o)
		write(t, c.segments[at], body)
		if at++; at == len(c.segments) {
			return
		}
		o = segment(t, read(t, c.segments[at]))
		sum := chain.Hash(sha256.Sum256(body))
		o.PreviousSHA256 = &sum
	}
}

// cutRow takes a row out and says that Kafka skipped its offset.
func cutRow(o *archive.SegmentObject, i int) bool {
	offset := o.Rows[i].KafkaOffset.N
	logOf(o, i).Rows--
	o.Rows = slices.Delete(o.Rows, i, i+1)
	o.Gaps = append(o.Gaps, archive.Gap{From: offset, To: offset + 1, Cause: archive.GapCompacted})
	slices.SortFunc(o.Gaps, func(a, b archive.Gap) int { return int(a.From - b.From) })
	return true
}

// swapRows lets two neighbours of a log trade all but their places.
func swapRows(o *archive.SegmentObject, i int) bool {
	for j := i + 1; j < len(o.Rows); j++ {
		a, b := &o.Rows[i], &o.Rows[j]
		if a.TenantID != b.TenantID {
			continue
		}
		*a, *b = *b, *a
		a.Seq, b.Seq = b.Seq, a.Seq
		a.KafkaOffset, b.KafkaOffset = b.KafkaOffset, a.KafkaOffset
		a.PrevHash, b.PrevHash = b.PrevHash, a.PrevHash
		a.RowHash, b.RowHash = b.RowHash, a.RowHash
		return true
	}
	return false
}

// changeDigit changes the last digit of the first slot that has one.
func changeDigit(slots [][]byte) bool {
	for i, slot := range slots {
		if at := strings.LastIndexAny(string(slot), "0123456789"); at >= 0 {
			slots[i] = slices.Clone(slot)
			slots[i][at] ^= 1
			return true
		}
	}
	return false
}

func logOf(o *archive.SegmentObject, i int) *archive.LogInterval {
	for j := range o.Logs {
		if o.Logs[j].Tenant == o.Rows[i].TenantID.S {
			return &o.Logs[j]
		}
	}
	panic("a row of a log that the segment does not list")
}

func segment(t *testing.T, body []byte) *archive.SegmentObject {
	t.Helper()
	o, err := archive.ReadSegment(body, nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func encode(t *testing.T, o *archive.SegmentObject) []byte {
	t.Helper()
	meta, err := archive.EncodeSegment(o.Segment)
	if err != nil {
		t.Fatal(err)
	}
	body, err := parquet.NewEncoder().Encode(o.Rows, meta)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(body)
}

func segmentName(ordinal int) string {
	return filepath.Base(archive.SegmentKey(archive.Line{Topic: "t", TopicID: "i"}, int64(ordinal)))
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t *testing.T, path string, body []byte) {
	t.Helper()
	if err := os.WriteFile(path, body, 0o644); err != nil {
		t.Fatal(err)
	}
}

// replace writes a file, in a new folder if need be, or removes it.
func replace(t *testing.T, path string, body []byte) {
	t.Helper()
	if body == nil {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, path, body)
}
