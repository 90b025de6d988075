//go:build unix

package parquet

import (
	"bytes"
	"strconv"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"github.com/ledgerlake/ledgerlake/chain"
)

// benchRows is how many rows a data file of the benchmarks has.
const benchRows = 1 << 15

// BenchmarkDataRows prints what it costs to write rows that are in memory.
func BenchmarkDataRows(b *testing.B) {
	rows, w := refs(turnRows(benchRows)), NewDataWriter(DataOptions{})
	benchData(b, func() []byte {
		for i := 0; i < len(rows); i += 64 {
			if err := w.Rows(rows[i : i+64]); err != nil {
				b.Fatal(err)
			}
		}
		return benchClose(b, w)
	})
}

// BenchmarkDataSegments prints what it costs to read segments and write their
// rows into a data file.
func BenchmarkDataSegments(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			segments := segmentsOf(b, turnRows(benchRows), n)
			w := NewDataWriter(DataOptions{})
			benchData(b, func() []byte {
				for _, s := range segments {
					benchAppend(b, w, s)
				}
				return benchClose(b, w)
			})
		})
	}
}

func segmentsOf(b *testing.B, rows []chain.Row, n int) (all [][]byte) {
	b.Helper()
	e := NewEncoder()
	for i := 0; i < len(rows); i += n {
		s, err := e.Encode(rows[i:i+n], []byte("{}"))
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// benchAppend appends an object by its rows.
func benchAppend(b *testing.B, w *DataWriter, object []byte) {
	f, err := Open(object)
	if err != nil {
		b.Fatal(err)
	}
	one := make([]*chain.Row, 1)
	for r, err := range f.Rows() {
		if err != nil {
			b.Fatal(err)
		}
		one[0] = r
		if err := w.Rows(one); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDataFiles prints what it costs to merge data files of n rows, and what
// parquet-go takes for the same by copying rows.
func BenchmarkDataFiles(b *testing.B) {
	for _, n := range []int{512, 4096} {
		files := dataFilesOf(b, turnRows(benchRows), n)
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			w := NewDataWriter(DataOptions{})
			benchData(b, func() []byte {
				for _, object := range files {
					f, err := Open(object)
					if err != nil {
						b.Fatal(err)
					}
					if err := w.File(f); err != nil {
						b.Fatal(err)
					}
				}
				return benchClose(b, w)
			})
		})
		b.Run(strconv.Itoa(n)+"/parquet-go", func(b *testing.B) {
			benchData(b, func() []byte { return copyRows(b, files) })
		})
	}
}

func dataFilesOf(b *testing.B, rows []chain.Row, n int) (all [][]byte) {
	b.Helper()
	w := NewDataWriter(DataOptions{})
	for i := 0; i < len(rows); i += n {
		if err := w.Rows(refs(rows[i : i+n])); err != nil {
			b.Fatal(err)
		}
		all = append(all, benchClose(b, w))
	}
	return all
}

// copyRows has parquet-go copy the rows of objects into one.
func copyRows(b *testing.B, objects [][]byte) []byte {
	w := newGoWriter()
	var out bytes.Buffer
	w.Reset(&out)
	for _, object := range objects {
		f, err := pq.OpenFile(bytes.NewReader(object), int64(len(object)))
		if err != nil {
			b.Fatal(err)
		}
		for _, g := range f.RowGroups() {
			rows := g.Rows()
			if _, err := pq.CopyRows(w, rows); err != nil {
				b.Fatal(err)
			}
			if err := rows.Close(); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

func benchClose(b *testing.B, w *DataWriter) []byte {
	object, err := w.Close([]byte("{}"))
	if err != nil {
		b.Fatal(err)
	}
	return object
}

// benchData runs what writes benchRows rows, and prints rows and bytes.
func benchData(b *testing.B, write func() []byte) {
	var object []byte
	b.ReportAllocs()
	began := cpuTime(b)
	for b.Loop() {
		object = write()
	}
	reportRows(b, benchRows, cpuTime(b)-began)
	b.ReportMetric(float64(len(object))/benchRows, "B/row")
}
