package compaction

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
)

// A survey is what a [Governor] sees of the whole archive at one moment: what is
// ordered, and how far each line is with it. It is taken in this order: the
// store's time, the control logs, then the catalogs, so that what was archived
// before that time is in it.
type survey struct {
	listed time.Time // when the lines of the bucket were, where it is of all of them
	now    time.Time // by the store's clock
	gov    *control.Governance
	lines  []archive.Line // all of the bucket, by name
	views  map[archive.Line]*view
	failed map[archive.Line]error // lines of which the catalog or the anchors could not be read

	// Made when they are asked for.
	done    map[string][][2]int64
	cancels map[string]map[string][]*control.Row
	named   map[log]map[string][][2]int64
	above   map[archive.Line]bool   // of lines that were listed: whether there are segments that no anchor covers
	back    map[archive.Line]string // of lines that were listed: a segment that somebody brought back; ""
}

// A log is one tenant's rows of a line.
type log struct {
	tenant string
	line   archive.Line
}

// A view is what a survey sees of one line. Where only its anchors could be read,
// it has no catalog, and the survey says why.
type view struct {
	catalog *archive.CatalogVersion                 // nil: never compacted
	entries map[[2]string]*archive.CatalogRedaction // of the catalog, by tenant and id
	heads   map[string]archive.AnchorHead
	anchor  *archive.Anchor // the newest that counts; nil: none
}

// A headMemo keeps the heads of a line up to an anchor that counts.
type headMemo struct {
	anchor *readAnchor
	heads  map[string]archive.AnchorHead
}

// surveyParallel is how many lines are looked at at once.
const surveyParallel = 8

// look takes a survey of some lines.
func (g *Governor) look(ctx context.Context, lines []archive.Line) (*survey, error) {
	s, err := g.govern(ctx)
	if err != nil {
		return nil, err
	}
	return s, g.views(ctx, s, lines)
}

// views looks at the catalogs and anchors of lines.
func (g *Governor) views(ctx context.Context, s *survey, lines []archive.Line) error {
	s.lines, s.views, s.failed = lines, map[archive.Line]*view{}, map[archive.Line]error{}
	var mu sync.Mutex
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(surveyParallel)
	for _, l := range lines {
		group.Go(func() error {
			v, err := g.view(gctx, l)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.failed[l] = err
			}
			if v != nil {
				s.views[l] = v
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// govern reads the store's time, and then the control logs.
func (g *Governor) govern(ctx context.Context) (s *survey, err error) {
	s = &survey{done: map[string][][2]int64{}, cancels: map[string]map[string][]*control.Row{}, named: map[log]map[string][][2]int64{}, above: map[archive.Line]bool{}, back: map[archive.Line]string{}}
	if s.now, err = g.engine.Archive.Now(ctx); err != nil {
		return nil, fmt.Errorf("the store's time: %w", err)
	}
	s.gov, err = g.read(ctx)
	if err != nil {
		return nil, fmt.Errorf("control logs: %w", err)
	}
	return s, nil
}

// view reads the heads of a line, and its newest catalog. It may return a view
// beside an error.
func (g *Governor) view(ctx context.Context, l archive.Line) (v *view, err error) {
	m, err := g.headsOf(ctx, l)
	if err != nil {
		return nil, err
	}
	v = &view{heads: m.heads, entries: map[[2]string]*archive.CatalogRedaction{}}
	if m.anchor != nil {
		v.anchor = m.anchor.Anchor
	}
	if v.catalog, err = archive.NewestCatalog(ctx, g.engine.Archive, l, g.engine.catalogCounts(l)); err != nil {
		return v, catalogFault(err)
	}
	if v.catalog != nil {
		for i := range v.catalog.Redactions {
			r := &v.catalog.Redactions[i]
			v.entries[[2]string{r.Tenant, r.ID}] = r
		}
	}
	return v, nil
}

// headsOf returns the heads of a line as its anchors that count state them: from
// the last full one on, or from what is remembered.
func (g *Governor) headsOf(ctx context.Context, l archive.Line) (*headMemo, error) {
	m := g.memoOf(l)
	hint := int64(-1)
	if m.anchor != nil {
		hint = m.anchor.Number
	}
	newest, err := archive.NewestAnchor(ctx, g.engine.Archive, l, hint)
	if err != nil || newest < 0 || newest == hint {
		return m, err
	}
	next := &headMemo{heads: map[string]archive.AnchorHead{}}
	for from := newest - newest%archive.FullEvery; from >= 0 && next.anchor == nil; from -= archive.FullEvery {
		if m.anchor != nil && m.anchor.Number >= from {
			next, from = m, m.anchor.Number
		}
		if err := g.follow(ctx, l, next, from, newest); err != nil {
			return nil, err
		}
	}
	g.remember(l, next)
	return next, nil
}

// follow takes in the heads of anchors from ≤ number ≤ newest that count, and of
// those before the last that does.
func (g *Governor) follow(ctx context.Context, l archive.Line, m *headMemo, from, newest int64) error {
	all, err := g.engine.readAnchors(ctx, l, from, newest+1, 1<<62)
	if err != nil {
		return err
	}
	s := &Sight{Line: l}
	if err := g.engine.judge(ctx, s, all); err != nil {
		return err
	}
	for i := range s.Anchors {
		for _, h := range s.Anchors[i].Heads {
			h.Tenant = strings.Clone(h.Tenant)
			m.heads[h.Tenant] = h
		}
		m.anchor = all[i]
	}
	return nil
}

func (g *Governor) memoOf(l archive.Line) *headMemo {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.heads[l]; m != nil {
		c := &headMemo{anchor: m.anchor, heads: make(map[string]archive.AnchorHead, len(m.heads))}
		for t, h := range m.heads {
			c.heads[t] = h
		}
		return c
	}
	return &headMemo{heads: map[string]archive.AnchorHead{}}
}

func (g *Governor) remember(l archive.Line, m *headMemo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heads[l] = m
}

// entry returns what the catalog of a line says of an order; nil where it lists
// none.
func (v *view) entry(o *control.Order) *archive.CatalogRedaction {
	if v == nil {
		return nil
	}
	return v.entries[[2]string{o.Tenant, o.ID}]
}

// namedBy returns the rows of a line that receipts of an order name which count.
func (s *survey) namedBy(o *control.Order, l archive.Line) [][2]int64 {
	at := log{o.Tenant, l}
	byOrder, ok := s.named[at]
	if !ok {
		byOrder = map[string][][2]int64{}
		for _, n := range s.gov.Tenant(o.Tenant).Named(l, 0, math.MaxInt64) {
			if n.Anchored {
				byOrder[n.Order] = append(byOrder[n.Order], [2]int64{n.First, n.Last})
			}
		}
		s.named[at] = byOrder
	}
	return byOrder[o.ID]
}

// cancelsOf returns the rows that take an order back, or try to.
func (s *survey) cancelsOf(o *control.Order) []*control.Row {
	byOrder, ok := s.cancels[o.Tenant]
	if !ok {
		byOrder = map[string][]*control.Row{}
		for c := range s.gov.Tenant(o.Tenant).Rows() {
			if c.Cancel != nil {
				byOrder[strings.ToUpper(c.Cancel.RedactionID)] = append(byOrder[strings.ToUpper(c.Cancel.RedactionID)], c)
			}
		}
		s.cancels[o.Tenant] = byOrder
	}
	return byOrder[o.ID]
}

// reached returns the lines in which an order has to be carried out: those in
// which the tenant has a log, or the one that the order names.
func (s *survey) reached(o *control.Order) (lines []archive.Line) {
	for _, l := range s.lines {
		v := s.views[l]
		if v == nil {
			continue
		}
		if _, has := v.heads[o.Tenant]; has && (o.Redaction == nil || o.Redaction.Target.Log == nil || *o.Redaction.Target.Log == l) {
			lines = append(lines, l)
		}
	}
	return lines
}

// whole says why nothing can be said of a tenant as a whole: a line could not be
// looked at, and may hold rows of it.
func (s *survey) whole(tenant string) error {
	for _, l := range s.lines {
		err := s.failed[l]
		if err == nil {
			continue
		}
		if v := s.views[l]; v != nil {
			if _, has := v.heads[tenant]; !has {
				continue
			}
		}
		return fmt.Errorf("%s/%d: %w", l.Topic, l.Partition, err)
	}
	return nil
}

// linesOf lists the lines of the bucket. A line whose names cannot be read is
// told, and left out.
func (g *Governor) linesOf(ctx context.Context) ([]archive.Line, error) {
	lines, err := archive.Lines(ctx, g.engine.Archive)
	if lines == nil && err != nil {
		return nil, fmt.Errorf("lines of the bucket: %w", err)
	}
	if err != nil && ctx.Err() == nil {
		g.warn("some lines are left out", err)
	}
	return lines, ctx.Err()
}

func (g *Governor) warn(text string, err error) {
	if g.Warn != nil && !errors.Is(err, context.Canceled) {
		g.Warn(text, err)
	}
}

// A fileMemo keeps the data files of one version of a catalog.
type fileMemo struct {
	text  chain.Hash
	files []archive.CatalogFile
}

// filesOf returns the data files that a version of a catalog names, by tenant and
// first seq; none where there is no version.
func (g *Governor) filesOf(ctx context.Context, c *archive.CatalogVersion) ([]archive.CatalogFile, error) {
	if c == nil {
		return nil, nil
	}
	if m := g.files[c.Line()]; m.text == c.SHA256 {
		return m.files, nil
	}
	files, err := c.Files(ctx, g.engine.Archive)
	if err == nil {
		g.files[c.Line()] = fileMemo{c.SHA256, files}
	}
	return files, err
}
