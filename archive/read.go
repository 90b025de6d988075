package archive

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/ledgerlake/ledgerlake/audit"
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
	meta, err := RawMetadata(body)
	if err != nil {
		return nil, err
	}
	return DecodeSegment(meta)
}

// RawMetadata returns the text of a segment's metadata, which may say anything.
func RawMetadata(body []byte) ([]byte, error) {
	meta, _, err := parquet.TailMetadata(body, int64(len(body)))
	return meta, err
}

// ReadSegment decodes a segment and checks that its rows make the chain that
// its metadata states: commitments, hashes, links and heads. Whether it
// continues a line is for [State.Continues] to say.
//
// Keyed logs are checked with their keys; without one, the error matches
// [chain.ErrNoKey].
func ReadSegment(body []byte, keys chain.Keys) (*SegmentObject, error) {
	f, err := parquet.Open(body)
	if err != nil {
		return nil, err
	}
	return readSegment(f, body, keys)
}

func readSegment(f *parquet.File, body []byte, keys chain.Keys) (*SegmentObject, error) {
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
	return o, checkRows(seg, o.Rows, keys)
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
func ReadForeignSegment(body []byte, keys chain.Keys) (*SegmentObject, error) {
	f, err := OpenForeignSegment(body)
	if err != nil {
		return nil, err
	}
	o, err := readSegment(f, body, keys)
	if err != nil {
		return nil, err
	}
	return o, parquet.CheckBounds(body)
}

// checkRows walks the rows of a segment and compares what they give with what
// the metadata says of each log.
func checkRows(seg *Segment, rows []chain.Row, keys chain.Keys) error {
	if int64(len(rows)) != seg.Rows {
		return fmt.Errorf("%d rows, the metadata says %d", len(rows), seg.Rows)
	}
	logs := make(map[string]*LogInterval, len(seg.Logs))
	for _, l := range seg.Logs {
		logs[l.Tenant] = &LogInterval{Scheme: l.Scheme, Epoch: l.Epoch, FirstSeq: l.FirstSeq, HeadOut: l.HeadIn}
	}
	hashers := chain.NewHashers(keys)
	for i := range rows {
		row := &rows[i]
		at := logs[row.TenantID.S]
		if at == nil {
			return fmt.Errorf("row %d is of a log that the metadata does not list", i)
		}
		prev := at.HeadOut
		if row.Kind.S == audit.KindChainReset {
			var err error
			if prev, err = resetGenesis(seg, at, row); err != nil {
				return fmt.Errorf("row %d (seq %d): chain reset: %w", i, row.Seq.N, err)
			}
		}
		if row.PrevHash != prev || row.Seq.N != at.FirstSeq+at.Rows {
			return fmt.Errorf("row %d (seq %d) does not continue its log", i, row.Seq.N)
		}
		if err := checkRow(hashers, at.Scheme, seg.Log(row.TenantID.S), row); err != nil {
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

// ErrKey: a row of a keyed log was hashed under another key than the one at
// hand; or it was changed, which without that key nobody can tell apart.
var ErrKey = errors.New("its log is keyed, and the key at hand is not the one that it was written with, or it was changed")

// checkRow checks a row by the hash of its log. Without the key of a keyed log
// nothing may be built on it, so that is an error too.
func checkRow(hashers *chain.Hashers, scheme string, l chain.Log, row *chain.Row) error {
	hasher, err := hashers.For(scheme, l)
	if err != nil {
		return err
	}
	err = hasher.Check(row)
	var f *chain.Fault
	if scheme == chain.SchemeHMACv1 && errors.As(err, &f) && f.Column == "row_hash" {
		return fmt.Errorf("%w: %w", ErrKey, err)
	}
	return err
}
