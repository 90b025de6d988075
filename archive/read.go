package archive

import (
	"crypto/sha256"
	"fmt"

	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// A SegmentObject is one segment as it lies in the bucket, read whole.
type SegmentObject struct {
	*Segment
	SHA256 chain.Hash // of the whole object
	Bytes  int64
	Rows   []chain.Row // in offset order
}

// ArchivedAt returns when the row was stamped that was stamped last, in
// microseconds, or 0 where there is no row.
func (o *SegmentObject) ArchivedAt() (at int64) {
	for i := range o.Rows {
		at = max(at, o.Rows[i].ArchivedAt.N)
	}
	return at
}

// SegmentMetadata returns the metadata of a segment whose hash is known to be
// right.
func SegmentMetadata(body []byte) (*Segment, error) {
	meta, _, err := parquet.TailMetadata(body, int64(len(body)))
	if err != nil {
		return nil, err
	}
	return DecodeSegment(meta)
}

// ReadSegment decodes a segment and checks that its rows make the chain that
// its metadata states: commitments, hashes, links and heads. Whether it
// continues a line is for [State.Continues] to say.
func ReadSegment(body []byte) (*SegmentObject, error) {
	f, err := parquet.Open(body)
	if err != nil {
		return nil, err
	}
	return readSegment(f, body)
}

func readSegment(f *parquet.File, body []byte) (*SegmentObject, error) {
	meta, ok := f.Metadata()
	if !ok {
		return nil, fmt.Errorf("no metadata %q", MetadataKey)
	}
	seg, err := DecodeSegment(meta)
	if err != nil {
		return nil, err
	}
	if f.NumRows() != seg.Rows {
		return nil, fmt.Errorf("%d rows, the metadata says %d", f.NumRows(), seg.Rows)
	}
	o := &SegmentObject{Segment: seg, SHA256: sha256.Sum256(body), Bytes: int64(len(body))}
	o.Rows = make([]chain.Row, 0, min(f.NumRows(), 1<<16))
	for row, err := range f.Rows() {
		if err != nil {
			return nil, err
		}
		o.Rows = append(o.Rows, *row)
	}
	return o, checkRows(seg, o.Rows)
}

// What a segment may be, so that one of somebody else's cannot take all memory:
// rows, and bytes of its pages once they are inflated.
const (
	MaxSegmentRows  = 1 << 16
	maxSegmentBytes = 320 << 20
)

// OpenForeignSegment opens bytes of which nothing vouches: it checks the
// object's layout, and that it is not larger than a segment may be, and decodes
// no page.
func OpenForeignSegment(body []byte) (*parquet.File, error) {
	if err := parquet.CheckLayout(body); err != nil {
		return nil, err
	}
	f, err := parquet.Open(body)
	if err != nil {
		return nil, err
	}
	size, err := f.Inflated()
	switch {
	case err != nil:
		return nil, err
	case f.NumRows() > MaxSegmentRows:
		return nil, fmt.Errorf("%d rows, a segment has %d at most", f.NumRows(), MaxSegmentRows)
	case size > maxSegmentBytes:
		return nil, fmt.Errorf("%d MiB in memory, a segment has %d at most", size>>20, maxSegmentBytes>>20)
	}
	return f, nil
}

// ReadForeignSegment is [ReadSegment] of [OpenForeignSegment], and checks that
// the object's indexes hold and hide nothing.
func ReadForeignSegment(body []byte) (*SegmentObject, error) {
	f, err := OpenForeignSegment(body)
	if err != nil {
		return nil, err
	}
	o, err := readSegment(f, body)
	if err != nil {
		return nil, err
	}
	return o, parquet.CheckBounds(body)
}

// checkRows walks the rows of a segment and compares what they give with what
// the metadata says of each log.
func checkRows(seg *Segment, rows []chain.Row) error {
	if int64(len(rows)) != seg.Rows {
		return fmt.Errorf("%d rows, the metadata says %d", len(rows), seg.Rows)
	}
	logs := make(map[string]*LogInterval, len(seg.Logs))
	for _, l := range seg.Logs {
		logs[l.Tenant] = &LogInterval{FirstSeq: l.FirstSeq, HeadOut: l.HeadIn}
	}
	hasher := chain.NewHasher(nil)
	for i := range rows {
		row := &rows[i]
		at := logs[row.TenantID.S]
		if at == nil {
			return fmt.Errorf("row %d is of a log that the metadata does not list", i)
		}
		if row.PrevHash != at.HeadOut || row.Seq.N != at.FirstSeq+at.Rows {
			return fmt.Errorf("row %d (seq %d) does not continue its log", i, row.Seq.N)
		}
		if err := hasher.Check(row); err != nil {
			return fmt.Errorf("row %d (seq %d): %w", i, row.Seq.N, err)
		}
		at.HeadOut, at.Rows = row.RowHash, at.Rows+1
	}
	for _, l := range seg.Logs {
		if at := logs[l.Tenant]; at.Rows != l.Rows || at.HeadOut != l.HeadOut {
			return fmt.Errorf("a log ends at %s after %d rows, the metadata says %s after %d", at.HeadOut, at.Rows, l.HeadOut, l.Rows)
		}
	}
	return nil
}
