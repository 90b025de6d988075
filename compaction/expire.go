package compaction

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/retention"
)

// An Expiry is what a policy, or an offboarding, asks of one log.
type Expiry struct {
	Line   archive.Line
	Tenant string

	Cut      *control.Cut // nil where no row goes
	CutID    string       // of its record
	Cutting  Extent       // of the rows that go
	Payloads []Payload
	Kept     []string // what kept rows that were due, in words
}

// A Payload is one expiry of content: a redaction of all rows below a seq.
type Payload struct {
	ID        string
	Redaction *control.Redaction
	Of        Extent // of the rows that it is ordered for; many may have lost it before
}

// An Extent is how much something is.
type Extent struct {
	Rows     int64
	Files    int64
	Bytes    int64 // of the objects that hold the rows, whole ones
	From, To time.Time
}

// Nothing reports whether nothing goes.
func (x *Expiry) Nothing() bool { return x.Cut == nil && len(x.Payloads) == 0 }

// Expiries says what is due to go by policy now, in all lines, and was not
// ordered yet. Nothing is written. With offboard, which is a tenant, it says what
// goes when all of that tenant is to go, and nothing of others.
func (g *Governor) Expiries(ctx context.Context, offboard string) ([]*Expiry, error) {
	s, err := g.surveyAll(ctx)
	if err != nil {
		return nil, err
	}
	return g.expiries(ctx, s, offboard)
}

func (g *Governor) expiries(ctx context.Context, s *survey, offboard string) (all []*Expiry, err error) {
	for _, l := range s.lines {
		v := s.views[l]
		if v == nil || s.failed[l] != nil || l.Topic == g.Topic {
			continue // a line that cannot be read expires later; control logs stay
		}
		own, err := g.expiriesOf(ctx, s, l, v, offboard)
		if err != nil {
			return nil, fmt.Errorf("%s/%d: %w", l.Topic, l.Partition, err)
		}
		all = append(all, own...)
	}
	return all, nil
}

func (g *Governor) expiriesOf(ctx context.Context, s *survey, l archive.Line, v *view, offboard string) (all []*Expiry, err error) {
	files, err := g.filesOf(ctx, v.catalog)
	if err != nil {
		return nil, err
	}
	tenants := make([]string, 0, len(v.heads))
	for t := range v.heads {
		if offboard != "" && t != offboard || s.gov.Fault(t) != nil {
			continue
		}
		if offboard != "" || !emptyPolicy(g.Policies.For(t)) {
			tenants = append(tenants, t)
		}
	}
	slices.Sort(tenants)
	for _, t := range tenants {
		first, _ := slices.BinarySearchFunc(files, t, func(f archive.CatalogFile, t string) int { return cmp.Compare(f.Tenant, t) })
		last := first
		for last < len(files) && files[last].Tenant == t {
			last++
		}
		x, err := g.expiryOf(ctx, s, l, t, files[first:last], offboard != "")
		if err != nil {
			return nil, fmt.Errorf("tenant %q: %w", t, err)
		}
		if !x.Nothing() || len(x.Kept) > 0 || offboard != "" {
			all = append(all, x)
		}
	}
	return all, nil
}

func emptyPolicy(p retention.Policy) bool {
	return p.Rows.Forever() && p.Payload.Forever() && p.Prompts.Forever() && p.Rejects.Forever()
}

// expiryOf decides on one log. Only rows in data files expire: a file has the
// rows of one day, and its end is where a cut may be.
func (g *Governor) expiryOf(ctx context.Context, s *survey, l archive.Line, tenant string, files []archive.CatalogFile, offboard bool) (*Expiry, error) {
	t := s.gov.Tenant(tenant)
	in := retention.Input{Now: s.now, Policy: g.Policies.For(tenant), Begin: cutSoFar(s.views[l], t, l, tenant), FirstHeld: retention.NoHold, Offboard: offboard}
	for i := range files {
		day, err := time.Parse(archive.DayLayout, files[i].Day)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", files[i].Key, err)
		}
		if end := files[i].LastSeq + 1; end > in.Begin {
			in.Days = append(in.Days, retention.Day{Day: day, End: end})
		}
	}
	for o := range t.Orders() {
		if expires(o) && *o.Redaction.Target.Log == l && g.taken(s, o) != taken {
			e := &o.Redaction.Erasure
			in.Ordered = append(in.Ordered, retention.Expiry{All: e.All, Slots: e.Slots, User: e.User, Hard: e.Hard, SeqBefore: *o.Redaction.Target.Before})
		}
	}
	d := retention.Decide(in)
	if d.Cut > in.Begin && len(t.Holds()) > 0 {
		held, err := g.firstHeld(ctx, t.Holds(), files, in.Begin, d.Cut)
		if err != nil {
			return nil, err
		}
		in.FirstHeld = held
		d = retention.Decide(in)
	}
	return g.expiry(ctx, s, l, tenant, files, in.Begin, &d)
}

// cutSoFar returns where a log begins, or is ordered to begin.
func cutSoFar(v *view, t *control.Tenant, l archive.Line, tenant string) (at int64) {
	if v.catalog != nil {
		for i := range v.catalog.Cuts {
			if c := &v.catalog.Cuts[i]; c.Tenant == tenant {
				at = c.Size
			}
		}
	}
	for r := range t.Rows() {
		if r.Cut != nil && r.Cut.Log == l && !r.Refused {
			at = max(at, r.Cut.Size)
		}
	}
	return at
}

// expiry makes the documents of a decision.
func (g *Governor) expiry(ctx context.Context, s *survey, l archive.Line, tenant string, files []archive.CatalogFile, begin int64, d *retention.Decision) (*Expiry, error) {
	x := &Expiry{Line: l, Tenant: tenant, Kept: d.Kept}
	if end := endBelow(files, d.Cut); end != nil && end.LastSeq >= begin {
		cut, err := g.cutAt(ctx, l, end, d.Policy)
		if err != nil {
			return nil, err
		}
		x.Cut, x.Cutting = cut, extent(files, begin, cut.Size)
		if x.CutID, err = g.expiryID(tenant, l, end.Day, "cut", cut.Size); err != nil {
			return nil, err
		}
	}
	for i := range d.Expiries {
		e := &d.Expiries[i]
		last := fileOf(files, e.SeqBefore-1)
		if last == nil {
			continue
		}
		log, before := l, e.SeqBefore
		r := &control.Redaction{
			Target:  control.Target{Log: &log, Before: &before},
			Erasure: control.Erasure{All: e.All, Slots: e.Slots, User: e.User, Hard: e.Hard},
			Reason:  "retention: " + e.Policy, By: g.By,
		}
		p := Payload{Redaction: r, Of: extent(files, max(begin, d.Cut), e.SeqBefore)}
		var err error
		if p.ID, err = g.expiryID(tenant, l, last.Day, fmt.Sprintf("%+v", r.Erasure), e.SeqBefore); err != nil {
			return nil, err
		}
		if s.gov.Tenant(tenant).Row(p.ID, audit.KindRedaction) == nil { // one that was taken back stays so
			x.Payloads = append(x.Payloads, p)
		}
	}
	return x, nil
}

// endBelow returns the last file that ends at or below a size.
func endBelow(files []archive.CatalogFile, size int64) (end *archive.CatalogFile) {
	for i := range files {
		if files[i].LastSeq < size {
			end = &files[i]
		}
	}
	return end
}

// fileOf returns the file of a seq; nil where none has it.
func fileOf(files []archive.CatalogFile, seq int64) *archive.CatalogFile {
	for i := range files {
		if files[i].FirstSeq <= seq && seq <= files[i].LastSeq {
			return &files[i]
		}
	}
	return nil
}

func extent(files []archive.CatalogFile, from, to int64) (x Extent) {
	for i := range files {
		f := &files[i]
		n := min(f.LastSeq+1, to) - max(f.FirstSeq, from)
		if n <= 0 {
			continue
		}
		x.add(n, f)
	}
	return x
}

func (x *Extent) add(rows int64, f *archive.CatalogFile) {
	x.Rows, x.Files, x.Bytes = x.Rows+rows, x.Files+1, x.Bytes+f.Bytes
	day, err := time.Parse(archive.DayLayout, f.Day)
	if err != nil {
		return
	}
	x.span(day, day.AddDate(0, 0, 1))
}

func (x *Extent) span(from, to time.Time) {
	if x.From.IsZero() || from.Before(x.From) {
		x.From = from
	}
	if to.After(x.To) {
		x.To = to
	}
}

// cutAt returns the cut of a log behind a file.
func (g *Governor) cutAt(ctx context.Context, l archive.Line, f *archive.CatalogFile, policy string) (*control.Cut, error) {
	m, err := g.engine.dataMetadata(ctx, f)
	if err != nil {
		return nil, err
	}
	return &control.Cut{Log: l, Size: f.LastSeq + 1, Head: f.HeadOut, Frontier: m.FrontierOut, Policy: policy}, nil
}

// expiryID returns the record id of what expires: the same whoever finds it due.
//
//	the day of the last row that goes, and the first 80 bits of SHA256("ledgerlake.expiry.v1\n" T(archive) T(tenant) T(topic) T(topic id) T(partition) T(what) T(seq))
func (g *Governor) expiryID(tenant string, l archive.Line, day, what string, seq int64) (string, error) {
	at, err := time.Parse(archive.DayLayout, day)
	if err != nil {
		return "", err
	}
	b := []byte("ledgerlake.expiry.v1\n")
	for _, s := range []string{g.engine.Root.ArchiveID, tenant, l.Topic, l.TopicID} {
		b = chain.AppendString(b, s)
	}
	b = chain.AppendInt(b, int64(l.Partition))
	sum := sha256.Sum256(chain.AppendInt(chain.AppendString(b, what), seq))
	var id ulid.ULID
	if err := id.SetTime(ulid.Timestamp(at)); err != nil {
		return "", err
	}
	copy(id[6:], sum[:])
	return id.String(), nil
}

// firstHeld returns the seq of the first row from ≤ seq < to that a hold keeps,
// [retention.NoHold] where none does. A file is read unless its bloom filters say
// that it holds nothing of a user or session.
func (g *Governor) firstHeld(ctx context.Context, holds []*control.Row, files []archive.CatalogFile, from, to int64) (int64, error) {
	scopes := make([]*control.Scope, len(holds))
	for i, h := range holds {
		if scopes[i] = &h.Hold.Scope; scopes[i].Tenant {
			return from, nil
		}
	}
	for i := range files {
		f := &files[i]
		if f.LastSeq < from || f.FirstSeq >= to {
			continue
		}
		may, err := g.mayHold(ctx, f, scopes)
		if err != nil || !may {
			if err != nil {
				return 0, err
			}
			continue
		}
		seq, err := g.heldIn(ctx, f, scopes, from)
		if err != nil || seq != retention.NoHold {
			return seq, err
		}
	}
	return retention.NoHold, nil
}

// heldIn returns the seq of the first row of a file, from a seq on, that lies in a
// scope.
func (g *Governor) heldIn(ctx context.Context, f *archive.CatalogFile, scopes []*control.Scope, from int64) (int64, error) {
	body, err := g.engine.Archive.Get(ctx, f.Key)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", f.Key, err)
	}
	file, _, err := archive.OpenDataFile(body, f)
	if err != nil {
		return 0, err
	}
	for row, err := range file.Rows() {
		if err != nil {
			return 0, fmt.Errorf("%s: %w", f.Key, err)
		}
		if row.Seq.N >= from && slices.ContainsFunc(scopes, func(s *control.Scope) bool { return s.Holds(row) }) {
			return row.Seq.N, nil
		}
	}
	return retention.NoHold, nil
}

// mayHold reports whether a file may have rows in a scope.
func (g *Governor) mayHold(ctx context.Context, f *archive.CatalogFile, scopes []*control.Scope) (bool, error) {
	filters, err := g.engine.filters(ctx, f)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(scopes, func(s *control.Scope) bool {
		return s.Tenant || filters.mayMean(&control.Target{Session: s.Session, User: s.User})
	}), nil
}

// expiryRecords makes the records of what expires.
func (g *Governor) expiryRecords(s *survey, all []*Expiry) (records []audit.Message, err error) {
	add := func(tenant, id string, d control.Document) error {
		m, err := g.dated(tenant, id, d)
		records = append(records, m)
		return err
	}
	for _, x := range all {
		if x.Cut != nil && s.gov.Tenant(x.Tenant).Row(x.CutID, audit.KindRetentionCut) == nil {
			if err := add(x.Tenant, x.CutID, x.Cut); err != nil {
				return nil, err
			}
		}
		for _, p := range x.Payloads {
			if err := add(x.Tenant, p.ID, p.Redaction); err != nil {
				return nil, err
			}
		}
	}
	return records, nil
}

// dated makes the record of a document that says that it was made when its id
// does.
func (g *Governor) dated(tenant, id string, d control.Document) (audit.Message, error) {
	u, err := ulid.ParseStrict(id)
	if err != nil {
		return audit.Message{}, err
	}
	return g.record(tenant, id, ulid.Time(u.Time()), d)
}

// Offboarding is what goes when all of a tenant is to go: its rows, and what
// orders and holds in its control log say, which may name people. What is held, or
// kept by a floor, stays.
type Offboarding struct {
	Tenant   string
	Expiries []*Expiry
	Contexts []Payload // redactions of the contexts of control rows
	Waiting  []string  // ids of orders that are under way: they erase their own contexts
}

// Offboard says what goes when a tenant is offboarded now. Nothing is written.
func (g *Governor) Offboard(ctx context.Context, tenant string) (*Offboarding, error) {
	s, err := g.surveyAll(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.whole(tenant); err != nil {
		return nil, err
	}
	return g.offboard(ctx, s, tenant)
}

func (g *Governor) offboard(ctx context.Context, s *survey, tenant string) (o *Offboarding, err error) {
	if err := s.gov.Fault(tenant); err != nil {
		return nil, err
	}
	o = &Offboarding{Tenant: tenant}
	if o.Expiries, err = g.expiries(ctx, s, tenant); err != nil {
		return nil, err
	}
	for _, x := range o.Expiries {
		if err := g.toTheEnd(s, x); err != nil {
			return nil, err
		}
	}
	o.Expiries = slices.DeleteFunc(o.Expiries, func(x *Expiry) bool { return x.Nothing() && len(x.Kept) == 0 })
	t := s.gov.Tenant(tenant)
	rows := slices.Collect(t.Rows())
	slices.SortFunc(rows, func(a, b *control.Row) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID)) })
	for _, r := range rows {
		if err := g.context(s, t, r, o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// toTheEnd lets a cut of all that is compacted be one of all that is anchored,
// where nothing is kept, and no floor could keep what was not looked at.
func (g *Governor) toTheEnd(s *survey, x *Expiry) error {
	h := s.views[x.Line].heads[x.Tenant]
	if len(x.Kept) > 0 || len(g.Policies.For(x.Tenant).Profiles) > 0 || len(s.gov.Tenant(x.Tenant).Holds()) > 0 || x.Cut != nil && x.Cut.Size >= h.Size {
		return nil
	}
	if begin := cutSoFar(s.views[x.Line], s.gov.Tenant(x.Tenant), x.Line, x.Tenant); begin >= h.Size {
		return nil
	}
	more := h.Size
	if x.Cut != nil {
		more -= x.Cut.Size
	}
	x.Cut = &control.Cut{Log: x.Line, Size: h.Size, Head: h.Head, Frontier: h.Frontier, Policy: "offboarding"}
	x.Cutting.Rows += more
	var err error
	x.CutID, err = g.expiryID(x.Tenant, x.Line, s.now.Format(archive.DayLayout), "cut", h.Size)
	return err
}

// context takes in one control row: the context of a redaction or hold that is
// over is to be erased. Orders of just that name nobody, and stay.
func (g *Governor) context(s *survey, t *control.Tenant, r *control.Row, o *Offboarding) error {
	if r.Gone || r.Kind != audit.KindRedaction && r.Kind != audit.KindLegalHold {
		return nil
	}
	if order := t.Order(r.ID); r.Kind == audit.KindRedaction && order != nil && order.Redaction != nil {
		if governs(t, order) || expires(order) {
			return nil
		}
		if counts(r) && g.taken(s, order) != taken {
			o.Waiting = append(o.Waiting, r.ID)
			return nil
		}
	}
	for other := range t.Orders() {
		if other.Redaction != nil && governs(t, other) && strings.EqualFold(*other.Redaction.Target.Record, r.ID) {
			return nil // ordered before
		}
	}
	id := r.ID
	red := &control.Redaction{
		Target: control.Target{Record: &id}, Erasure: control.Erasure{Slots: chain.SlotSetOf(audit.SlotContext)}, Reason: "offboarding", By: g.By,
	}
	b := chain.AppendString(chain.AppendString([]byte("ledgerlake.offboarding.v1\n"), g.engine.Root.ArchiveID), r.ID)
	sum := sha256.Sum256(b)
	var own ulid.ULID
	if err := own.SetTime(ulid.Timestamp(time.UnixMicro(r.ArchivedAt))); err != nil {
		return err
	}
	copy(own[6:], sum[:])
	o.Contexts = append(o.Contexts, Payload{ID: own.String(), Redaction: red, Of: Extent{Rows: 1}})
	return nil
}

// Reason puts a reason into what is ordered.
func (o *Offboarding) Reason(text string) {
	for i := range o.Contexts {
		o.Contexts[i].Redaction.Reason = "offboarding: " + text
	}
	for _, x := range o.Expiries {
		if x.Cut != nil {
			x.Cut.Policy = "offboarding: " + text
		}
	}
}
