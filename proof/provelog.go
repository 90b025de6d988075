package proof

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// tailBytes is what is read of the end of an object to see what it is. Many
// segments are not larger.
const tailBytes = 64 << 10

// A piece is an object with rows: a segment, or a data file.
type piece struct {
	key    string
	entry  *archive.AnchorSegment // what an anchor says of it; nil for a data file
	listed *archive.CatalogFile   // what a catalog says of it; nil for a segment
	size   int64
	tail   []byte // all of it, or its end
	meta   *archive.Segment
	file   *parquet.File // once it is read whole
}

// A provenLog is what is known of one log of a line.
type provenLog struct {
	l      *provenLine
	name   chain.Log
	forest *forest
	reads  int // pieces
}

func (l *provenLine) log(tenant string) *provenLog {
	g := l.logs[tenant]
	if g == nil {
		g = &provenLog{l: l, forest: newForest(), name: chain.Log{
			ArchiveID: l.p.root.ArchiveID, Tenant: tenant, Topic: l.line.Topic, TopicID: l.line.TopicID, Partition: l.line.Partition,
		}}
		if t := l.p.o.Tiles; t != nil && t.isOf(g.name) {
			g.forest.tile = t.node
		}
		l.logs[tenant] = g
	}
	return g
}

// segment returns a segment that an anchor lists: its metadata, and its end.
func (l *provenLine) segment(ctx context.Context, e *archive.AnchorSegment) (*piece, error) {
	if s, ok := l.pieces[e.Ordinal]; ok {
		return s, nil
	}
	s := &piece{key: archive.SegmentKey(l.line, e.Ordinal), entry: e}
	switch err := s.readTail(ctx, l.p.src); {
	case errors.Is(err, archive.ErrNotFound):
		return nil, tampered("%s is missing, and anchors list it", s.key)
	case err != nil:
		return nil, err
	}
	if s.size != e.Bytes {
		return nil, tampered("%s has %d bytes, the anchor says %d", s.key, s.size, e.Bytes)
	}
	text, err := s.metadata(ctx, l.p.src)
	if err != nil {
		return nil, err
	}
	if s.meta, err = readMetadata(text); err != nil {
		return nil, tampered("%s: metadata: %v", s.key, err)
	}
	l.pieces[e.Ordinal] = s
	return s, nil
}

func (s *piece) readTail(ctx context.Context, src archive.Source) (err error) {
	s.tail, s.size, err = src.GetTail(ctx, s.key, tailBytes)
	if err != nil {
		return fmt.Errorf("read %s: %w", s.key, err)
	}
	return nil
}

// metadata returns the document in the footer, and reads more of the object's
// end where that takes more.
func (s *piece) metadata(ctx context.Context, src archive.Source) ([]byte, error) {
	text, _, err := parquet.TailMetadata(s.tail, s.size)
	var short *parquet.ShortTailError
	if errors.As(err, &short) {
		if s.tail, _, err = src.GetTail(ctx, s.key, short.Need); err != nil {
			return nil, fmt.Errorf("read %s: %w", s.key, err)
		}
		text, _, err = parquet.TailMetadata(s.tail, s.size)
	}
	if err != nil {
		return nil, tampered("%s: %v", s.key, err)
	}
	return text, nil
}

// may reports whether the object can have a record, by the bounds in its footer.
func (s *piece) may(recordID string) bool { return s.mayHave("record_id", recordID) }

// reaches says whether the object has ids up to a record's. Ids are nearly in
// the order of time.
func (s *piece) reaches(recordID string) answer {
	_, high, ok, err := parquet.TailBounds(s.tail, s.size, "record_id")
	switch {
	case err != nil || !ok:
		return silent
	case high < recordID:
		return before
	}
	return reached
}

// open reads the object whole, compares its hash with the anchor's, and opens
// it.
func (s *piece) open(ctx context.Context, src archive.Source) error {
	if s.file != nil {
		return nil
	}
	body := s.tail
	if body == nil || int64(len(body)) < s.size {
		var err error
		if body, err = src.Get(ctx, s.key); err != nil {
			return fmt.Errorf("read %s: %w", s.key, err)
		}
	}
	if sum := sha256.Sum256(body); s.entry != nil && s.entry.SHA256 != sum || s.listed != nil && s.listed.SHA256 != sum {
		return tampered("%s does not have the hash that the anchor or the catalog states", s.key)
	}
	err := safely(func() (err error) {
		s.file, err = archive.OpenForeignSegment(body)
		return err
	})
	if err != nil {
		return tampered("%s: %v", s.key, err)
	}
	return nil
}

// interval returns what a segment does to a log, or nil.
func (s *piece) interval(tenant string) *archive.LogInterval {
	i := slices.IndexFunc(s.meta.Logs, func(l archive.LogInterval) bool { return l.Tenant == tenant })
	if i < 0 {
		return nil
	}
	return &s.meta.Logs[i]
}

// row returns the first row that match accepts, or nil.
func (s *piece) row(match func(*chain.Row) bool) (*chain.Row, error) {
	var found *chain.Row
	err := safely(func() error {
		for row, err := range s.file.Rows() {
			if err != nil {
				return err
			}
			if match(row) {
				c := *row
				found = &c
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, tampered("%s: %v", s.key, err)
	}
	return found, nil
}

// A stretch is the hashes of consecutive rows of a log.
type stretch struct {
	first  int64
	hashes []chain.Hash
}

func (st *stretch) end() int64 { return st.first + int64(len(st.hashes)) }

// hashes returns the hashes of a log's rows in the object.
func (s *piece) hashes(tenant string) (st stretch, err error) {
	err = safely(func() error {
		for row, err := range s.file.Select("tenant_id", "seq", "row_hash") {
			switch {
			case err != nil:
				return err
			case row.TenantID.S != tenant:
				continue
			case len(st.hashes) == 0:
				st.first = row.Seq.N
			case row.Seq.N != st.first+int64(len(st.hashes)):
				return fmt.Errorf("seq %d stands where %d belongs", row.Seq.N, st.first+int64(len(st.hashes)))
			}
			st.hashes = append(st.hashes, row.RowHash)
		}
		return nil
	})
	if err != nil {
		return st, tampered("%s: %v", s.key, err)
	}
	return st, nil
}

// pieceOf returns the object that has the row seq of the log, opened.
func (g *provenLog) pieceOf(ctx context.Context, seq int64) (*piece, error) {
	s, err := g.objectOf(ctx, seq)
	if err != nil {
		return nil, err
	}
	return s, s.open(ctx, g.l.p.src)
}

// objectOf returns the object that has the row seq of the log.
func (g *provenLog) objectOf(ctx context.Context, seq int64) (*piece, error) {
	a, _, err := g.l.covering(ctx, g.name.Tenant, seq)
	if err != nil {
		return nil, err
	}
	c, err := g.l.compacted(ctx)
	if err != nil {
		return nil, err
	}
	// An old segment may still be there, with what was erased since.
	if a.Ordinal < c.watermark() {
		return g.fileOf(ctx, c, seq)
	}
	return g.segmentOf(ctx, c, a, seq)
}

// endOf returns the seq behind the last row of a log in the object.
func (s *piece) endOf(tenant string) int64 {
	if s.listed != nil {
		return s.listed.LastSeq + 1
	}
	iv := s.interval(tenant)
	return iv.FirstSeq + iv.Rows
}

// mayHave reports whether the object can have a row with a value in a column, by
// the bounds in its footer. Every object may have "".
func (s *piece) mayHave(column, value string) bool {
	if value == "" {
		return true
	}
	low, high, ok, err := parquet.TailBounds(s.tail, s.size, column)
	return err != nil || !ok || low <= value && value <= high
}

// segmentOf returns the segment of an anchor that has the row seq, or the data
// file where the first segments of the anchor were compacted.
func (g *provenLog) segmentOf(ctx context.Context, c *compaction, a *linkedAnchor, seq int64) (*piece, error) {
	entries := a.above(c.watermark())
	n, err := search(int64(len(entries)), func(i int64) (answer, error) {
		s, err := g.l.segment(ctx, &entries[i])
		if err != nil {
			return silent, err
		}
		switch iv := s.interval(g.name.Tenant); {
		case iv == nil:
			return silent, nil
		case iv.FirstSeq+iv.Rows <= seq:
			return before, nil
		}
		return reached, nil
	})
	switch {
	case err != nil:
		return nil, err
	case n < int64(len(entries)):
		s, err := g.l.segment(ctx, &entries[n])
		if err != nil || s.interval(g.name.Tenant).FirstSeq <= seq {
			return s, err
		}
	}
	if len(entries) == len(a.Segments) {
		return nil, tampered("anchor %d covers seq %d, and no segment of it has that", a.Number, seq)
	}
	return g.fileOf(ctx, c, seq)
}

// know adds to the forest what the roots of spans take, in the tree of h. at is
// an opened object; its rows, and all before keep, stay apart in the forest.
func (g *provenLog) know(ctx context.Context, h *archive.AnchorHead, at *piece, spans []seqSpan, keep int64) error {
	g.forest.addFrontier(h.Size, h.Frontier)
	st, err := at.hashes(g.name.Tenant)
	if err != nil {
		return err
	}
	g.forest.addRows(st.first, st.hashes)
	keep = max(keep, st.end())
	if m := g.forest.missing(spans); m != (seqSpan{}) && m.lo < st.first {
		if err := g.before(ctx, at, st.first); err != nil {
			return err
		}
	}
	for m := g.forest.missing(spans); m != (seqSpan{}); m = g.forest.missing(spans) {
		st, err := g.stretchAt(ctx, m.lo)
		if err != nil {
			return err
		}
		g.forest.take(st, keep)
		if g.reads++; g.reads%100 == 0 {
			g.l.p.progress("row hashes: at seq %d of %d", m.lo, m.hi)
		}
	}
	return nil
}

// stretchAt returns the hashes of an object's rows, among them that of seq, and
// lets the object go.
func (g *provenLog) stretchAt(ctx context.Context, seq int64) (stretch, error) {
	s, err := g.pieceOf(ctx, seq)
	if err != nil {
		return stretch{}, err
	}
	st, err := s.hashes(g.name.Tenant)
	s.tail, s.file = nil, nil
	if err == nil && (seq < st.first || seq >= st.end()) {
		return st, tampered("%s does not have seq %d, which it should", s.key, seq)
	}
	return st, err
}

// each calls do with the hashes of the rows from lo to hi.
func (g *provenLog) each(ctx context.Context, rows seqSpan, do func(chain.Hash) error) error {
	for at := rows.lo; at < rows.hi; {
		st, err := g.stretchAt(ctx, at)
		if err != nil {
			return err
		}
		for _, h := range st.hashes[at-st.first : min(st.end(), rows.hi)-st.first] {
			if err := do(h); err != nil {
				return err
			}
		}
		at = st.end()
		if g.reads++; g.reads%100 == 0 {
			g.l.p.progress("row hashes: at seq %d of %d", at, rows.hi)
		}
	}
	return nil
}

// before adds the frontier in front of the row seq, the first one of an object:
// from the object, from the segment before that has rows of the log, or from the
// anchor before.
func (g *provenLog) before(ctx context.Context, at *piece, seq int64) error {
	if at.listed != nil {
		return g.beforeFile(ctx, at, seq)
	}
	a, _, err := g.l.covering(ctx, g.name.Tenant, seq)
	if err != nil {
		return err
	}
	c, err := g.l.compacted(ctx)
	if err != nil {
		return err
	}
	entries := a.above(c.watermark())
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Ordinal >= at.entry.Ordinal {
			continue
		}
		s, err := g.l.segment(ctx, &entries[i])
		if err != nil {
			return err
		}
		if iv := s.interval(g.name.Tenant); iv != nil {
			return g.addFrontier(s.key, seq, iv.Size, iv.Frontier)
		}
	}
	if len(entries) < len(a.Segments) {
		if done, err := g.behindFile(ctx, c, seq); done || err != nil {
			return err
		}
	}
	b, h, err := g.l.headBefore(ctx, g.name.Tenant, a.Number)
	if err != nil {
		return err
	}
	return g.addFrontier(fmt.Sprintf("anchor %d", b.Number), seq, h.Size, h.Frontier)
}

func (g *provenLog) addFrontier(where string, seq, size int64, frontier []chain.Hash) error {
	if err := chain.CheckFrontier(size, frontier); err != nil || size != seq {
		return tampered("%s: the log has %d rows there, and goes on with seq %d", where, size, seq)
	}
	g.forest.addFrontier(size, frontier)
	return nil
}
