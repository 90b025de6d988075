package proof

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/oklog/ulid/v2"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// Where a record is looked for first: in this many anchors to either side of the
// moment that its id tells, and in each in this many objects to either side of
// where it would stand if all ids were in order.
const nearAnchors, nearObjects = 8, 4

// A located is a row, and the object that it was found in.
type located struct {
	row   chain.Row
	piece *piece
}

// locate finds the row that w asks for.
func (l *provenLine) locate(ctx context.Context, w Want) (*located, error) {
	switch {
	case w.Seq != nil && w.Tenant != "":
		return l.bySeq(ctx, w.Tenant, *w.Seq)
	case w.Offset != nil:
		return l.byOffset(ctx, w)
	case w.RecordID != "":
		return l.byRecord(ctx, w)
	}
	return nil, errors.New("want a record id, an offset, or a tenant and a seq")
}

func (l *provenLine) bySeq(ctx context.Context, tenant string, seq int64) (*located, error) {
	if _, _, err := l.newestHead(ctx, tenant); err != nil {
		return nil, err
	}
	s, err := l.log(tenant).pieceOf(ctx, seq)
	if err != nil {
		return nil, err
	}
	return s.locate(func(r *chain.Row) bool { return r.TenantID.S == tenant && r.Seq.N == seq })
}

// locate returns the row that match accepts.
func (s *piece) locate(match func(*chain.Row) bool) (*located, error) {
	row, err := s.row(match)
	if err != nil {
		return nil, err
	}
	if row == nil {
		return nil, fmt.Errorf("%s does not have it: %w", s.key, ErrNoRow)
	}
	return &located{*row, s}, nil
}

// byOffset finds a row by the offset that Kafka gave it. Anchors say which
// segment had it.
func (l *provenLine) byOffset(ctx context.Context, w Want) (*located, error) {
	offset := *w.Offset
	a, err := l.firstAnchor(ctx, func(a *linkedAnchor) answer {
		if a.Totals.NextOffset <= offset {
			return before
		}
		return reached
	})
	if err != nil {
		return nil, err
	}
	c, err := l.compacted(ctx)
	if err != nil {
		return nil, err
	}
	match := func(r *chain.Row) bool {
		return r.KafkaOffset.Valid && r.KafkaOffset.N == offset && (w.Tenant == "" || w.Tenant == r.TenantID.S)
	}
	for i := range a.Segments {
		e := &a.Segments[i]
		if offset < e.FirstOffset || offset >= e.NextOffset {
			continue
		}
		if e.Ordinal < c.watermark() {
			return nil, fmt.Errorf("segment %d was compacted: ask by record id, or by tenant and seq: %w", e.Ordinal, ErrNoRow)
		}
		s, err := l.segment(ctx, e)
		if err == nil {
			err = s.open(ctx, l.p.src)
		}
		if err != nil {
			return nil, err
		}
		at, err := s.locate(match)
		if errors.Is(err, ErrNoRow) {
			err = fmt.Errorf("offset %d is in segment %d, as a repeat or in a gap: %w", offset, e.Ordinal, ErrNoRow)
		}
		return at, err
	}
	return nil, fmt.Errorf("offset %d is in no segment: %w", offset, ErrNoRow)
}

// byRecord finds a row by its record id. The id tells when it was made, anchors
// tell what was archived then, and the ends of objects which ids they may have.
// Where the clocks did not agree, or the record came late, all is looked at.
func (l *provenLine) byRecord(ctx context.Context, w Want) (*located, error) {
	id, err := ulid.ParseStrict(w.RecordID)
	if err != nil {
		return nil, fmt.Errorf("%q is no record id", w.RecordID)
	}
	newest, err := l.newest(ctx)
	if err != nil {
		return nil, err
	}
	if w.Tenant != "" {
		if _, _, err := l.headBefore(ctx, w.Tenant, newest+1); err != nil {
			return nil, err
		}
	}
	start := newest
	switch a, err := l.atTime(ctx, ulid.Time(id.Time())); {
	case err == nil:
		start = a.Number
	case !errors.Is(err, ErrNotAnchored):
		return nil, err
	}
	at, err := l.byRecordAround(ctx, w, start, nearAnchors, nearObjects)
	if errors.Is(err, ErrNoRow) {
		at, err = l.byRecordAround(ctx, w, start, newest+1, -1)
	}
	return at, err
}

func (l *provenLine) byRecordAround(ctx context.Context, w Want, start, anchors int64, objects int) (*located, error) {
	looked := 0
	for n := range outward(start, l.count, anchors) {
		if looked++; looked%100 == 0 {
			l.p.progress("looked through %d of %d anchors of %s", looked, l.count, l.line.Topic)
		}
		at, err := l.byRecordIn(ctx, w, n, objects)
		if !errors.Is(err, ErrNoRow) {
			return at, err
		}
	}
	return nil, ErrNoRow
}

// outward yields start, and what is around it within 0 and count, to a distance.
func outward(start, count, distance int64) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for d := range min(distance, count) + 1 {
			if start+d < count && !yield(start+d) || d > 0 && start-d >= 0 && start-d < count && !yield(start-d) {
				return
			}
		}
	}
}

// byRecordIn looks for a record in the segments of one anchor: in some around
// where it should stand, or in all where objects is -1.
func (l *provenLine) byRecordIn(ctx context.Context, w Want, n int64, objects int) (*located, error) {
	a, err := l.anchor(ctx, n)
	if err != nil {
		return nil, err
	}
	if w.Tenant != "" && headIn(a.Anchor, w.Tenant) == nil {
		return nil, ErrNoRow
	}
	c, err := l.compacted(ctx)
	if err != nil {
		return nil, err
	}
	entries := a.above(c.watermark())
	if len(entries) < len(a.Segments) {
		if at, err := l.byRecordInFiles(ctx, c, w, a); !errors.Is(err, ErrNoRow) {
			return at, err
		}
	}
	return l.byRecordInSegments(ctx, w, entries, objects)
}

func (l *provenLine) byRecordInSegments(ctx context.Context, w Want, entries []archive.AnchorSegment, objects int) (*located, error) {
	count := int64(len(entries))
	at, err := search(count, func(i int64) (answer, error) {
		s, err := l.segment(ctx, &entries[i])
		if err != nil {
			return silent, err
		}
		return s.reaches(w.RecordID), nil
	})
	if err != nil {
		return nil, err
	}
	distance := count
	if objects >= 0 {
		distance = int64(objects)
	}
	for i := range outward(at, count, distance) {
		s, err := l.segment(ctx, &entries[i])
		switch {
		case err != nil:
			return nil, err
		case w.Tenant != "" && s.interval(w.Tenant) == nil || !s.may(w.RecordID):
			continue
		}
		if at, err := l.recordIn(ctx, s, w); !errors.Is(err, ErrNoRow) {
			return at, err
		}
	}
	return nil, ErrNoRow
}

func (l *provenLine) recordIn(ctx context.Context, s *piece, w Want) (*located, error) {
	if err := s.open(ctx, l.p.src); err != nil {
		return nil, err
	}
	return s.locate(func(r *chain.Row) bool {
		return r.RecordID.Valid && r.RecordID.S == w.RecordID && (w.Tenant == "" || w.Tenant == r.TenantID.S)
	})
}

// byRecordInFiles looks for a record in the data files with the rows that an
// anchor was the first to cover.
func (l *provenLine) byRecordInFiles(ctx context.Context, c *compaction, w Want, a *linkedAnchor) (*located, error) {
	for i := range a.Heads {
		h := &a.Heads[i]
		if w.Tenant != "" && h.Tenant != w.Tenant {
			continue
		}
		seq := int64(0)
		if _, old, err := l.headBefore(ctx, h.Tenant, a.Number); err == nil {
			seq = old.Size
		} else if !errors.Is(err, ErrNoRow) {
			return nil, err
		}
		for seq = max(seq, c.begin(h.Tenant)); seq < h.Size; {
			s, err := l.log(h.Tenant).fileOf(ctx, c, seq)
			if err != nil {
				return nil, err
			}
			seq = s.listed.LastSeq + 1
			if !s.may(w.RecordID) {
				continue
			}
			if at, err := l.recordIn(ctx, s, w); !errors.Is(err, ErrNoRow) {
				return at, err
			}
		}
	}
	return nil, ErrNoRow
}
