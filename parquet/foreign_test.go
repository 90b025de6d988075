package parquet

import (
	"bytes"
	"io"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"github.com/ledgerlake/ledgerlake/chain"
)

// foreign returns an object of another writer: parquet-go with the given columns
// and options, and nothing of what this package does around it. Columns are in
// the order of their names. rows may be nil.
func foreign(t testing.TB, rows []chain.Row, group pq.Group, options ...pq.WriterOption) []byte {
	t.Helper()
	return foreignValues(t, rows, group, nil, options...)
}

// foreignValues is like foreign, and writes other values into some columns.
func foreignValues(t testing.TB, rows []chain.Row, group pq.Group, values map[string][]pq.Value, options ...pq.WriterOption) []byte {
	t.Helper()
	s := pq.NewSchema("other", group)
	e := &goEncoder{writer: pq.NewGenericWriter[any](io.Discard, append([]pq.WriterOption{
		s, pq.DataPageVersion(1), pq.Compression(newCodec()), pq.PageBufferSize(pageSize), pq.DataPageStatistics(false),
	}, options...)...)}
	var object bytes.Buffer
	e.writer.Reset(&object)
	for i, path := range s.Columns() {
		w := e.writer.ColumnWriters()[i]
		at, ok := columnByName[path[0]]
		var err error
		if v := values[path[0]]; v != nil {
			_, err = w.WriteRowValues(v)
		} else if ok && len(rows) > 0 {
			err = e.column(w, at, refs(rows), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := e.writer.Close(); err != nil {
		t.Fatal(err)
	}
	return object.Bytes()
}

// formatGroup returns the columns of the format.
func formatGroup() pq.Group { return newRecord().Group }

// with returns the columns of the format with one replaced, added, or taken out
// where node is nil.
func with(name string, node pq.Node) pq.Group {
	g := formatGroup()
	g[name] = node
	if node == nil {
		delete(g, name)
	}
	return g
}

// sealing returns the options that keep bounds out of sealed columns.
func sealing() (options []pq.WriterOption) {
	for i := range columns {
		if columns[i].unbounded() {
			options = append(options, pq.SkipPageBounds(columns[i].path()...), pq.SkipPageStatistics(columns[i].path()...))
		}
	}
	return options
}
