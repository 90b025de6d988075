package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// ReadOptions say what the control logs of an archive are read with.
type ReadOptions struct {
	Root    archive.Root
	Keys    *sign.Ring // keys that are good, for all roles; empty asks for no signature. It is not changed
	LogKeys chain.Keys // keys of keyed logs
	Topic   string     // the control topic; "" is [audit.ControlTopic]
}

// segmentsParallel is how many segments are read at once.
const segmentsParallel = 8

// readTries is how often a line is taken again because compaction went on.
const readTries = 5

// A Reader reads the control logs of an archive again and again. It remembers
// what objects said that do not change, and reads those that are new. Its memory
// grows with what governs, not with what is governed; one data file or eight
// segments are in memory at a time. It is used by one goroutine at a time.
type Reader struct {
	src   *archive.Keeper
	o     ReadOptions
	lines map[archive.Line]*lineReader
}

// NewReader returns a Reader that has read nothing.
func NewReader(src archive.Source, o ReadOptions) *Reader {
	if o.Topic == "" {
		o.Topic = audit.ControlTopic
	}
	return &Reader{src: archive.NewKeeper(src, func(key string) bool { return archive.IsAnchor(key) || archive.IsCatalogPart(key) }), o: o, lines: map[archive.Line]*lineReader{}}
}

// Read reads what governs an archive, once.
func Read(ctx context.Context, src archive.Source, o ReadOptions) (*Governance, error) {
	return NewReader(src, o).Read(ctx)
}

// Read returns what all control logs say now. A row counts (it is anchored)
// where the newest anchor of its line leads to it: every row of its log up to
// there has the content that its hash commits to, follows the one before it, and
// the last one is the head that the anchor states. With keys, the anchor is the
// newest that a good one signed; and once control keys are in force, only rows
// that one of them signed count: from the first anchor of the line on that lists
// some, and five minutes, as a verifier has it.
//
// Where a tenant's control log does not lead to the anchor, none of its rows
// counts, and [Governance.Fault] says why: nothing must then be done to its data,
// for a hold may be among what could not be read. What can be read of it still
// hides ([Governance.Gate]). An error means that nothing is known of any tenant.
func (r *Reader) Read(ctx context.Context) (*Governance, error) {
	r.src.Turn()
	lines, err := archive.LinesOf(ctx, r.src, r.o.Topic)
	if err != nil {
		return nil, fmt.Errorf("control topic %s: %w", r.o.Topic, err)
	}
	g := New()
	for _, l := range lines {
		if r.lines[l] == nil {
			r.lines[l] = newLineReader(r, l)
		}
		if err := r.lines[l].read(ctx, g); err != nil {
			return nil, fmt.Errorf("control log %s/%d (%s): %w", l.Topic, l.Partition, l.TopicID, err)
		}
	}
	maps.DeleteFunc(r.lines, func(l archive.Line, _ *lineReader) bool { return !slices.Contains(lines, l) })
	g.Seal()
	return g, nil
}

// Fault says why no control row of a tenant counts though some are archived; nil
// where all is well.
func (g *Governance) Fault(tenant string) error {
	if g == nil {
		return nil
	}
	return g.faults[tenant]
}

// A lineReader reads one line of the control topic.
type lineReader struct {
	r     *Reader
	line  archive.Line
	ring  *sign.Ring // grows by what anchors introduce
	trail trail
	known map[string]*objectRows // by the keys of objects
}

func newLineReader(r *Reader, l archive.Line) *lineReader {
	return &lineReader{r: r, line: l, ring: r.o.Keys.Clone(), known: map[string]*objectRows{}}
}

// read adds the rows of the line.
func (lr *lineReader) read(ctx context.Context, g *Governance) error {
	for try := 1; ; try++ {
		logs, err := lr.walk(ctx)
		if errors.Is(err, archive.ErrNotFound) && try < readTries {
			continue // compaction went on: what is gone is in a file by now
		}
		if err != nil {
			return err
		}
		for _, tenant := range slices.Sorted(maps.Keys(logs)) {
			lr.take(g, tenant, logs[tenant])
		}
		return nil
	}
}

// take adds the rows of one log.
func (lr *lineReader) take(g *Governance, tenant string, log *logWalk) {
	fault := log.end()
	if fault != nil && g.faults[tenant] == nil {
		g.faults[tenant] = fmt.Errorf("control log of the tenant in %s/%d: %w", lr.line.Topic, lr.line.Partition, fault)
	}
	for i, said := range log.rows {
		c := *said // what was added to another Governance stays as it is
		c.Refused = lr.trail.refuses(&c)
		c.Anchored = fault == nil && !c.Refused && i < log.good && c.Seq < log.anchored.Size
		g.Add(&c)
	}
}

// walk goes over the rows of the line as it is now.
func (lr *lineReader) walk(ctx context.Context) (map[string]*logWalk, error) {
	// Anchors first: they may introduce the key of the catalog, and what comes
	// between the two is only not anchored yet.
	if err := lr.trail.read(ctx, lr); err != nil {
		return nil, err
	}
	s, err := archive.ReadSnapshot(ctx, lr.r.src, lr.line, archive.CatalogsSignedBy(lr.r.src, lr.ring, lr.r.o.Root.ArchiveID))
	if err != nil {
		return nil, err
	}
	objects, err := lr.objects(ctx, s)
	if err != nil {
		return nil, err
	}
	if !lr.ring.Empty() && hasUnsigned(objects) {
		grown, err := lr.trail.readAll(ctx, lr)
		if err != nil {
			return nil, err
		}
		if grown { // by keys that may have signed them
			clear(lr.known)
			if objects, err = lr.objects(ctx, s); err != nil {
				return nil, err
			}
		}
	}
	return lr.link(s, objects), nil
}

// objects returns what the objects of a snapshot say, in chain order. Behind the
// newest anchor the line ends in front of the first segment that is none.
func (lr *lineReader) objects(ctx context.Context, s *archive.Snapshot) (all []*objectRows, err error) {
	known := make(map[string]*objectRows, len(s.Files)+len(s.Segments))
	defer func() { lr.known = known }()
	for i := range s.Files {
		f := &s.Files[i]
		o, err := lr.object(ctx, f.Key, func(body []byte) (*objectRows, error) { return lr.dataFile(body, f) })
		if err == nil {
			err = o.broken
		}
		if err != nil {
			return nil, err
		}
		known[f.Key] = o
		all = append(all, o)
	}
	segments, err := lr.segments(ctx, s)
	if err != nil {
		return nil, err
	}
	for i, o := range segments {
		if o.broken != nil && o.ordinal > lr.trail.ordinal() {
			break
		}
		if o.broken != nil {
			return nil, o.broken
		}
		known[s.Segments[i].Key] = o
		all = append(all, o)
	}
	return all, nil
}

// segments reads the segments of a snapshot, some at once: of a control line they
// are small.
func (lr *lineReader) segments(ctx context.Context, s *archive.Snapshot) ([]*objectRows, error) {
	all := make([]*objectRows, len(s.Segments))
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(segmentsParallel)
	for i, seg := range s.Segments {
		ordinal := s.Watermark() + int64(i)
		group.Go(func() (err error) {
			all[i], err = lr.object(gctx, seg.Key, func(body []byte) (*objectRows, error) { return lr.segment(body, ordinal) })
			if err == nil {
				all[i].ordinal = ordinal
			}
			return err
		})
	}
	return all, group.Wait()
}

// object returns what an object says, or that it says nothing.
func (lr *lineReader) object(ctx context.Context, key string, read func([]byte) (*objectRows, error)) (*objectRows, error) {
	if o := lr.known[key]; o != nil {
		return o, nil
	}
	body, err := lr.r.src.Get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	o, err := read(body)
	if err != nil {
		return &objectRows{broken: fmt.Errorf("%s: %w: %w", key, ErrObject, err)}, nil
	}
	return o, nil
}

func hasUnsigned(objects []*objectRows) bool {
	return slices.ContainsFunc(objects, func(o *objectRows) bool {
		return slices.ContainsFunc(o.rows, func(w linkedRow) bool { return w.row != nil && w.row.Unsigned != "" })
	})
}

// link puts the rows of all objects together, log by log.
func (lr *lineReader) link(s *archive.Snapshot, objects []*objectRows) map[string]*logWalk {
	logs := map[string]*logWalk{}
	for tenant, h := range lr.trail.heads() {
		logs[tenant] = &logWalk{anchored: h}
	}
	of := func(tenant string) *logWalk {
		if logs[tenant] == nil {
			logs[tenant] = &logWalk{}
		}
		return logs[tenant]
	}
	if s.Catalog != nil {
		for i := range s.Catalog.Cuts {
			c := &s.Catalog.Cuts[i]
			l := of(c.Tenant)
			l.size, l.head, l.begun = c.Size, c.Head, true
			l.meet()
		}
	}
	void := map[int64]bool{}
	for _, o := range objects {
		for _, v := range o.voided {
			void[v.Ordinal] = true
		}
	}
	for _, o := range objects {
		if o.ordinal >= 0 && void[o.ordinal] {
			continue
		}
		for i := range o.rows {
			of(o.rows[i].log.Tenant).add(&o.rows[i])
		}
	}
	return logs
}
