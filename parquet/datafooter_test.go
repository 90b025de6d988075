package parquet

import (
	"math/bits"
	"slices"
	"testing"

	"github.com/parquet-go/parquet-go/format"
)

// Engines that are not at hand here (Trino, Athena) go by what a footer says:
// places, sizes, encodings, orders of columns and lengths of bloom filters are
// those of what is there, in a file that was written and in one that was merged.
func TestFooterSaysWhatIsThere(t *testing.T) {
	rows := turnRows(2500)
	rows[1200].ModelID.S = "another"
	w := NewDataWriter(DataOptions{GroupRows: 900})
	written := dataFile(t, w, rows, 64, "{}")
	for name, object := range map[string][]byte{
		"written": written,
		"merged":  merge(t, w, written, dataFile(t, w, rows[:100], 64, "{}"), written),
	} {
		meta, _ := footerOf(t, object)
		if len(meta.ColumnOrders) != len(columns) || len(meta.RowGroups) < 3 || meta.CreatedBy == "" {
			t.Errorf("%s: orders of %d columns, %d row groups, created by %q", name, len(meta.ColumnOrders), len(meta.RowGroups), meta.CreatedBy)
		}
		for i := range meta.RowGroups {
			checkFooterGroup(t, object, i, &meta.RowGroups[i])
		}
	}
}

func checkFooterGroup(t *testing.T, object []byte, i int, g *format.RowGroup) {
	t.Helper()
	size, packed := int64(0), int64(0)
	for j := range g.Columns {
		m := &g.Columns[j].MetaData
		size, packed = size+m.TotalUncompressedSize, packed+m.TotalCompressedSize
		checkFooterChunk(t, object, m)
		if g.Columns[j].OffsetIndexLength == 0 || (g.Columns[j].ColumnIndexLength == 0) != columns[j].unbounded() {
			t.Errorf("%s: no offset index, or a column index where none is wanted", columns[j].name)
		}
	}
	if int(g.Ordinal) != i || g.FileOffset != chunkStart(&g.Columns[0].MetaData) || g.TotalByteSize != size || g.TotalCompressedSize != packed {
		t.Errorf("row group %d: ordinal %d at %d, %d and %d bytes, want %d and %d", i, g.Ordinal, g.FileOffset, g.TotalByteSize, g.TotalCompressedSize, size, packed)
	}
}

func checkFooterChunk(t *testing.T, object []byte, m *format.ColumnMetaData) {
	t.Helper()
	name := m.PathInSchema[0]
	size, first, seen := int64(0), int64(0), []format.Encoding{format.RLE}
	for w := walk(object, m); w.more(); {
		at := w.at
		h, body, err := w.next()
		if err != nil {
			t.Fatal(err)
		}
		size += w.at - at - int64(len(body)) + int64(h.size)
		if h.kind == format.DataPage && first == 0 {
			first = at
		}
		if (h.kind == format.DictionaryPage) != (at == m.DictionaryPageOffset) {
			t.Errorf("%s: dictionary at %d, the footer says %d", name, at, m.DictionaryPageOffset)
		}
		seen = append(seen, h.encoding)
	}
	said := slices.Sorted(slices.Values(m.Encoding))
	slices.Sort(seen)
	if seen = slices.Compact(seen); !slices.Equal(said, seen) {
		t.Errorf("%s: encodings %v, the footer says %v", name, seen, said)
	}
	if size != m.TotalUncompressedSize || first != m.DataPageOffset {
		t.Errorf("%s: %d bytes from %d, the footer says %d from %d", name, size, first, m.TotalUncompressedSize, m.DataPageOffset)
	}
	checkFooterBloom(t, object, m)
}

func checkFooterBloom(t *testing.T, object []byte, m *format.ColumnMetaData) {
	t.Helper()
	name := m.PathInSchema[0]
	if wanted := bloomOf(name) != nil && m.Statistics.NullCount < m.NumValues; wanted != (m.BloomFilterLength > 0) {
		t.Errorf("%s: a bloom filter of %d bytes", name, m.BloomFilterLength)
	}
	if m.BloomFilterLength == 0 {
		return
	}
	n, err := bloomSize(object[m.BloomFilterOffset:])
	if err != nil || n != int64(m.BloomFilterLength) {
		t.Errorf("%s: bloom filter of %d bytes (%v), the footer says %d", name, n, err, m.BloomFilterLength)
	}
	header := n % 32 // it is shorter than a block, of which the filter has some
	if size := uint64(n - header); bits.OnesCount64(size) != 1 || size < 32 {
		t.Errorf("%s: filter of %d bytes", name, size)
	}
}
