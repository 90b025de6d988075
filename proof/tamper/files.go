package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/parquet"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

const parquetMagic = "PAR1"

// A file is a Parquet file in its parts, to be put together otherwise.
//
//	magic | pages of each row group | column indexes | offset indexes | more | footer
type file struct {
	meta   format.FileMetaData
	groups []group
}

// A group is a row group with its indexes.
type group struct {
	meta    format.RowGroup
	pages   []byte
	base    int64 // where the pages begin in the file that they are from
	columns []*format.ColumnIndex
	offsets []*format.OffsetIndex
	blooms  map[int][]byte // by column
}

// openFile takes a file of one row group, as segments are, into its parts.
func openFile(body []byte) *file {
	f, err := pq.OpenFile(bytes.NewReader(body), int64(len(body)))
	must(err)
	meta := *f.Metadata()
	g := group{meta: meta.RowGroups[0], base: int64(len(parquetMagic)), blooms: map[int][]byte{}}
	end := int64(len(body))
	for i := range g.meta.Columns {
		c := &g.meta.Columns[i]
		g.columns = append(g.columns, part[format.ColumnIndex](body, c.ColumnIndexOffset, c.ColumnIndexLength))
		g.offsets = append(g.offsets, part[format.OffsetIndex](body, c.OffsetIndexOffset, c.OffsetIndexLength))
		if c.ColumnIndexOffset > 0 {
			end = min(end, c.ColumnIndexOffset)
		}
	}
	g.pages = bytes.Clone(body[g.base:end])
	return &file{meta, []group{g}}
}

// part decodes a part of a file, or returns nil where there is none.
func part[T any](body []byte, at int64, n int32) *T {
	if at == 0 {
		return nil
	}
	v := new(T)
	must(thrift.Unmarshal(new(thrift.CompactProtocol), body[at:at+int64(n)], v))
	return v
}

func (g *group) clone() group {
	c := *g
	c.meta.Columns = slices.Clone(g.meta.Columns)
	c.columns, c.offsets = make([]*format.ColumnIndex, len(g.columns)), make([]*format.OffsetIndex, len(g.offsets))
	for i := range c.columns {
		if ci := g.columns[i]; ci != nil {
			copied := *ci
			c.columns[i] = &copied
		}
		if oi := g.offsets[i]; oi != nil {
			copied := *oi
			copied.PageLocations = slices.Clone(oi.PageLocations)
			c.offsets[i] = &copied
		}
	}
	return c
}

// encode puts the file together. hole lies between the indexes and the footer.
func (f *file) encode(hole []byte) []byte {
	body := []byte(parquetMagic)
	groups := make([]group, len(f.groups))
	f.meta.NumRows = 0
	for i := range f.groups {
		groups[i] = f.groups[i].clone()
		groups[i].move(int64(len(body)))
		body = append(body, groups[i].pages...)
		f.meta.NumRows += groups[i].meta.NumRows
	}
	for i := range groups {
		for j, ci := range groups[i].columns {
			c := &groups[i].meta.Columns[j]
			body, c.ColumnIndexOffset, c.ColumnIndexLength = appendPart(body, ci)
		}
	}
	for i := range groups {
		for j, oi := range groups[i].offsets {
			c := &groups[i].meta.Columns[j]
			body, c.OffsetIndexOffset, c.OffsetIndexLength = appendPart(body, oi)
		}
		for j, bloom := range groups[i].blooms {
			m := &groups[i].meta.Columns[j].MetaData
			m.BloomFilterOffset, m.BloomFilterLength = int64(len(body)), int32(len(bloom))
			body = append(body, bloom...)
		}
	}
	f.meta.RowGroups = nil
	for i := range groups {
		f.meta.RowGroups = append(f.meta.RowGroups, groups[i].meta)
	}
	footer, err := thrift.Marshal(new(thrift.CompactProtocol), &f.meta)
	must(err)
	body = append(append(body, hole...), footer...)
	body = binary.LittleEndian.AppendUint32(body, uint32(len(footer)))
	return append(body, parquetMagic...)
}

func appendPart[T any](body []byte, v *T) (_ []byte, at int64, n int32) {
	if v == nil {
		return body, 0, 0
	}
	text, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	must(err)
	return append(body, text...), int64(len(body)), int32(len(text))
}

// move says that the pages begin at another place.
func (g *group) move(base int64) {
	by := base - g.base
	g.base = base
	shift := func(at *int64) {
		if *at > 0 {
			*at += by
		}
	}
	shift(&g.meta.FileOffset)
	for i := range g.meta.Columns {
		c := &g.meta.Columns[i]
		shift(&c.FileOffset)
		shift(&c.MetaData.DataPageOffset)
		shift(&c.MetaData.DictionaryPageOffset)
		if oi := g.offsets[i]; oi != nil {
			for j := range oi.PageLocations {
				shift(&oi.PageLocations[j].Offset)
			}
		}
	}
}

// inGroups returns a segment as a file of two row groups, the first of which has
// n rows.
func inGroups(seg *prooftest.Segment, n int) *file {
	meta, err := archive.EncodeSegment(&seg.Meta)
	must(err)
	var f *file
	for _, rows := range [][2]int{{0, n}, {n, len(seg.Rows)}} {
		body, err := parquet.NewEncoder().Encode(seg.Rows[rows[0]:rows[1]], meta)
		must(err)
		next := openFile(body)
		if f == nil {
			f = next
			continue
		}
		f.groups = append(f.groups, next.groups...)
	}
	return f
}

// fileAttacks change segments below their rows: row groups, and what engines go
// by to skip rows.
func fileAttacks() []attack {
	return slices.Concat(
		groupAttacks(),
		coveredFiles("statistics, page indexes, bloom filters", append(boundAttacks(), footerAttacks()...)),
	)
}

// A fileChange changes a file and reports whether there was anything to change.
type fileChange struct {
	name string
	do   func(f *file) (hole []byte, ok bool)
}

// coveredFiles makes each change of the file of segment 0, as it is, and with all
// hashes and signatures around it made anew.
func coveredFiles(kind string, changes []fileChange) (all []attack) {
	for _, ch := range changes {
		for _, cover := range []string{"", ", later segments linked anew", ", anchors signed anew with the right key"} {
			all = append(all, attack{kind: kind, name: ch.name + cover, want: 1, do: func(s *subject) objects {
				seg := s.calls.Segments[0]
				f := openFile(seg.Body)
				hole, ok := ch.do(f)
				if !ok {
					return nil
				}
				seg.Body = f.encode(hole)
				hide(s, cover)
				return s.pack()
			}})
		}
	}
	return all
}

func hide(s *subject, cover string) {
	if cover != "" {
		s.calls.Relink(1)
	}
	if cover == ", anchors signed anew with the right key" {
		s.calls.Reanchor()
	}
}

// groupAttacks are on a segment that has two row groups and is right in itself.
func groupAttacks() (all []attack) {
	for _, c := range []struct {
		name string
		do   func(f *file)
	}{
		{"the first dropped", func(f *file) { f.groups = f.groups[1:] }},
		{"the last dropped", func(f *file) { f.groups = f.groups[:1] }},
		{"all dropped", func(f *file) { f.groups = nil }},
		{"the first repeated", func(f *file) { f.groups = append(f.groups, f.groups[0]) }},
		{"the last repeated", func(f *file) { f.groups = append(f.groups, f.groups[1]) }},
		{"swapped", func(f *file) { slices.Reverse(f.groups) }},
		{"the last named twice, and the first not", func(f *file) { f.groups[0] = f.groups[1] }},
		{"one that says it has fewer rows", func(f *file) { f.groups[1].meta.NumRows-- }},
		{"the first without its entry in the footer", func(f *file) {
			f.groups[1].base -= int64(len(f.groups[0].pages))
			f.groups[1].pages = append(slices.Clone(f.groups[0].pages), f.groups[1].pages...)
			f.groups = f.groups[1:]
		}},
	} {
		for _, cover := range []string{"", ", later segments linked anew", ", anchors signed anew with the right key"} {
			all = append(all, attack{kind: "row groups dropped, repeated, swapped", name: c.name + cover, want: 1, do: func(s *subject) objects {
				seg := s.calls.Segments[0]
				f := inGroups(seg, 1)
				c.do(f)
				seg.Body = f.encode(nil)
				hide(s, cover)
				return s.pack()
			}})
		}
	}
	return all
}

// columnsMost is more than a file has columns.
const columnsMost = 80

// boundAttacks make an engine skip rows that are there.
func boundAttacks() (all []fileChange) {
	for i := range columnsMost {
		column := func(name string, do func(g *group, c *format.ColumnChunk, s *format.Statistics) bool) {
			all = append(all, fileChange{fmt.Sprintf("column %d: %s", i, name), func(f *file) ([]byte, bool) {
				g := &f.groups[0]
				if i >= len(g.meta.Columns) {
					return nil, false
				}
				c := &g.meta.Columns[i]
				return nil, do(g, c, &c.MetaData.Statistics)
			}})
		}
		column("minimum in the footer above all values", func(_ *group, _ *format.ColumnChunk, s *format.Statistics) bool {
			was := s.MinValue != nil
			s.MinValue = above(s.MaxValue)
			return was
		})
		column("maximum in the footer below all values", func(_ *group, _ *format.ColumnChunk, s *format.Statistics) bool {
			was := s.MaxValue != nil
			s.MaxValue = below(s.MinValue)
			return was
		})
		column("one null more in the footer", func(_ *group, c *format.ColumnChunk, s *format.Statistics) bool {
			s.NullCount++
			return s.MinValue != nil && len(c.MetaData.PathInSchema) == 1
		})
		index := func(name string, do func(*format.ColumnIndex)) {
			column(name, func(g *group, _ *format.ColumnChunk, _ *format.Statistics) bool {
				ci := g.columns[i]
				if ci == nil || ci.NullPages[0] {
					return false
				}
				do(ci)
				return true
			})
		}
		index("minimum in the page index above all values", func(ci *format.ColumnIndex) { ci.MinValues = [][]byte{above(ci.MaxValues[0])} })
		index("maximum in the page index below all values", func(ci *format.ColumnIndex) { ci.MaxValues = [][]byte{below(ci.MinValues[0])} })
		index("a page of nulls in the page index", func(ci *format.ColumnIndex) { ci.NullPages = []bool{true} })
		index("a page too many in the page index", func(ci *format.ColumnIndex) {
			ci.NullPages, ci.MinValues, ci.MaxValues = append(ci.NullPages, false), append(ci.MinValues, ci.MinValues[0]), append(ci.MaxValues, ci.MaxValues[0])
			if len(ci.NullCounts) > 0 {
				ci.NullCounts = append(ci.NullCounts, 0)
			}
		})
		location := func(name string, do func(*format.PageLocation)) {
			column("offset index: "+name, func(g *group, _ *format.ColumnChunk, _ *format.Statistics) bool {
				if g.offsets[i] == nil {
					return false
				}
				do(&g.offsets[i].PageLocations[0])
				return true
			})
		}
		location("another place", func(p *format.PageLocation) { p.Offset++ })
		location("another size", func(p *format.PageLocation) { p.CompressedPageSize-- })
		location("another first row", func(p *format.PageLocation) { p.FirstRowIndex++ })
		column("a bloom filter that has no value", func(g *group, c *format.ColumnChunk, s *format.Statistics) bool {
			g.blooms[i] = emptyBloom()
			return s.MinValue != nil && c.MetaData.Type == format.ByteArray
		})
		column("key-values of its own", func(_ *group, c *format.ColumnChunk, _ *format.Statistics) bool {
			c.MetaData.KeyValueMetadata = []format.KeyValue{{Key: "k", Value: "v"}}
			return true
		})
	}
	return all
}

// footerAttacks change what a footer says of the whole.
func footerAttacks() []fileChange {
	return []fileChange{
		{"a byte that belongs to nothing", func(*file) ([]byte, bool) { return []byte{0}, true }},
		{"a second file that belongs to nothing", func(f *file) ([]byte, bool) { return f.encode(nil), true }},
		{"a key-value more", func(f *file) ([]byte, bool) {
			f.meta.KeyValueMetadata = append(slices.Clone(f.meta.KeyValueMetadata), format.KeyValue{Key: "k", Value: "v"})
			return nil, true
		}},
		{"metadata twice", func(f *file) ([]byte, bool) {
			f.meta.KeyValueMetadata = append(slices.Clone(f.meta.KeyValueMetadata), f.meta.KeyValueMetadata[0])
			return nil, true
		}},
		{"no metadata", func(f *file) ([]byte, bool) {
			f.meta.KeyValueMetadata = nil
			return nil, true
		}},
		{"a column of another name", func(f *file) ([]byte, bool) {
			f.meta.Schema = slices.Clone(f.meta.Schema)
			f.meta.Schema[len(f.meta.Schema)-1].Name += "x"
			return nil, true
		}},
	}
}

// above returns bytes that lie above a bound, as numbers and as text.
func above(bound []byte) []byte {
	b := bytes.Clone(bound)
	if len(b) > 0 {
		b[len(b)-1]++ // the highest digit of a number; text has no 0xFF
	}
	return b
}

// below returns bytes that lie below a bound.
func below(bound []byte) []byte {
	b := bytes.Clone(bound)
	if len(b) > 0 {
		b[len(b)-1]--
	}
	return b
}

func emptyBloom() []byte {
	header := &format.BloomFilterHeader{
		NumBytes:  32,
		Algorithm: format.BloomFilterAlgorithm{Value: &format.SplitBlockAlgorithm{}}, Hash: format.BloomFilterHash{Value: &format.XxHash{}},
		Compression: format.BloomFilterCompression{Value: &format.BloomFilterUncompressed{}},
	}
	text, err := thrift.Marshal(new(thrift.CompactProtocol), header)
	must(err)
	return append(text, make([]byte, 32)...)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
