package archive

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// Requests that a start has under way at once, and the bytes of a segment's
// tail that it asks for first: a footer of usual size with its metadata.
const (
	resumeParallel = 16
	resumeTail     = 64 << 10
)

// The largest footer that is read: of a segment with as many logs as rows.
const maxFooter = 128 << 20

// A Resumed is what a start found in the bucket.
type Resumed struct {
	State *State
	// Recent names the newest segments, oldest first: as few as hold the rows
	// that were asked for, or all there are.
	Recent []SegmentRef
}

// A SegmentRef names a segment that a start has seen.
type SegmentRef struct {
	Ordinal     int64
	Rows        int64
	FirstOffset int64
}

// Resume reads into st, the state of a line without segments, where the line
// stands behind its first n segments, from the bucket alone, and names those of
// them that hold the last rows rows. The newest of the n is read whole and its
// rows are checked; of the others only the metadata is read. Whether they are
// what Kafka said is not its question.
//
// The cost is one GET a segment: as long as no anchor holds the heads, every
// segment may be the last word on a log.
func Resume(ctx context.Context, src Source, st *State, n, rows int64) (*Resumed, error) {
	return resume(ctx, src, st, n, rows, false)
}

// ResumeWhole is [Resume], and reads every segment whole: each must be the one
// that the segment after it names by its hash, down to the first.
func ResumeWhole(ctx context.Context, src Source, st *State, n, rows int64) (*Resumed, error) {
	return resume(ctx, src, st, n, rows, true)
}

func resume(ctx context.Context, src Source, st *State, n, rows int64, whole bool) (*Resumed, error) {
	r, l := &Resumed{State: st}, st.Line
	if n == 0 {
		return r, nil
	}
	newest, err := GetSegment(ctx, src, l, n-1, st.Keys)
	if err != nil {
		return nil, err
	}
	if newest.ArchiveID != st.ArchiveID || newest.Line() != l || newest.Ordinal != n-1 {
		return nil, fmt.Errorf("segment %d: %w: it says it is segment %d of %v in archive %s", n-1, ErrBreaks, newest.Ordinal, newest.Line(), newest.ArchiveID)
	}
	r.State.Take(newest)
	w := &walk{src: src, line: l, state: r.State, wantRows: rows, whole: whole}
	w.add(&sized{newest.Segment, newest.Bytes, newest.SHA256}, newest.SHA256)
	if err := w.back(ctx, newest.Segment); err != nil {
		return nil, err
	}
	r.State.Tail = w.tail()
	slices.Reverse(w.recent)
	r.Recent = w.recent
	return r, nil
}

// CountSegments lists a line's segments and requires that their ordinals are
// dense from 0; else the error matches [ErrBreaks]. It costs one LIST for each
// 1,000 segments. It is for a line that was never compacted.
func CountSegments(ctx context.Context, src Source, l Line) (int64, error) {
	all, err := ListSegments(ctx, src, l, 0)
	return int64(len(all)), err
}

// GetSegment reads a segment whole and checks it as [ReadForeignSegment] does. The
// error matches [ErrBreaks] where its bytes are not a segment.
func GetSegment(ctx context.Context, src Source, l Line, ordinal int64, keys chain.Keys) (*SegmentObject, error) {
	body, err := src.Get(ctx, SegmentKey(l, ordinal))
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w", ordinal, err)
	}
	o, err := ReadForeignSegment(body, keys)
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w: %w", ordinal, ErrBreaks, err)
	}
	return o, nil
}

// A walk goes from the newest segment of a line to the oldest, and takes each
// log's head from the first segment that has one.
type walk struct {
	src      Source
	line     Line
	state    *State
	wantRows int64
	haveRows int64
	recent   []SegmentRef // newest first
	seen     []seen       // newest first
	archived bool
	whole    bool // every segment is read whole
}

// A sized is a segment's metadata, and the bytes of its object.
type sized struct {
	*Segment
	bytes int64
	sum   chain.Hash // of the object, where that was read whole
}

// A seen is what a tail takes in of a segment.
type seen struct {
	AnchorSegment
	voided []Voided
}

func (w *walk) add(seg *sized, sum chain.Hash) {
	w.seen = append(w.seen, seen{AnchorSegment{Ordinal: seg.Ordinal, Bytes: seg.bytes, SHA256: sum, AnchorCounts: CountsOf(seg.Segment)}, seg.Voided})
	if w.haveRows < w.wantRows {
		w.recent = append(w.recent, SegmentRef{Ordinal: seg.Ordinal, Rows: seg.Rows, FirstOffset: seg.FirstOffset})
		w.haveRows += seg.Rows
	}
	for _, l := range seg.Logs {
		if _, ok := w.state.Heads[l.Tenant]; !ok {
			w.state.Heads[l.Tenant] = headAfter(l)
		}
	}
	w.archived = w.archived || seg.Rows > 0
}

// tail returns what no anchor covers, which is all.
func (w *walk) tail() (t Tail) {
	for _, s := range slices.Backward(w.seen) {
		t.take(s.AnchorSegment, s.voided)
	}
	for tenant := range w.state.Heads {
		t.change(tenant, Head{})
	}
	return t
}

// back reads the metadata of all segments below newer, some at a time. Void ones
// are passed over: they may be anything.
func (w *walk) back(ctx context.Context, newer *Segment) error {
	for below(newer) > 0 {
		from := max(0, below(newer)-4*resumeParallel)
		segs, err := w.metadata(ctx, from, below(newer))
		if err != nil {
			return err
		}
		for n := below(newer) - 1; n >= from; n = below(newer) - 1 {
			if newer, err = w.one(ctx, segs[n-from], newer); err != nil {
				return err
			}
		}
	}
	return nil
}

// below returns the ordinal of a segment, or of the first that it declares void.
func below(s *Segment) int64 {
	if len(s.Voided) > 0 {
		return s.Voided[0].Ordinal
	}
	return s.Ordinal
}

// one takes in the segment in front of newer, and returns it.
func (w *walk) one(ctx context.Context, found read, newer *Segment) (*Segment, error) {
	seg, ordinal := found.seg, below(newer)-1
	switch {
	case found.err != nil:
		return nil, fmt.Errorf("segment %d: %w", ordinal, found.err)
	case seg.NextOffset != newer.FirstOffset || seg.Line() != w.line || seg.Ordinal != ordinal:
		return nil, fmt.Errorf("segment %d: %w: it ends at offset %d, the next begins at %d", seg.Ordinal, ErrBreaks, seg.NextOffset, newer.FirstOffset)
	case newer.PreviousSHA256 == nil:
		return nil, fmt.Errorf("segment %d: %w: it has no previousSha256", newer.Ordinal, ErrBreaks)
	case w.whole && len(newer.Voided) == 0 && seg.sum != *newer.PreviousSHA256:
		return nil, fmt.Errorf("segment %d: %w: it is not the one that segment %d follows", seg.Ordinal, ErrBreaks, newer.Ordinal)
	}
	if !w.archived && seg.Rows > 0 {
		if err := w.lastArchived(ctx, seg.Ordinal); err != nil {
			return nil, err
		}
	}
	sum := *newer.PreviousSHA256
	if len(newer.Voided) > 0 { // of which it is the last one's
		body, err := w.src.Get(ctx, SegmentKey(w.line, ordinal))
		if err != nil {
			return nil, fmt.Errorf("segment %d: %w", ordinal, err)
		}
		sum = sha256.Sum256(body)
	}
	w.add(seg, sum)
	return seg.Segment, nil
}

// lastArchived takes the time of the newest row, where the newest segments
// have no rows.
func (w *walk) lastArchived(ctx context.Context, ordinal int64) error {
	o, err := GetSegment(ctx, w.src, w.line, ordinal, w.state.Keys)
	if err != nil {
		return err
	}
	w.state.ArchivedAt = o.ArchivedAt()
	return nil
}

// A read is a segment's metadata, or why it could not be read.
type read struct {
	seg *sized
	err error
}

// metadata reads the metadata of the segments from ≤ ordinal < to. That of a void
// one may not be there to be read.
func (w *walk) metadata(ctx context.Context, from, to int64) ([]read, error) {
	segs := make([]read, to-from)
	g := errgroup.Group{}
	g.SetLimit(resumeParallel)
	for i := range segs {
		g.Go(func() error {
			get := readMetadata
			if w.whole {
				get = readWhole
			}
			segs[i].seg, segs[i].err = get(ctx, w.src, SegmentKey(w.line, from+int64(i)))
			return nil
		})
	}
	_ = g.Wait()
	return segs, ctx.Err()
}

// GetMetadata reads the metadata of a segment alone. The error matches
// [ErrBreaks] where it is gone or is no segment.
func GetMetadata(ctx context.Context, src Source, l Line, ordinal int64) (*Segment, error) {
	seg, err := readMetadata(ctx, src, SegmentKey(l, ordinal))
	if errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("segment %d: %w: it is gone", ordinal, ErrBreaks)
	}
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w", ordinal, err)
	}
	return seg.Segment, nil
}

// readMetadata reads a segment's metadata from the end of its object: one GET,
// or two where the footer is larger than usual.
func readMetadata(ctx context.Context, src Source, key string) (*sized, error) {
	for need := int64(resumeTail); ; {
		tail, size, err := src.GetTail(ctx, key, need)
		if err != nil {
			return nil, err
		}
		meta, _, err := parquet.TailMetadata(tail, size)
		var short *parquet.ShortTailError
		if errors.As(err, &short) && int64(len(tail)) < size && short.Need <= maxFooter {
			need = short.Need
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBreaks, err)
		}
		seg, err := DecodeSegment(meta)
		return &sized{seg, size, chain.Hash{}}, err
	}
}

// readWhole reads a segment's metadata, and the hash of its object.
func readWhole(ctx context.Context, src Source, key string) (*sized, error) {
	body, err := src.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	seg, err := SegmentMetadata(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBreaks, err)
	}
	return &sized{seg, int64(len(body)), sha256.Sum256(body)}, nil
}
