package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A flip is one changed bit of an archive.
type flip struct {
	Key    string // of the segment
	Offset int64  // of the byte in it
	Column string // whose page the byte lies in
}

// flipBit changes one bit of an archive that lies as files in a folder: inside
// a data page of a middle segment of its longest line, where rows have what
// they decided.
func flipBit(ctx context.Context, folder string) (f flip, err error) {
	if f.Key, err = middleSegment(ctx, folder); err != nil {
		return f, err
	}
	path := filepath.Join(folder, filepath.FromSlash(f.Key))
	body, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	if f.Offset, f.Column, err = pageByte(body, "decision"); err != nil {
		return f, fmt.Errorf("%s: %w", f.Key, err)
	}
	body[f.Offset] ^= 1
	return f, os.WriteFile(path, body, 0o644)
}

// middleSegment returns the key of a segment in the middle of its line, and
// never of the last one: nothing vouches for that yet.
func middleSegment(ctx context.Context, folder string) (string, error) {
	dir, err := archive.OpenDir(folder)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	lines := map[archive.SegmentName][]string{} // by their name with ordinal 0
	for o, err := range dir.List(ctx, archive.LogPrefix, "") {
		if err != nil {
			return "", err
		}
		if name, ok := archive.ParseSegmentKey(o.Key); ok {
			name.Ordinal = 0
			lines[name] = append(lines[name], o.Key)
		}
	}
	var longest []string
	for _, keys := range lines {
		if c := cmp.Compare(len(keys), len(longest)); c > 0 || c == 0 && keys[0] < longest[0] {
			longest = keys
		}
	}
	if len(longest) < 2 {
		return "", errors.New("no line has 2 segments: too few records")
	}
	slices.Sort(longest)
	return longest[(len(longest)-1)/2], nil
}

// pageByte returns the place of a byte inside the values of the last data page
// of a column, which ends where the column's chunk does.
func pageByte(body []byte, column string) (offset int64, name string, err error) {
	f, err := pq.OpenFile(bytes.NewReader(body), int64(len(body)), pq.SkipPageIndex(true), pq.SkipBloomFilters(true))
	if err != nil {
		return 0, "", err
	}
	for _, group := range f.Metadata().RowGroups {
		for _, c := range group.Columns {
			if slices.Equal(c.MetaData.PathInSchema, []string{column}) {
				return chunkEnd(&c.MetaData) - 8, column, nil
			}
		}
	}
	return 0, "", fmt.Errorf("no column %s", column)
}

// chunkEnd returns the offset behind the last page of a column chunk.
func chunkEnd(m *format.ColumnMetaData) int64 {
	start := m.DataPageOffset
	if m.DictionaryPageOffset > 0 {
		start = min(start, m.DictionaryPageOffset)
	}
	return start + m.TotalCompressedSize
}
