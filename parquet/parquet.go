// Package parquet turns rows into one Parquet object and back.
//
//	object = "PAR1" { row group } { column index } { offset index } footer length "PAR1"
//	row group = 65 column chunks, one for each column of docs/format.md, section 3
//	chunk = [ dictionary page ] { data page }       v1 pages, zstd, PLAIN or RLE_DICTIONARY
//
// [Encoder] writes, [File] reads, [CheckLayout] says whether an object is laid
// out as the format wants it. Everything is pure: equal rows and metadata give
// equal bytes, whatever the Encoder wrote before; nothing here knows a clock, a
// network or a file system.
//
// # What stays out of footers
//
// Slots, residual, redaction, user_id and all hashes are sealed columns: what
// they hold stands in data pages and nowhere else. They have no minimum or
// maximum, in the footer or in an index, and no dictionary, so that a value
// which was erased from the pages is gone. How many values and nulls there are
// may stand anywhere.
//
// # What is done around parquet-go
//
// Pages are written and read by parquet-go v0.32. Around it,
//
//   - the end of each object is written again without the column indexes of
//     sealed columns, as parquet-go gives them empty bounds, by which Spark and
//     Trino find nothing; and without what readers do not need;
//   - names of columns are kept from a Reset that would clear them for all
//     objects but a writer's first;
//   - lists in footers and sizes in page headers are held against the bytes that
//     are there before parquet-go allocates what they say.
//
// Tests show the first two faults, and fail when parquet-go has mended them. A
// third one stays: the page headers of parquet-go say null_count = 0, whatever
// the nulls; no reader is known that believes them. And it prints a line to
// standard error where the pages of an object contradict themselves.
//
// # What it does not do
//
// It does not hash, and does not know what a row means: docs/format.md, section
// 3.1, or whether a derived column says what its slot says.
package parquet

import (
	"errors"
	"fmt"
)

// The two key-value keys that an object may have: its document, and what Arrow
// writes of its own.
const (
	metadataKey    = "ledgerlake"
	arrowSchemaKey = "ARROW:schema"
)

// ErrMalformed is matched by every error about the bytes of an object: it is
// damaged, or is not a Parquet object of this format.
var ErrMalformed = errors.New("malformed Parquet object")

// A RowError says which row cannot be encoded, and why. Nothing was written.
type RowError struct {
	Row    int // index into the rows given to Encode
	Column string
	Reason string // never shows the value
}

func (e *RowError) Error() string {
	return fmt.Sprintf("row %d: column %s: %s", e.Row, e.Column, e.Reason)
}

// A ShortTailError says that more of the end of an object is needed.
type ShortTailError struct {
	Need int64 // bytes from the end of the object; never more than its size
}

func (e *ShortTailError) Error() string {
	return fmt.Sprintf("the footer needs the last %d bytes of the object", e.Need)
}

// boundary ends every function that reads bytes of an object: it makes an
// error match ErrMalformed, and a panic over hostile bytes into an error. No
// panic is known: this is the belt, the checks before every read are the braces.
func boundary(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%v", p)
	}
	*err = malformed(*err)
}

// malformed makes an error match ErrMalformed, unless it asks for more bytes.
func malformed(err error) error {
	var short *ShortTailError
	if err == nil || errors.As(err, &short) || errors.Is(err, ErrMalformed) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrMalformed, err)
}
