// Package render writes rows as files: for programs, for spreadsheets, for people.
//
//	jsonl     one record a line, as its producer sent it, with a member $ledgerlake
//	csv       RFC 4180, the columns of docs/format.md, safe to open as a spreadsheet
//	parquet   the schema of data files
//	chained   JSON a line, each bound to the one before, in files that rotate: docs/jsonl.md
//	table     for people
//
// A [Writer] gets rows as package export shows them: what governance hides is
// gone from them already. One row is one record in every format, whatever a
// producer wrote: in none can a value become a line, a cell or a formula.
// docs/export-formats.md says what each looks like, and how what was erased does.
//
// A [LineChecker] checks exported lines without the archive.
//
// The package is pure but for the writers that it is given. It checks no hash of
// a row, reads no clock, and opens no file.
package render

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/export"
)

// A Format is a form in which rows are written.
type Format string

// The formats.
const (
	JSONL   Format = "jsonl"
	CSV     Format = "csv"
	Parquet Format = "parquet"
	Chained Format = "chained"
	Table   Format = "table"
)

// Formats lists the formats.
var Formats = []Format{JSONL, CSV, Parquet, Chained, Table}

// ErrFormat: there is no format of that name.
var ErrFormat = errors.New("unknown format")

// ParseFormat returns the format of a name. The error matches [ErrFormat].
func ParseFormat(name string) (Format, error) {
	if f := Format(name); slices.Contains(Formats, f) {
		return f, nil
	}
	return "", fmt.Errorf("%w %q: use one of %q", ErrFormat, name, Formats)
}

// Extension returns what names of files of the format end in, with its dot.
func (f Format) Extension() string {
	switch f {
	case Chained:
		return ".jsonl"
	case Table:
		return ".txt"
	}
	return "." + string(f)
}

// A Writer writes rows, in the order in which they come.
type Writer interface {
	// Write writes one row, of which it keeps nothing.
	Write(*export.Row) error
	// Close writes what is left. It does not close what it writes to, but for
	// files that the writer began itself.
	Close() error
}

// Options say how rows are written. The zero Options are good.
type Options struct {
	ArchiveID string   // is noted in $ledgerlake; "" is left out
	Bare      bool     // jsonl, chained: without $ledgerlake, so that a record is exactly what its producer sent
	Columns   []string // csv, table: which, in which order; nil is all of csv, and for table [TableColumns]
	FileBytes int64    // parquet, chained: how long a file may become; 0 is [ParquetBytes], [ChainedBytes]
	Key       []byte   // chained: of HMAC-SHA256; nil is SHA-256
}

// How long files become unless options say otherwise, in bytes.
const (
	ParquetBytes = 128 << 20
	ChainedBytes = 50_000_000
)

// A Create begins the n-th file of a set, n counting from 1. It is called once
// for each, after the one before was closed.
type Create func(n int) (io.WriteCloser, error)

// One is the Create of a single writer, which is left open: all files are written
// to it, one behind the other. Only chained JSONL may be: it is still one chain.
// [New] makes one file of everything where there is one writer.
func One(w io.Writer) Create {
	return func(int) (io.WriteCloser, error) { return leftOpen{w}, nil }
}

type leftOpen struct{ io.Writer }

func (leftOpen) Close() error { return nil }

// FileName returns the name of the n-th file of a set whose first one is called
// name: rows.parquet, rows.2.parquet, rows.3.parquet.
func FileName(name string, n int) string {
	if n == 1 {
		return name
	}
	ext := path.Ext(name)
	return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(name, ext), n, ext)
}

// New returns the writer of a format to one writer. Its file is not split. The
// error matches [ErrFormat] or [ErrColumn].
func New(f Format, w io.Writer, o Options) (Writer, error) {
	o.FileBytes = 1 << 62
	return NewSet(f, One(w), o)
}

// NewSet is [New] for a set of files: parquet and chained begin a new one where
// one is full, the others write all to the first.
func NewSet(f Format, create Create, o Options) (Writer, error) {
	switch f {
	case Parquet:
		return NewParquet(create, o), nil
	case Chained:
		return NewChained(create, o), nil
	case JSONL, CSV, Table:
	default:
		_, err := ParseFormat(string(f))
		return nil, err
	}
	if _, err := pick(o.Columns); err != nil {
		return nil, err
	}
	w, err := create(1)
	if err != nil {
		return nil, err
	}
	var rows Writer
	switch f {
	case CSV:
		rows, err = NewCSV(w, o)
	case Table:
		rows, err = NewTable(w, o)
	default:
		rows = NewJSONL(w, o)
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return &closing{rows, w}, nil
}

// A closing writer closes its file too.
type closing struct {
	Writer
	file io.Closer
}

// Flush hands on what was written.
func (c *closing) Flush() error { return c.Writer.(interface{ Flush() error }).Flush() }

func (c *closing) Close() error { return errors.Join(c.Writer.Close(), c.file.Close()) }
