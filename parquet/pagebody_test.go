package parquet

import (
	"bytes"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/rle"
	"github.com/parquet-go/parquet-go/format"
)

// Levels and indexes of another implementation are read as it wrote them, in runs
// and packs of any length, and never more of them than there are.
func TestHybrid(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for width := uint(0); width <= 20; width++ {
		for range 50 {
			want := make([]int32, 1+r.IntN(300))
			v := int32(0)
			for i := range want {
				if r.IntN(1+r.IntN(20)) == 0 {
					v = r.Int32N(1 << width)
				}
				want[i] = v
			}
			e := rle.Encoding{BitWidth: int(width)}
			b, err := e.EncodeInt32(nil, want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := readHybrid[int32](nil, b, width, len(want))
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("width %d: %v\n%v, want\n%v", width, err, got, want)
			}
			for n := range b {
				if got, err := readHybrid[int32](nil, b[:n], width, len(want)); err == nil && !slices.Equal(got, want) {
					t.Fatalf("width %d: %d of %d bytes give %v", width, n, len(b), got)
				}
			}
		}
	}
}

// Hostile runs take no more memory than the values that a page has.
func TestHybridIsBounded(t *testing.T) {
	for _, b := range [][]byte{
		{0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 1}, // a run of 2⁶³ values
		{0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 1}, // as many packs
		{0x00, 1}, {}, {0x80}, {0x02}, {0x03},
	} {
		got, err := readHybrid[byte](nil, b, 1, 10)
		if err == nil && len(got) != 10 || cap(got) > 1024 {
			t.Errorf("% x: %d values, %v", b, len(got), err)
		}
	}
	if got, err := readHybrid[byte](nil, []byte{0xFE, 0xFF, 0x7F, 1}, 1, 10); err != nil || !bytes.Equal(got, slices.Repeat([]byte{1}, 10)) {
		t.Errorf("a run that is longer than the page: %v, %v", got, err)
	}
}

// A chunk whose pages are of kinds that only other writers use is read by
// parquet-go, to the same rows.
func TestPagesOfOtherKinds(t *testing.T) {
	rows := turnRows(300)
	for name, node := range map[string]pq.Node{
		"seq":        pq.Encoded(pq.Leaf(pq.Int64Type), &pq.DeltaBinaryPacked),
		"session_id": pq.Optional(pq.Encoded(pq.String(), &pq.DeltaByteArray)),
		"ext":        pq.Optional(pq.Encoded(pq.String(), &pq.DeltaLengthByteArray)),
		"row_hash":   pq.Encoded(pq.Leaf(pq.FixedLenByteArrayType(hashSize)), &pq.DeltaByteArray),
	} {
		object := foreign(t, rows, with(name, node))
		if f := openedChunk(t, object, name); f.pages == nil {
			t.Errorf("%s: pages were taken for usual ones", name)
		}
		sameRows(t, readAll(t, object), rows)
	}
	for _, object := range [][]byte{encode(t, rows, nil), dataFile(t, NewDataWriter(DataOptions{}), rows, 64, "{}"), readGolden(t, "segment.parquet")} {
		for _, name := range []string{"seq", "session_id", "ext", "row_hash", "fallback_chain", "kind"} {
			if f := openedChunk(t, object, name); f.pages != nil {
				t.Errorf("%s: usual pages were left to parquet-go", name)
			}
		}
	}
}

// openedChunk returns the reader of the first chunk of a column.
func openedChunk(t *testing.T, object []byte, name string) *chunkReader {
	t.Helper()
	f, err := Open(object)
	if err != nil {
		t.Fatal(err)
	}
	for j := range f.leaves {
		if f.leaves[j].names[0] == name {
			r := &chunkReader{leaf: &f.leaves[j], column: &columns[f.leaves[j].column]}
			if err := r.open(f, 0, j); err != nil {
				t.Fatal(err)
			}
			return r
		}
	}
	t.Fatalf("no column %s", name)
	return nil
}

// A page may hold nothing but its values: what stands behind them no row would
// have, and no eye would see.
func TestNothingStandsBehindTheValues(t *testing.T) {
	l := &leaf{maxDef: 1}
	for name, c := range map[string]struct {
		column string
		n      int32
		body   string
		want   string
	}{
		"text":            {"session_id", 2, "\x02\x00\x00\x00\x04\x01\x02\x00\x00\x00ab\x00\x00\x00\x00", ""},
		"text, and more":  {"session_id", 1, "\x02\x00\x00\x00\x02\x01\x02\x00\x00\x00ab\x00\x00\x00\x00", "after the last value"},
		"text, cut":       {"session_id", 1, "\x02\x00\x00\x00\x02\x01\x03\x00\x00\x00ab", "ends early"},
		"number":          {"kafka_offset", 1, "\x02\x00\x00\x00\x02\x0112345678", ""},
		"number, and one": {"kafka_offset", 1, "\x02\x00\x00\x00\x02\x01123456789", "in 9 bytes"},
		"null, and bytes": {"user_commit", 1, "\x02\x00\x00\x00\x02\x00hidden", "in 6 bytes"},
		"null":            {"user_commit", 1, "\x02\x00\x00\x00\x02\x00", ""},
		"level of 2":      {"user_commit", 1, "\x02\x00\x00\x00\x02\x02", "level above"},
		"levels, cut":     {"user_commit", 1, "\x03\x00\x00\x00\x02\x00", "levels end early"},
	} {
		r := chunkReader{leaf: l, column: &columns[columnByName[c.column]], codec: format.Uncompressed}
		h := pageHeader{kind: format.DataPage, size: int32(len(c.body)), compressed: int32(len(c.body)), values: c.n, encoding: format.Plain}
		object := append(h.append(nil), c.body...)
		r.walk = pageWalk{object: object, end: int64(len(object))}
		_, err := r.more()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// The headers that are written are read as they were meant, by both readers.
func TestPageHeaders(t *testing.T) {
	for _, h := range []pageHeader{
		{kind: format.DataPage, size: 1 << 20, compressed: 300, values: 20_480, encoding: format.RLEDictionary, defs: format.RLE, reps: format.RLE},
		{kind: format.DictionaryPage, size: 0, compressed: 0, values: 0, encoding: format.Plain},
		{kind: format.DictionaryPage, size: 127, compressed: 128, values: 64, encoding: format.Plain},
	} {
		r := thriftReader{b: h.append(nil)}
		var got pageHeader
		got.read(&r)
		if r.whole() != nil || got != h {
			t.Errorf("%+v, %v, want %+v", got, r.err, h)
		}
	}
	if bits.Len8(levelElement) != 2 {
		t.Error("levels of lists do not have 2 bits")
	}
}
