package pipeline

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// Anchors that a start reads at once.
const trailParallel = 16

// errStrangers: the newest anchor is signed, and by no key that is known here.
var errStrangers = errors.New("it is signed by a key that anchor-keys does not name")

// A trail is the newest anchors of a line, each following the one before it,
// oldest first.
type trail struct {
	line  archive.Line
	notes []*anchorNote
}

// readTrail reads the anchors of a line from the last full one on; none where it
// has none. The cost is a few reads to find the newest, and at most 100 more.
func (sh *shared) readTrail(ctx context.Context, l archive.Line, hint int64) (*trail, error) {
	newest, err := archive.NewestAnchor(ctx, sh.Archive, l, hint)
	if err != nil || newest < 0 {
		return &trail{line: l}, err
	}
	notes, err := sh.readAnchors(ctx, l, newest-newest%archive.FullEvery, newest+1)
	return &trail{l, notes}, err
}

// readAnchors reads the anchors from ≤ number < to and requires that they follow
// each other.
func (sh *shared) readAnchors(ctx context.Context, l archive.Line, from, to int64) ([]*anchorNote, error) {
	notes := make([]*anchorNote, to-from)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(trailParallel)
	for i := range notes {
		g.Go(func() (err error) {
			notes[i], err = sh.readAnchor(gctx, l, from+int64(i))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	for i := 1; i < len(notes); i++ {
		if err := notes[i].FollowsAnchor(notes[i-1].Anchor, notes[i-1].sum); err != nil {
			return nil, err
		}
	}
	return notes, nil
}

// readAnchor reads one anchor, of this archive and this line. That it is gone is
// an error that matches [archive.ErrOtherAnchor].
func (sh *shared) readAnchor(ctx context.Context, l archive.Line, number int64) (*anchorNote, error) {
	body, err := sh.Archive.Get(ctx, archive.AnchorKey(l, number))
	if errors.Is(err, archive.ErrNotFound) {
		return nil, fmt.Errorf("anchor %d: %w: it is gone", number, archive.ErrOtherAnchor)
	}
	if errors.Is(err, archive.ErrDamaged) {
		return nil, fmt.Errorf("anchor %d: %w: %w: restore it", number, archive.ErrOtherAnchor, err)
	}
	if err != nil {
		return nil, fmt.Errorf("anchor %d: %w", number, err)
	}
	n, err := parseAnchor(body, l, number)
	if err == nil && (n.ArchiveID != sh.Root.ArchiveID || n.ArchiveSHA256 != sh.Root.SHA256) {
		err = fmt.Errorf("anchor %d: %w: it is of archive %s, or ledgerlake.json was changed", number, archive.ErrOtherAnchor, n.ArchiveID)
	}
	return n, err
}

// longer reads up to 100 anchors more, older ones. It reports false where there
// are none.
func (sh *shared) longer(ctx context.Context, t *trail) (bool, error) {
	oldest := t.notes[0]
	if oldest.Number == 0 {
		return false, nil
	}
	older, err := sh.readAnchors(ctx, t.line, max(0, oldest.Number-archive.FullEvery), oldest.Number)
	if err != nil {
		return false, err
	}
	last := older[len(older)-1]
	if err := oldest.FollowsAnchor(last.Anchor, last.sum); err != nil {
		return false, err
	}
	for _, n := range older {
		n.body = nil // only that of the newest is sent again
	}
	t.notes = append(older, t.notes...)
	return true, nil
}

// believed returns how many anchors of a trail a start builds on, and makes the
// trail longer until there is one, or it is whole: those below the newest that a
// good key has signed, and it. Where no key is known, those that cover no more
// than a voucher does, for the segments behind them lead up to it; and as many
// more as it takes to cover what is compacted, for that cannot be compared with
// anything.
func (sh *shared) believed(ctx context.Context, t *trail, v *voucher, c *archive.CatalogVersion) (n int, err error) {
	for more := len(t.notes) > 0; more && n == 0; {
		if n, err = sh.trusted(ctx, t); err != nil {
			return 0, err
		}
		if sh.ring.Empty() {
			n = t.vouched(v)
		}
		if n == 0 {
			if more, err = sh.longer(ctx, t); err != nil {
				return 0, err
			}
		}
	}
	if sh.ring.Empty() && (v != nil || sh.TrustTail) {
		for n < len(t.notes) && t.next(n) < watermarkOf(c) {
			n++
		}
	}
	return n, nil
}

// next returns the ordinal behind the first n anchors of the trail.
func (t *trail) next(n int) int64 {
	if n == 0 {
		return 0
	}
	return t.notes[n-1].Ordinal + 1
}

// checkWatermark requires of a catalog, nil for none, that it counts, and that
// the anchors that a start builds on cover what is compacted: the first good ones
// of the trail.
func (sh *shared) checkWatermark(ctx context.Context, c *archive.CatalogVersion, t *trail, good int) error {
	if err := sh.checkCatalog(ctx, c); err != nil {
		return err
	}
	w := watermarkOf(c)
	switch {
	case w > t.next(len(t.notes)):
		return fmt.Errorf("anchors are missing: %w: the line is compacted up to segment %d, and the newest anchor of the bucket covers segment %d: restore the anchors (%s)",
			archive.ErrOtherAnchor, w-1, t.next(len(t.notes))-1, archive.AnchorPrefix(t.line))
	case w <= t.next(good):
		return nil
	case sh.ring.Empty():
		return fmt.Errorf("the line is compacted up to segment %d: %w: no key is known, and this group has vouched for nothing: what is compacted cannot be compared with Kafka; trust-tail accepts it as it is", w-1, errGone)
	}
	return fmt.Errorf("the line is compacted up to segment %d: %w: the newest anchor that a good key has signed covers segment %d only: name the vkey of who signed the later ones in anchor-keys", w-1, archive.ErrOtherAnchor, t.next(good)-1)
}

// trusted returns how many anchors of the trail are good: as many as lie below
// the newest one that is signed by a good key, and it. Those that do introduce
// keys. Where the newest is signed by strangers alone, the error matches
// errStrangers; where a signature is false, [archive.ErrOtherAnchor].
func (sh *shared) trusted(ctx context.Context, t *trail) (good int, err error) {
	for i, n := range t.notes {
		v, err := sh.verdict(ctx, n)
		if err != nil {
			return 0, err
		}
		switch {
		case v == sign.Good:
			good = i + 1
			sh.introduce(n.Keys)
		case v == sign.Bad:
			return 0, fmt.Errorf("anchor %d: %w: one of its signatures (%s) is not that of the key", n.Number, archive.ErrOtherAnchor, archive.Signers(n.note))
		case v == sign.Unsigned, v == sign.Unknown && (sh.ring.Empty() || i < len(t.notes)-1):
		default:
			return 0, fmt.Errorf("anchor %d: %w: %s: name its vkey in anchor-keys, if it is one of yours", n.Number, errStrangers, archive.Signers(n.note))
		}
	}
	return good, nil
}

// introduce takes in the keys that a good anchor names.
func (sh *shared) introduce(k archive.AnchorKeys) {
	for role, keys := range map[sign.Role][]string{sign.Anchor: k.Anchor, sign.Catalog: k.Catalog, sign.Control: k.Control} {
		for _, vkey := range keys {
			if err := sh.ring.Add(vkey, role, "an anchor"); err != nil && sh.events.Warn != nil {
				sh.events.Warn("a good anchor names a key that is none", err)
			}
		}
	}
}

// split parts a trail in the anchors that a start builds on and those that are to
// be compared with what it then finds.
func (t *trail) split(at int) (base *trail, ahead []*anchorNote) {
	return &trail{t.line, t.notes[:at]}, t.notes[at:]
}

// vouched returns how many anchors of a trail cover no more than a voucher does.
// What they say of logs that do not change behind them is nobody's word, and so
// is built on only where this process signs nothing.
func (t *trail) vouched(v *voucher) (n int) {
	for i, a := range t.notes {
		if v != nil && a.Ordinal <= v.Ordinal {
			n = i + 1
		}
	}
	return n
}

// anchors returns the documents.
func (t *trail) anchors() []*archive.Anchor {
	all := make([]*archive.Anchor, len(t.notes))
	for i, n := range t.notes {
		all[i] = n.Anchor
	}
	return all
}

// resumeAnchored returns the state behind the newest anchor of a trail, and the
// window of so many rows.
func (c *consumer) resumeAnchored(ctx context.Context, t *trail, catalog *archive.CatalogVersion, limit int) (*archive.State, *window, error) {
	newest := t.notes[len(t.notes)-1]
	full := newest.Number % archive.FullEvery
	st := archive.AnchoredState(c.newState(t.line), t.anchors()[len(t.notes)-1-int(full):], newest.sum)
	if st.Ordinal == 0 {
		return st, newWindow(), nil
	}
	if err := c.covered(ctx, st, t, catalog); err != nil {
		return nil, nil, err
	}
	recent, err := c.recent(ctx, t, int64(limit))
	if err != nil {
		return nil, nil, err
	}
	w, err := c.readWindow(ctx, t.line, catalog, recent, limit)
	return st, w, c.stillNamed(ctx, t.line, catalog, err)
}

// covered reads the newest segment that the trail covers, and the newest with a
// row where it has none, for what no anchor says. Where compaction has taken them,
// below the watermark, data files have the newest row, and the leader's epoch is
// not known.
func (c *consumer) covered(ctx context.Context, st *archive.State, t *trail, catalog *archive.CatalogVersion) error {
	watermark := watermarkOf(catalog)
	e, err := c.listed(ctx, t, 0)
	if err != nil {
		return err
	}
	if e.Ordinal != st.Ordinal-1 {
		return fmt.Errorf("anchor %d: %w: it ends at segment %d, and segment %d is the newest that any lists", st.Tail.Anchor.Number, archive.ErrOtherAnchor, st.Ordinal-1, e.Ordinal)
	}
	st.PreviousSHA256 = &e.SHA256
	o, err := c.getCovered(ctx, t.line, e, watermark)
	if err != nil {
		return err
	}
	if o != nil {
		st.Covered(o)
	}
	if o != nil && e.Rows == 0 && st.Tail.Totals.Rows > 0 {
		if e, err = c.listed(ctx, t, 1); err != nil {
			return err
		}
		if o, err = c.getCovered(ctx, t.line, e, watermark); err != nil {
			return err
		}
		if o != nil {
			st.ArchivedAt = o.ArchivedAt()
		}
	}
	if o == nil {
		at, found, err := newDataFiles(c.shared, t.line, catalog).newestStamp(ctx)
		if err != nil {
			return c.stillNamed(ctx, t.line, catalog, err)
		}
		// Where no row is left, there is none that a later one could be stamped
		// before. The anchor's time is no bound from below: who wrote the next
		// segment may have stamped it long before it got there.
		if st.ArchivedAt = 0; found {
			st.ArchivedAt = min(at, st.Tail.Anchor.Time.Add(clockSkew).UnixMicro())
		}
	}
	return nil
}

// getCovered is getListed; nil where the segment is gone and may be, or what lies
// there is the stray of a process that slept.
func (c *consumer) getCovered(ctx context.Context, l archive.Line, e *archive.AnchorSegment, watermark int64) (*archive.SegmentObject, error) {
	o, err := c.getListed(ctx, l, e)
	if errors.Is(err, errAnchoredGone) && e.Ordinal < watermark {
		return nil, nil
	}
	return o, err
}

// listed returns the newest segment of so many rows, or more, that the trail
// lists, which is made longer until it has one.
func (c *consumer) listed(ctx context.Context, t *trail, rows int64) (*archive.AnchorSegment, error) {
	for {
		for i := len(t.notes) - 1; i >= 0; i-- {
			for k := len(t.notes[i].Segments) - 1; k >= 0; k-- {
				if s := &t.notes[i].Segments[k]; s.Rows >= rows {
					return s, nil
				}
			}
		}
		if more, err := c.longer(ctx, t); err != nil {
			return nil, err
		} else if !more {
			return nil, fmt.Errorf("anchor %d: %w: no anchor lists a segment of %d rows", t.notes[0].Number, archive.ErrOtherAnchor, rows)
		}
	}
}

// errAnchoredGone: a segment is not there as an anchor has it.
var errAnchoredGone = errors.New("an anchor covers it, and the bucket does not hold it as the anchor has it: restore it")

// getListed reads a segment and requires that it is the one that an anchor lists.
func (c *consumer) getListed(ctx context.Context, l archive.Line, e *archive.AnchorSegment) (*archive.SegmentObject, error) {
	body, err := c.Archive.Get(ctx, archive.SegmentKey(l, e.Ordinal))
	if errors.Is(err, archive.ErrNotFound) || err == nil && chain.Hash(sha256.Sum256(body)) != e.SHA256 {
		return nil, fmt.Errorf("segment %d: %w: %w", e.Ordinal, archive.ErrBreaks, errAnchoredGone)
	}
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w", e.Ordinal, err)
	}
	o, err := archive.ReadSegment(body, c.keys)
	if err != nil {
		return nil, fmt.Errorf("segment %d: %w: %w", e.Ordinal, archive.ErrBreaks, err)
	}
	return o, nil
}

// recent names the newest segments of a line that hold so many rows.
func (c *consumer) recent(ctx context.Context, t *trail, rows int64) ([]archive.SegmentRef, error) {
	for {
		found, missing := archive.RecentSegments(t.anchors(), rows)
		if missing <= 0 {
			return found, nil
		}
		if more, err := c.longer(ctx, t); err != nil || !more {
			return found, err
		}
	}
}

// checkCopies requires that the bucket holds the newest good anchor that Kafka
// has, or one of them, but for those that are forgone.
func (sh *shared) checkCopies(ctx context.Context, t *trail, known []*copied, forgone []chain.Hash) (lost error) {
	for _, k := range known {
		if slices.Contains(forgone, k.sum) {
			continue
		}
		n := t.at(k.number)
		if n == nil && len(t.notes) > 0 && k.number < t.notes[0].Number {
			var err error
			if n, err = sh.readAnchor(ctx, t.line, k.number); err != nil && !errors.Is(err, archive.ErrOtherAnchor) {
				return err
			}
		}
		if n != nil && n.sum == k.sum {
			return nil
		}
		lost = fmt.Errorf("anchor %d: %w: Kafka has it, signed, and the bucket has another one or none. %s", k.number, ErrWentBack, wayOut)
	}
	return lost
}

// at returns the anchor of a number, nil where the trail has none.
func (t *trail) at(number int64) *anchorNote {
	if len(t.notes) == 0 || number < t.notes[0].Number || number > t.notes[len(t.notes)-1].Number {
		return nil
	}
	return t.notes[number-t.notes[0].Number]
}

// isKnown reports whether Kafka has an anchor, or a newer one.
func isKnown(known []*copied, n *anchorNote) bool {
	return slices.ContainsFunc(known, func(k *copied) bool { return k.number > n.Number || k.sum == n.sum })
}
