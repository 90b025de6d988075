package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// A File reads one object. It may be read by several goroutines at once.
type File struct {
	object   []byte
	meta     *format.FileMetaData
	leaves   []leaf
	end      int64 // where the footer begins
	document []byte
	named    bool // document is there
	// pages opens the object with parquet-go, once and only for its pages.
	pages func() (*pq.File, error)
}

// Open reads the footer of a whole object in memory, which must not change
// while the File is in use. Columns are found by name, whatever their order;
// columns that the format does not know are passed over. Every error matches
// [ErrMalformed].
//
// Open does not read pages. An object that comes from elsewhere should be hashed
// before it is opened, and then held against [CheckLayout].
func Open(object []byte) (f *File, err error) {
	defer boundary(&err)
	if len(object) < len(magic) || string(object[:len(magic)]) != magic {
		return nil, errors.New("no magic at the start")
	}
	raw, err := splitFooter(object, int64(len(object)))
	if err != nil {
		return nil, err
	}
	if f, err = newFile(raw, int64(len(object))); err != nil {
		return nil, err
	}
	f.object, f.pages = object, sync.OnceValues(f.open)
	return f, nil
}

// newFile returns what the footer of an object of size bytes says of it.
func newFile(raw []byte, size int64) (f *File, err error) {
	f = &File{end: size - int64(len(raw)) - trailerSize}
	if f.meta, err = readFooter(raw); err != nil {
		return nil, err
	}
	if f.leaves, err = leaves(f.meta.Schema); err != nil {
		return nil, err
	}
	text, ok, err := document(f.meta)
	if err != nil {
		return nil, err
	}
	f.document, f.named = []byte(text), ok
	return f, f.check()
}

func (f *File) open() (file *pq.File, err error) {
	defer boundary(&err)
	file, err = pq.OpenFile(bytes.NewReader(f.object), int64(len(f.object)), pq.SkipPageIndex(true), pq.SkipBloomFilters(true))
	if err != nil {
		return nil, err
	}
	return file, nil
}

// check holds the footer against the schema and the bytes before it.
func (f *File) check() error {
	if err := f.checkColumns(); err != nil {
		return err
	}
	rows := int64(0)
	for i := range f.meta.RowGroups {
		g := &f.meta.RowGroups[i]
		if len(g.Columns) != len(f.leaves) {
			return fmt.Errorf("row group %d has %d chunks for %d columns", i, len(g.Columns), len(f.leaves))
		}
		if g.NumRows < 0 || rows+g.NumRows < rows {
			return fmt.Errorf("row group %d has %d rows", i, g.NumRows)
		}
		rows += g.NumRows
		for j := range g.Columns {
			if err := f.leaves[j].checkChunk(&g.Columns[j], g.NumRows, f.end); err != nil {
				return fmt.Errorf("row group %d: column %s: %w", i, f.leaves[j].path, err)
			}
		}
	}
	if rows != f.meta.NumRows {
		return fmt.Errorf("%d rows in row groups, %d in the footer", rows, f.meta.NumRows)
	}
	return nil
}

// checkColumns refuses an object without a required column, with one that is of
// another type, and with two of a name.
func (f *File) checkColumns() error {
	seen := make([]bool, len(columns))
	for i := range f.leaves {
		l := &f.leaves[i]
		switch {
		case l.column < 0 && l.known():
			return fmt.Errorf("column %s is of another type", l.path)
		case l.column >= 0 && seen[l.column]:
			return fmt.Errorf("column %s is there twice", l.path)
		case l.column >= 0:
			seen[l.column] = true
		}
	}
	for i := range columns {
		if columns[i].required && !seen[i] {
			return fmt.Errorf("no column %s", columns[i].name)
		}
	}
	return nil
}

// checkChunk holds a chunk of rows against its leaf and the end of the pages.
func (l *leaf) checkChunk(chunk *format.ColumnChunk, rows, end int64) error {
	c := &chunk.MetaData
	start := chunkStart(c)
	switch {
	case chunk.FilePath != "" || chunk.CryptoMetadata.Value != nil || chunk.EncryptedColumnMetadata != nil:
		return errors.New("pages are elsewhere or encrypted")
	case !slices.Equal(c.PathInSchema, l.names):
		return fmt.Errorf("chunk of %q", c.PathInSchema)
	case c.Type != l.node.Type.V:
		return fmt.Errorf("type %v in the chunk, %v in the schema", c.Type, l.node.Type.V)
	case l.maxRep == 0 && c.NumValues != rows || c.NumValues < rows:
		return fmt.Errorf("%d values in %d rows", c.NumValues, rows)
	case c.TotalCompressedSize < 0 || start < int64(len(magic)) || start > end || c.TotalCompressedSize > end-start:
		return fmt.Errorf("%d bytes at %d", c.TotalCompressedSize, start)
	}
	return nil
}

// Metadata returns the value of the key "ledgerlake", and whether it is there.
func (f *File) Metadata() ([]byte, bool) { return f.document, f.named }

// NumRows returns how many rows the footer says that there are. [File.Rows]
// yields as many, or an error.
func (f *File) NumRows() int64 { return f.meta.NumRows }

// valueBytes is what one value of a page takes in a row, beside its bytes.
const valueBytes = 16

// Inflated returns what the pages of the object become in memory, in bytes, by
// what their headers say. It decodes none.
func (f *File) Inflated() (n int64, err error) {
	defer boundary(&err)
	for i := range f.meta.RowGroups {
		for j := range f.meta.RowGroups[i].Columns {
			for w := walk(f.object, &f.meta.RowGroups[i].Columns[j].MetaData); w.more(); {
				h, _, err := w.next()
				if err != nil {
					return 0, err
				}
				n += int64(h.size) + valueBytes*int64(h.values)
			}
		}
	}
	return n, nil
}

// TailMetadata reads the metadata and the number of rows of an object of size
// bytes from its last bytes, without the rest: one read of 64 KiB is nearly
// always enough. If tail is too short the error is a [*ShortTailError], else it
// matches [ErrMalformed]. metadata is nil where the object has none.
func TailMetadata(tail []byte, size int64) (metadata []byte, rows int64, err error) {
	defer boundary(&err)
	raw, err := splitFooter(tail, size)
	if err != nil {
		return nil, 0, err
	}
	meta, err := readFooter(raw)
	if err != nil {
		return nil, 0, err
	}
	text, ok, err := document(meta)
	if err != nil || !ok {
		return nil, meta.NumRows, err
	}
	return []byte(text), meta.NumRows, nil
}
