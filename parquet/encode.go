package parquet

import (
	"bytes"
	"unicode/utf8"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A row group ends at this many rows or bytes of content, whichever comes
// first. DuckDB scans row groups of 122,880 rows in parallel.
const (
	maxGroupRows  = 122_880
	maxGroupBytes = 32 << 20
)

// After a large object an Encoder lets go of the buffer that held it, and after a
// huge one of all it holds: its columns keep what they have held. In bytes.
const (
	largeObject = 256 << 10
	hugeObject  = 1 << 20
)

// maxValue is the longest value that can be written, in bytes.
const maxValue = 1 << 30

// An Encoder writes objects of few rows, whole ones at once: [DataWriter]'s without
// bloom filters, which would take more of such an object than its rows. It keeps
// buffers from one object to the next, and nothing of the rows that it did not
// write. It is not for concurrent use.
type Encoder struct {
	w *DataWriter
}

// NewEncoder returns an Encoder.
func NewEncoder() *Encoder { return new(Encoder) }

// Encode returns one Parquet object that holds rows in order, and metadata as
// the value of the key "ledgerlake" unless it is nil. The object is the caller's
// own memory. The error is a [*RowError]: a required column is null, a number
// does not fit its column, or a string is not UTF-8, and no reader could open
// the object.
func (e *Encoder) Encode(rows []chain.Row, metadata []byte) ([]byte, error) {
	return e.EncodeRefs(refs(rows), metadata)
}

func refs(rows []chain.Row) []*chain.Row {
	all := make([]*chain.Row, len(rows))
	for i := range rows {
		all[i] = &rows[i]
	}
	return all
}

// EncodeRefs is [Encoder.Encode] for rows that do not lie side by side.
func (e *Encoder) EncodeRefs(rows []*chain.Row, metadata []byte) ([]byte, error) {
	if e.w == nil {
		e.w = newWriterOf(DataOptions{}, dataPageSize/2, false)
	}
	object, err := e.encode(rows, metadata)
	if err != nil || len(object) > hugeObject {
		e.w = nil
	}
	return object, err
}

// encode writes into the writer's own buffer, so that the object that is given
// away takes no more memory than it has bytes.
func (e *Encoder) encode(rows []*chain.Row, metadata []byte) ([]byte, error) {
	if err := e.w.Rows(rows); err != nil {
		return nil, err
	}
	object, err := e.w.finish(metadata)
	if err != nil {
		return nil, err
	}
	if len(object) > largeObject {
		e.w.begin(nil)
	} else {
		e.w.begin(object[:0])
	}
	return bytes.Clone(object), nil
}

// contentSize is about what a row weighs: its slots, and a fixed part for ids,
// hashes and names.
func contentSize(r *chain.Row) int {
	n := 500
	for i := range r.Slots {
		n += len(r.Slots[i])
	}
	return n
}

// The reasons of a [RowError].
const (
	reasonNull  = "null in a required column"
	reasonRange = "does not fit in 32 bits"
	reasonUTF8  = "not valid UTF-8"
	reasonLong  = "longer than 1 GiB"
)

// refuses returns the reason why what a row has in a column cannot be written, or
// "".
func (c *column) refuses(r *chain.Row) string {
	switch {
	case c.text != nil:
		return c.refusesText(c.text(r))
	case c.slot != nil:
		return c.refusesSlot(*c.slot(r))
	case c.num != nil:
		return c.refusesNumber(c.num(r))
	case c.list != nil:
		for _, s := range *c.list(r) {
			if reason := c.refusesText(&audit.Text{S: s, Valid: true}); reason != "" {
				return reason
			}
		}
	}
	return ""
}

func (c *column) refusesText(t *audit.Text) string {
	switch {
	case !t.Valid && c.required:
		return reasonNull
	case len(t.S) > maxValue:
		return reasonLong
	case !utf8.ValidString(t.S):
		return reasonUTF8
	}
	return ""
}

func (c *column) refusesSlot(slot []byte) string {
	switch {
	case len(slot) > maxValue:
		return reasonLong
	case c.kind == kindText && !utf8.Valid(slot):
		return reasonUTF8
	}
	return ""
}

func (c *column) refusesNumber(n *audit.Int) string {
	switch {
	case !n.Valid && c.required:
		return reasonNull
	case n.Valid && c.kind == kindInt32 && int64(int32(n.N)) != n.N:
		return reasonRange
	}
	return ""
}

// The definition levels of a list: null, empty, and an element that is there.
const (
	levelNull    = 0
	levelEmpty   = 1
	levelElement = 3
)
