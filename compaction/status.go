package compaction

import (
	"context"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/control"
)

// The states of an order in the whole archive. Between them stand those of its
// lines: [archive.RedactionGated] and so on.
const (
	StateOrdered   = "ordered"   // archived, and no anchor covers it yet, or some line does not list it yet
	StateUnread    = "unread"    // it orders nothing: its context says nothing, or it is not signed
	StateRefused   = "refused"   // a policy forbids it for now
	StateHeld      = "held"      // a legal hold keeps it from being carried out
	StateCancelled = "cancelled" // taken back in time
	StateClosed    = "closed"    // receipted, and its own context is gone
)

// A Standing is how an order stands.
type Standing struct {
	Order   *control.Order
	State   string
	Why     string    // of unread, refused and held
	DueAt   time.Time // from then on it is carried out
	Promise time.Time // until then it is to be receipted
	Overdue bool      // that has passed, and nothing but a fault keeps it
	Expiry  bool      // by policy
	Lines   []LineStanding
}

// Open reports whether something is still to be done that a compactor can do.
func (s *Standing) Open() bool {
	switch s.State {
	case StateUnread, StateRefused, StateHeld, StateCancelled, StateClosed, archive.RedactionReceipted:
		return false
	}
	return true
}

// A LineStanding is how far one line is with an order: "" where it does not list
// it yet.
type LineStanding struct {
	Line  archive.Line
	State string
}

// Standing says how every order of every tenant stands, in the order of tenants
// and of their control logs.
func (g *Governor) Standing(ctx context.Context) ([]Standing, error) {
	s, err := g.surveyAll(ctx)
	if err != nil {
		return nil, err
	}
	return g.standing(ctx, s)
}

func (g *Governor) standing(ctx context.Context, s *survey) (all []Standing, err error) {
	for _, tenant := range s.gov.Tenants() {
		t := s.gov.Tenant(tenant)
		for _, o := range ordersOf(t) {
			st, err := g.stands(ctx, s, t, o)
			if err != nil {
				return nil, err
			}
			all = append(all, st)
		}
	}
	return all, nil
}

func (g *Governor) stands(ctx context.Context, s *survey, t *control.Tenant, o *control.Order) (st Standing, err error) {
	st = Standing{Order: o, DueAt: g.dueAt(o), Promise: time.UnixMicro(o.ArchivedAt).UTC().Add(g.Within), Expiry: expires(o)}
	if st.State, st.Why, err = g.state(ctx, s, t, o); err != nil {
		return st, err
	}
	held := false
	for _, l := range s.reached(o) {
		line := LineStanding{Line: l}
		if e := s.views[l].entry(o); e != nil {
			line.State = e.State
			held = held || e.State == archive.RedactionGated && slices.Equal(e.Kept, heldText)
		} else if o.Gone {
			continue
		}
		st.Lines = append(st.Lines, line)
	}
	if st.State == "" {
		st.State = slowest(st.Lines)
	}
	if held && (st.State == archive.RedactionGated || st.State == archive.RedactionReceipted) {
		st.State, st.Why = StateHeld, heldText[0]
	}
	st.Overdue = g.Within > 0 && s.now.After(st.Promise) && st.Open()
	return st, nil
}

// state returns the state that does not depend on lines, "" where all does.
func (g *Governor) state(ctx context.Context, s *survey, t *control.Tenant, o *control.Order) (state, why string, err error) {
	switch {
	case o.Refused:
		return StateUnread, o.Unsigned, nil
	case o.Redaction == nil && !o.Gone:
		return StateUnread, "its context is no order", nil
	case s.gov.Fault(o.Tenant) != nil:
		return StateOrdered, s.gov.Fault(o.Tenant).Error(), nil
	case !o.Anchored:
		return StateOrdered, "no anchor covers it yet", nil
	case s.closed(g.Topic, o):
		return StateClosed, "", nil
	case receipts(o) > 0:
		return archive.RedactionReceipted, "", nil
	case g.taken(s, o) == taken:
		return StateCancelled, "", nil
	case o.Gone && o.Cancelled: // when it was due cannot be told any more
		return StateCancelled, "", nil
	case o.Gone:
		return StateUnread, "its context was erased before it was carried out", nil
	}
	if why, err = g.refused(ctx, s, o); err != nil || why != "" {
		return StateRefused, why, err
	}
	if h := heldWhole(t, o); h != nil && !s.now.Before(g.dueAt(o)) {
		return StateHeld, "legal hold " + h.ID, nil
	}
	return "", "", nil
}

// slowest returns the state of the line that is the furthest back.
func slowest(lines []LineStanding) string {
	state := archive.RedactionReceipted
	for _, l := range lines {
		if rank(l.State) < rank(state) {
			state = l.State
		}
	}
	if state == "" || len(lines) == 0 {
		return StateOrdered
	}
	return state
}

func rank(state string) int {
	switch state {
	case archive.RedactionGated:
		return 1
	case archive.RedactionPurged:
		return 2
	case archive.RedactionGone:
		return 3
	case archive.RedactionReceipted:
		return 4
	}
	return 0
}

// Oldest returns how long the oldest order that is not done has been archived, 0
// where all are done that can be.
func Oldest(all []Standing, now time.Time) (oldest time.Duration) {
	for i := range all {
		if all[i].Open() {
			oldest = max(oldest, now.Sub(time.UnixMicro(all[i].Order.ArchivedAt)))
		}
	}
	return oldest
}

// A LineStatus is how compaction of a line stands.
type LineStatus struct {
	Line     archive.Line
	Version  int64     // of the catalog, -1 if there is none
	Time     time.Time // of that version
	Segments int64     // that lie above the watermark
	Anchored int64     // of those, covered by an anchor that counts
	Newest   time.Time // of that anchor
	Files    int64
	Rows     int64 // in data files
	Bytes    int64
	Doomed   int64
	Cuts     int64
	Holds    int64
	Orders   map[string]int64 // by state
	Err      error            // why the line cannot be read
}

// Status says how compaction of every line stands.
func (g *Governor) Status(ctx context.Context) (all []LineStatus, err error) {
	s, err := g.surveyAll(ctx)
	if err != nil {
		return nil, err
	}
	for _, l := range s.lines {
		st := LineStatus{Line: l, Version: -1, Err: s.failed[l]}
		if v := s.views[l]; v != nil {
			if err := g.status(ctx, l, v, &st); err != nil {
				st.Err = err
			}
		}
		all = append(all, st)
	}
	return all, nil
}

func (g *Governor) status(ctx context.Context, l archive.Line, v *view, st *LineStatus) error {
	watermark := int64(0)
	if c := v.catalog; c != nil {
		files, err := g.filesOf(ctx, c)
		if err != nil {
			return err
		}
		for i := range files {
			st.Rows, st.Bytes = st.Rows+files[i].Rows, st.Bytes+files[i].Bytes
		}
		watermark = c.Watermark
		st.Version, st.Time, st.Files = c.Version, c.Time.Time, int64(len(files))
		st.Doomed, st.Cuts, st.Holds = int64(len(c.Doomed)), int64(len(c.Cuts)), int64(len(c.Holds))
		st.Orders = map[string]int64{}
		for i := range c.Redactions {
			st.Orders[c.Redactions[i].State]++
		}
	}
	segments, err := archive.ListSegments(ctx, g.engine.Archive, l, watermark)
	if err != nil {
		return err
	}
	if st.Segments = int64(len(segments)); v.anchor != nil {
		st.Anchored, st.Newest = max(v.anchor.Ordinal+1-watermark, 0), v.anchor.Time.Time
	}
	return nil
}

// Holds returns the holds of a tenant that are in force.
func (g *Governor) Holds(ctx context.Context, tenant string) ([]*control.Row, error) {
	s, err := g.govern(ctx)
	if err != nil {
		return nil, err
	}
	return s.gov.Tenant(tenant).Holds(), s.gov.Fault(tenant)
}

// Row returns a control row of a tenant, whether or not an anchor covers it; nil
// where it is not archived.
func (g *Governor) Row(ctx context.Context, tenant, id, kind string) (*control.Row, error) {
	s, err := g.govern(ctx)
	if err != nil {
		return nil, err
	}
	return s.gov.Tenant(tenant).Row(id, kind), nil
}

// ControlKeys reports whether an anchor names keys that must sign control
// records.
func (g *Governor) ControlKeys(ctx context.Context) (bool, error) {
	s, err := g.surveyAll(ctx)
	if err != nil {
		return false, err
	}
	for _, v := range s.views {
		if v.anchor != nil && len(v.anchor.Keys.Control) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// Lines returns every line of the bucket. It is listed again every ListEvery.
func (g *Governor) Lines(ctx context.Context) ([]archive.Line, error) {
	now, err := g.engine.Archive.Now(ctx)
	if err != nil {
		return nil, err
	}
	return g.linesAt(ctx, now)
}
