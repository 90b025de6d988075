package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/ledgerlake/ledgerlake/chain"
)

// What we write, and what another writer of the format writes, bounds and bloom
// filters included, is what its values are.
func TestBoundsOfGoodObjects(t *testing.T) {
	object, err := NewEncoder().Encode(turnRows(300), []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	for name, object := range map[string][]byte{
		"ours":    object,
		"before":  goEncode(t, turnRows(300), []byte("{}")),
		"blooms":  withBlooms(t, turnRows(300)),
		"no rows": withBlooms(t, nil),
	} {
		if err := CheckBounds(object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	files, err := filepath.Glob("testdata/*.parquet")
	if err != nil || len(files) == 0 {
		t.Fatalf("no objects of another writer: %v", err)
	}
	for _, file := range files {
		object, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := CheckBounds(object); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// parquet-go alone leaves a column index without bounds for sealed columns, by
// which engines skip rows (the writer of segments mended it); it is seen.
func TestBoundsOfParquetGoAlone(t *testing.T) {
	if err := CheckBounds(foreign(t, turnRows(300), formatGroup(), sealing()...)); err == nil {
		t.Error("accepted")
	}
}

// withBlooms returns an object of ours with a bloom filter.
func withBlooms(t *testing.T, rows []chain.Row) []byte {
	t.Helper()
	options := append([]pq.WriterOption{schema, pq.BloomFilters(pq.SplitBlockFilter(10, "turn_id"))}, sealing()...)
	e := &goEncoder{writer: pq.NewGenericWriter[any](io.Discard, options...)}
	object, err := e.Encode(rows, []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// A statistic by which an engine would skip a row that is there is a fault,
// wherever it stands. Each case changes one.
func TestBoundsThatHideRows(t *testing.T) {
	good, err := NewEncoder().Encode(turnRows(300), []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	number := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	for name, c := range map[string]struct {
		column string
		change func(*format.Statistics)
	}{
		"minimum of a text":     {"tenant_id", func(s *format.Statistics) { s.MinValue = []byte("zzzz") }},
		"maximum of a text":     {"tenant_id", func(s *format.Statistics) { s.MaxValue = []byte("!") }},
		"minimum of a number":   {"kafka_offset", func(s *format.Statistics) { s.MinValue = number(1 << 40) }},
		"maximum of a time":     {"archived_at", func(s *format.Statistics) { s.MaxValue = number(1) }},
		"the old minimum":       {"tenant_id", func(s *format.Statistics) { s.Min = []byte("zzzz") }},
		"the old maximum":       {"tenant_id", func(s *format.Statistics) { s.Max = []byte("!") }},
		"nulls where are none":  {"tenant_id", func(s *format.Statistics) { s.NullCount = 300 }},
		"nulls of a sealed one": {"context", func(s *format.Statistics) { s.NullCount = 300000 }},
	} {
		meta, before := footerOf(t, good)
		found := false
		for j := range meta.RowGroups[0].Columns {
			if m := &meta.RowGroups[0].Columns[j].MetaData; m.PathInSchema[0] == c.column {
				c.change(&m.Statistics)
				found = true
			}
		}
		if err := CheckBounds(reFooter(t, before, meta)); err == nil || !found {
			t.Errorf("%s: accepted", name)
		}
	}
}

// The same in the column index, and in a bloom filter.
func TestIndexesThatHideRows(t *testing.T) {
	good := withBlooms(t, turnRows(300))
	meta, _ := footerOf(t, good)
	var index, bloom [2]int64
	var tenant []byte // the least
	for j := range meta.RowGroups[0].Columns {
		c := &meta.RowGroups[0].Columns[j]
		if c.MetaData.PathInSchema[0] == "tenant_id" {
			index = [2]int64{c.ColumnIndexOffset, c.ColumnIndexOffset + int64(c.ColumnIndexLength)}
			tenant = c.MetaData.Statistics.MinValue
		}
		if m := &c.MetaData; m.BloomFilterOffset > 0 {
			bloom = [2]int64{m.BloomFilterOffset, m.BloomFilterOffset + int64(m.BloomFilterLength)}
		}
	}
	bad := bytes.Clone(good)
	at := bytes.Index(bad[index[0]:index[1]], tenant)
	if at < 0 || index[0] == 0 || bloom[0] == 0 {
		t.Fatal("no column index or no bloom filter")
	}
	copy(bad[index[0]+int64(at):], bytes.Repeat([]byte{'~'}, len(tenant)))
	if err := CheckBounds(bad); err == nil {
		t.Error("a minimum above the values in the column index: accepted")
	}
	bad = bytes.Clone(good)
	clear(bad[(bloom[0]+bloom[1])/2 : bloom[1]])
	if err := CheckBounds(bad); err == nil {
		t.Error("a bloom filter without its values: accepted")
	}
}

// Which rows lie in a page of a list no count of values says: the offset index is
// held against the rows themselves.
func TestOffsetIndexOfAListIsCounted(t *testing.T) {
	rows := turnRows(3_000)
	for i := range rows {
		rows[i].FallbackChain = []string{fmt.Sprintf("%0100d", i), fmt.Sprintf("%0100d", -i)}
	}
	good := encode(t, rows, []byte("{}"))
	meta, _ := footerOf(t, good)
	found := false
	for j := range meta.RowGroups[0].Columns {
		c := &meta.RowGroups[0].Columns[j]
		if c.MetaData.PathInSchema[0] != "fallback_chain" {
			continue
		}
		found = true
		at, end := c.OffsetIndexOffset, c.OffsetIndexOffset+int64(c.OffsetIndexLength)
		index := &format.OffsetIndex{}
		if err := thrift.Unmarshal(new(thrift.CompactProtocol), good[at:end], index); err != nil {
			t.Fatal(err)
		}
		if len(index.PageLocations) < 2 {
			t.Fatalf("%d pages are too few", len(index.PageLocations))
		}
		for page := range index.PageLocations {
			index.PageLocations[page].FirstRowIndex++
			text, err := thrift.Marshal(new(thrift.CompactProtocol), index)
			if err != nil || len(text) != int(end-at) {
				t.Fatal(len(text), err)
			}
			bad := bytes.Clone(good)
			copy(bad[at:], text)
			if CheckLayout(bad) == nil && CheckBounds(bad) == nil {
				t.Errorf("page %d begins with another row: accepted", page)
			}
			index.PageLocations[page].FirstRowIndex--
		}
	}
	if !found {
		t.Fatal("no list")
	}
	if err := CheckBounds(good); err != nil {
		t.Error(err)
	}
}
