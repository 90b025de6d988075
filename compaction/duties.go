package compaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/retention"
)

// counts reports whether a control row is archived, anchored and, where control
// keys are in force, signed.
func counts(r *control.Row) bool { return r.Anchored }

// dueAt returns when an order is carried out at the earliest, by the store's
// clock: a hard one at once, and so one of expiry, which a policy has announced.
func (r *Rules) dueAt(o *control.Order) time.Time {
	at := time.UnixMicro(o.ArchivedAt).UTC()
	if o.Redaction == nil || o.Redaction.Hard || expires(o) {
		return at
	}
	return at.Add(r.PurgeAfter)
}

// A taking is what became of a try to take an order back.
type taking int

const (
	kept    taking = iota // nobody tried, or too late
	waiting               // one is archived, and no anchor covers it yet
	taken
)

// taken says whether an order was taken back: by a cancellation that was archived
// before the order was due. What comes later is too late, whether or not
// something was carried out already, so that all compactors agree.
func (g *Governor) taken(s *survey, o *control.Order) taking {
	due, found := g.dueAt(o).UnixMicro(), kept
	for _, c := range s.cancelsOf(o) {
		switch {
		case c.ArchivedAt >= due || c.Refused:
		case c.Anchored:
			return taken
		default:
			found = waiting
		}
	}
	return found
}

// expires reports whether an order is one of expiry by policy: its context names
// nobody, stays, and no row comes late for it.
func expires(o *control.Order) bool { return o.Redaction != nil && o.Redaction.Target.Before != nil }

// receipts returns how many receipts of an order count.
func receipts(o *control.Order) (n int) {
	for _, r := range o.Rounds {
		if r.Anchored {
			n++
		}
	}
	return n
}

// closed reports whether nothing is left to do for an order: it is one of expiry
// and receipted, or its own context is gone and a receipt that counts says so.
func (s *survey) closed(topic string, o *control.Order) bool {
	if receipts(o) == 0 {
		return false
	}
	if expires(o) {
		return true
	}
	return o.Gone && within(s.doneRows(topic, o.Tenant), o.Seq)
}

// doneRows returns the rows of a tenant's control log that receipts name which
// count. What they name is somebody's word: it may be any rows.
func (s *survey) doneRows(topic, tenant string) [][2]int64 {
	if done, ok := s.done[tenant]; ok {
		return done
	}
	var done [][2]int64
	for o := range s.gov.Tenant(tenant).Orders() {
		for _, round := range o.Rounds {
			if !round.Anchored {
				continue
			}
			for _, p := range round.Parts {
				for _, e := range p.Receipt.Erased {
					if e.Log.Topic == topic {
						done = append(done, e.Ranges...)
					}
				}
			}
		}
	}
	done = union(nil, done)
	s.done[tenant] = done
	return done
}

// within reports whether one of ranges, which are in order and apart, has a row.
func within(ranges [][2]int64, seq int64) bool {
	i, _ := slices.BinarySearchFunc(ranges, seq, func(r [2]int64, seq int64) int { return cmp.Compare(r[1], seq) })
	return i < len(ranges) && ranges[i][0] <= seq
}

// ordersOf returns a tenant's redactions in the order of its control log.
func ordersOf(t *control.Tenant) []*control.Order {
	all := slices.Collect(t.Orders())
	slices.SortFunc(all, func(a, b *control.Order) int {
		if a.Seq != b.Seq {
			return int(a.Seq - b.Seq)
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}

// duties returns what governs a line now.
func (g *Governor) duties(ctx context.Context, s *survey, l archive.Line) (*Duties, error) {
	d := &Duties{Cuts: map[string]*control.Row{}, Frozen: map[string]bool{}}
	for _, tenant := range s.gov.Tenants() {
		t := s.gov.Tenant(tenant)
		if s.gov.Fault(tenant) != nil {
			d.Frozen[tenant] = true
			continue
		}
		for _, h := range t.Holds() {
			if counts(h) {
				d.Holds = append(d.Holds, h)
			}
		}
		for r := range t.Rows() {
			if r.Kind == audit.KindLegalHold && r.Anchored {
				d.Seen = append(d.Seen, r)
			}
		}
		if cut := t.LastCut(l); cut != nil && counts(cut) {
			d.Cuts[tenant] = cut
		}
		for _, o := range ordersOf(t) {
			duty, ok, err := g.duty(ctx, s, l, t, o)
			if err != nil {
				return nil, err
			}
			if ok {
				d.Orders = append(d.Orders, duty)
			}
		}
	}
	return d, nil
}

// duty returns how an order stands for a line; false where it is none of the
// line's. One whose context is gone concerns only lines that list it, and that
// have taken something: who lists it only now has come too late to know what it
// means, and its last receipt is not to wait for that.
func (g *Governor) duty(ctx context.Context, s *survey, l archive.Line, t *control.Tenant, o *control.Order) (d Duty, ok bool, err error) {
	e := s.views[l].entry(o)
	if !counts(o.Row) || o.Redaction == nil && (!o.Gone || e == nil || e.State == archive.RedactionGated && len(e.Erased) == 0) {
		return d, false, nil
	}
	d = Duty{Row: o.Row, DueAt: g.dueAt(o), Receipted: receipts(o) > 0, Closed: s.closed(g.Topic, o), Receipts: s.namedBy(o, l)}
	if d.Closed {
		return d, e != nil, nil
	}
	d.Late = !o.Gone && d.Receipted && !s.now.Before(g.over(o))
	if d.Closing = l.Topic == g.Topic && o.Gone; d.Late && l.Topic == g.Topic {
		if d.Closing, err = g.closes(ctx, t, o); err != nil {
			return d, false, err
		}
	}
	if !d.reaches(l) {
		return d, false, nil
	}
	state := g.taken(s, o)
	if state == taken && !d.Receipted {
		return d, false, nil
	}
	why, err := g.refused(ctx, s, o)
	d.Due = err == nil && state == kept && why == "" && !s.now.Before(d.DueAt) && (d.Receipted || heldWhole(t, o) == nil)
	return d, true, err
}

// heldWhole returns the hold that keeps all of an order from being carried out:
// one of the whole tenant, or of just the user or session that the order is
// about. nil where none does; single rows may be held all the same.
func heldWhole(t *control.Tenant, o *control.Order) *control.Row {
	for _, h := range t.Holds() {
		if !counts(h) || o.Redaction == nil {
			continue
		}
		target, scope := &o.Redaction.Target, &h.Hold.Scope
		switch {
		case scope.Tenant, same(scope.User, target.User), same(scope.Session, target.Session):
			return h
		}
	}
	return nil
}

func same(a, b *string) bool { return a != nil && b != nil && *a == *b }

// over returns when the time for late rows of an order is over: so long after its
// newest receipt.
func (g *Governor) over(o *control.Order) time.Time {
	return time.UnixMicro(o.Receipted).Add(g.LateWindow)
}

// closes reports whether an order whose time for late rows is over can be closed:
// nothing of it was on its way in any line when all were listed and looked at
// last, which was behind that time: whoever slept through it, or has not heard of
// a new line, has seen none of the rows that came. While a hold of the tenant is
// in force no order of it is closed, for what is held may have to be erased yet.
func (g *Governor) closes(ctx context.Context, t *control.Tenant, o *control.Order) (bool, error) {
	over := g.over(o)
	if expires(o) || len(t.Holds()) > 0 || g.last == nil || g.last.listed.Before(over) || g.last.whole(o.Tenant) != nil {
		return false, nil
	}
	for _, l := range g.last.reached(o) {
		if e := g.last.views[l].entry(o); e == nil || e.State != archive.RedactionReceipted {
			return false, nil
		}
		if all, err := g.compactedUntil(ctx, l, over); !all || err != nil {
			return false, err
		}
	}
	return true, nil
}

// compactedUntil reports whether a line, as it was seen last, which was behind a
// time, had compacted all that was archived before that time: all that an anchor
// covers, and that one is behind the time, or there is nothing that it does not
// cover.
func (g *Governor) compactedUntil(ctx context.Context, l archive.Line, at time.Time) (bool, error) {
	v := g.last.views[l]
	switch {
	case v.catalog == nil || v.anchor == nil || v.catalog.Watermark <= v.anchor.Ordinal:
		return false, nil
	case !v.anchor.Time.Before(at):
		return true, nil
	}
	above, known := g.last.above[l]
	if !known {
		segments, err := archive.ListSegments(ctx, g.engine.Archive, l, v.anchor.Ordinal+1)
		if err != nil && !errors.Is(err, archive.ErrBreaks) { // a hole is for ingest to find out
			return false, err
		}
		above = err != nil || len(segments) > 0
		g.last.above[l] = above
	}
	return !above, nil
}

// refused says why the tenant's policy forbids an order, "" where it does not.
func (g *Governor) refused(ctx context.Context, s *survey, o *control.Order) (string, error) {
	if o.Redaction == nil || governs(s.gov.Tenant(o.Tenant), o) {
		return "", nil
	}
	policy := g.Policies.For(o.Tenant)
	order := retention.Order{Hard: o.Redaction.Hard}
	why := policy.Refuse(order, s.now)
	if why == "" || !expires(o) {
		return why, nil
	}
	newest, err := g.newestBelow(ctx, s, o)
	if err != nil {
		return "", err
	}
	order.Newest = newest
	return policy.Refuse(order, s.now), nil
}

// governs reports whether an order is about the context of a control row alone,
// which no policy keeps.
func governs(t *control.Tenant, o *control.Order) bool {
	r := o.Redaction
	if r.Target.Record == nil || r.Erasure != (control.Erasure{Slots: chain.SlotSetOf(audit.SlotContext)}) {
		return false
	}
	return t.Row(*r.Target.Record, audit.KindRedaction) != nil || t.Row(*r.Target.Record, audit.KindLegalHold) != nil
}

// newestBelow returns a time behind that of the newest row that an order of
// expiry means, zero where that is not compacted yet.
func (g *Governor) newestBelow(ctx context.Context, s *survey, o *control.Order) (time.Time, error) {
	target := &o.Redaction.Target
	if target.Log == nil || target.Before == nil {
		return time.Time{}, nil
	}
	v := s.views[*target.Log]
	if v == nil || v.catalog == nil {
		return time.Time{}, nil
	}
	files, err := g.filesOf(ctx, v.catalog)
	if err != nil {
		return time.Time{}, err
	}
	for i := range files {
		f := &files[i]
		if f.Tenant == o.Tenant && f.FirstSeq < *target.Before && *target.Before <= f.LastSeq+1 {
			day, err := time.Parse(archive.DayLayout, f.Day)
			if err != nil {
				return time.Time{}, fmt.Errorf("%s: %w", f.Key, err)
			}
			return day.AddDate(0, 0, 1).Add(-time.Microsecond), nil
		}
	}
	return time.Time{}, nil
}

// compactedBelow reports whether all rows that an order of expiry names are
// compacted; true for every other order. Its first receipt closes it, so that
// none may be on its way.
func (g *Governor) compactedBelow(ctx context.Context, s *survey, o *control.Order) (bool, error) {
	if !expires(o) || o.Redaction.Target.Log == nil {
		return true, nil
	}
	v, size := s.views[*o.Redaction.Target.Log], int64(0)
	if v == nil || v.catalog == nil {
		return *o.Redaction.Target.Before <= 0, nil
	}
	for i := range v.catalog.Cuts {
		if c := &v.catalog.Cuts[i]; c.Tenant == o.Tenant {
			size = c.Size
		}
	}
	files, err := g.filesOf(ctx, v.catalog)
	for i := range files {
		if f := &files[i]; f.Tenant == o.Tenant {
			size = max(size, f.LastSeq+1)
		}
	}
	return *o.Redaction.Target.Before <= size, err
}
