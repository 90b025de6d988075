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
	s := pq.NewSchema("other", group)
	e := &Encoder{writer: pq.NewGenericWriter[any](io.Discard, append([]pq.WriterOption{
		s, pq.DataPageVersion(1), pq.Compression(newCodec()), pq.PageBufferSize(pageSize), pq.DataPageStatistics(false),
	}, options...)...)}
	var object bytes.Buffer
	e.writer.Reset(&object)
	for i, path := range s.Columns() {
		at, ok := columnByName[path[0]]
		if !ok || len(rows) == 0 {
			continue
		}
		if err := e.column(e.writer.ColumnWriters()[i], at, rows, 0); err != nil {
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
