package control

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A Governance is what all control logs of an archive order and say was done, by
// tenant. Rows are added in the order of their logs, then it is sealed, and does
// not change any more: it may then be used by several goroutines. Methods may be
// called on a nil Governance and a nil [Tenant]: nothing is ordered.
type Governance struct {
	tenants map[string]*Tenant
	deleted map[string]Deletion
	kept    map[[2]string]bool // order and key of objects that could not go, as receipts say
	faults  map[string]error   // by tenant
	sealed  bool
}

// A Tenant is what governs one tenant's rows.
type Tenant struct {
	orders   map[string]*Order
	rows     map[string][]*Row // of all kinds, by id
	cuts     map[archive.Line][]*Row
	holds    map[string]*Row // the newest that counts, by scope
	cancels  []*Row
	receipts []*Row
	named    map[archive.Line]*namedRows
	gates    Index // of redactions that were not taken back
}

// An Order is a redaction, and what became of it.
type Order struct {
	*Row           // Redaction is nil where its context is gone, or says nothing
	Cancelled bool // by a cancellation that counts
	Rounds    []*Round
	Receipted int64 // archived_at of the newest part of a round that counts, microseconds; 0: none
}

// A Round is one receipt, all of whose parts are there.
type Round struct {
	Number   int    // of [ReceiptID]; -1 where the ids are somebody else's
	Parts    []*Row // in the order of their numbers
	Anchored bool   // anchors cover all of them: it counts
}

// A Deletion is what a receipt says of an object.
type Deletion struct {
	Order    string   // id of the redaction
	Versions []string // those that were removed
}

// New returns a Governance without rows.
func New() *Governance {
	return &Governance{tenants: map[string]*Tenant{}, deleted: map[string]Deletion{}, kept: map[[2]string]bool{}, faults: map[string]error{}}
}

// Tenant returns what governs a tenant; nil where nothing does.
func (g *Governance) Tenant(id string) *Tenant {
	if g == nil {
		return nil
	}
	return g.tenants[id]
}

// Tenants returns the tenants that something governs, or of which that cannot be
// told ([Governance.Fault]), in the order of their ids.
func (g *Governance) Tenants() []string {
	if g == nil {
		return nil
	}
	all := slices.AppendSeq(slices.Collect(maps.Keys(g.tenants)), maps.Keys(g.faults))
	slices.Sort(all)
	return slices.Compact(all)
}

// Sealed reports whether all rows are in. It may be called on nil.
func (g *Governance) Sealed() bool { return g != nil && g.sealed }

// Add takes in a control row, in the order of its log. Whether it is anchored
// may still be found out, until [Governance.Seal].
func (g *Governance) Add(r *Row) {
	t := g.tenants[r.Tenant]
	if t == nil {
		t = &Tenant{
			orders: map[string]*Order{}, rows: map[string][]*Row{}, cuts: map[archive.Line][]*Row{}, holds: map[string]*Row{},
			named: map[archive.Line]*namedRows{},
		}
		g.tenants[r.Tenant] = t
	}
	t.rows[r.ID] = append(t.rows[r.ID], r)
	switch {
	case r.Refused:
	case r.Kind == audit.KindRedaction && (t.orders[r.ID] == nil || t.orders[r.ID].Gone):
		if old := t.orders[r.ID]; old != nil { // a repeat means no more than the first did
			r.reach = cmp.Or(old.reach, old.ArchivedAt)
		}
		t.orders[r.ID] = &Order{Row: r}
	case r.Cancel != nil:
		t.cancels = append(t.cancels, r)
	case r.Receipt != nil:
		t.receipts = append(t.receipts, r)
	case r.Cut != nil:
		t.cuts[r.Cut.Log] = append(t.cuts[r.Cut.Log], r)
	}
}

// Seal works out which orders are taken back, which receipts count and what they
// name, and which holds are in force.
func (g *Governance) Seal() {
	for _, t := range g.tenants {
		for _, c := range t.cancels {
			if o := t.orders[c.Cancel.RedactionID]; o != nil && c.Anchored {
				o.Cancelled = true
			}
		}
		for _, r := range rounds(t.receipts) {
			g.count(t, r)
		}
		for _, n := range t.named {
			n.seal()
		}
		for _, o := range slices.SortedFunc(t.Orders(), func(a, b *Order) int { return inOrder(a.Row, b.Row) }) {
			if !o.Cancelled {
				t.gates.Add(o.Row)
			}
		}
		t.sealHolds()
	}
	g.sealed = true
}

// count takes in a receipt that is whole.
func (g *Governance) count(t *Tenant, r *Round) {
	if o := t.orders[r.order()]; o != nil {
		o.Rounds = append(o.Rounds, r)
		if r.Anchored {
			o.Receipted = max(o.Receipted, r.at())
		}
	}
	for _, p := range r.Parts {
		t.name(p.Receipt, r)
		if !r.Anchored {
			continue
		}
		for _, d := range p.Receipt.Deleted {
			all := g.deleted[d.Key].Versions
			g.deleted[d.Key] = Deletion{p.Receipt.RedactionID, append(all, d.Versions...)}
		}
		for _, text := range p.Receipt.OutOfReach {
			if key, why, ok := strings.Cut(text, " "); ok && why != "" {
				g.kept[[2]string{p.Receipt.RedactionID, key}] = true
			}
		}
	}
}

func (t *Tenant) name(p *Receipt, r *Round) {
	for _, e := range p.Erased {
		n := t.named[e.Log]
		if n == nil {
			n = &namedRows{}
			t.named[e.Log] = n
		}
		for _, s := range e.Ranges {
			n.list = append(n.list, Named{s[0], s[1], p.RedactionID, p.Erasure, r.Anchored, r.at()})
		}
	}
}

// sealHolds finds the newest row that counts of each scope. Of rows of one id only
// the first counts: a record that is sent again later, by whoever has its bytes
// and its signature, lifts no hold that was set meanwhile.
func (t *Tenant) sealHolds() {
	for _, rows := range t.rows {
		var first *Row
		for _, r := range rows {
			if r.Kind == audit.KindLegalHold && r.Anchored && (first == nil || inOrder(r, first) < 0) {
				first = r
			}
		}
		if first == nil || first.Hold == nil {
			continue
		}
		key := first.Hold.Scope.key()
		if old := t.holds[key]; old == nil || inOrder(old, first) < 0 {
			t.holds[key] = first
		}
	}
}

// Deleted returns the keys of objects that receipts call deleted, and what they
// say of each.
func (g *Governance) Deleted() map[string]Deletion {
	if g == nil {
		return nil
	}
	return g.deleted
}

// Kept reports whether a receipt of an order says of an object that it could not
// go: a text of its outOfReach begins with the key, and says why.
func (g *Governance) Kept(order, key string) bool {
	return g != nil && g.kept[[2]string{order, key}]
}

// Order returns the redaction of an id; nil if there is none.
func (t *Tenant) Order(id string) *Order {
	if t == nil {
		return nil
	}
	return t.orders[strings.ToUpper(id)]
}

// Orders yields the tenant's redactions, those that do not count too, in no
// order.
func (t *Tenant) Orders() iter.Seq[*Order] {
	if t == nil {
		return func(func(*Order) bool) {}
	}
	return maps.Values(t.orders)
}

// Rows yields the tenant's control rows of all kinds, in no order.
func (t *Tenant) Rows() iter.Seq[*Row] {
	return func(yield func(*Row) bool) {
		if t == nil {
			return
		}
		for _, rows := range t.rows {
			for _, r := range rows {
				if !yield(r) {
					return
				}
			}
		}
	}
}

// Holds returns the holds that are in force: of each scope the newest row that
// counts, where it sets one. They come as they were archived.
func (t *Tenant) Holds() (all []*Row) {
	if t == nil {
		return nil
	}
	for _, r := range t.holds {
		if r.Hold.Set {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, inOrder)
	return all
}

// inOrder compares rows of one tenant: by time, as the control topic may have
// been made anew, and in a log by seq.
func inOrder(a, b *Row) int {
	return cmp.Or(cmp.Compare(a.ArchivedAt, b.ArchivedAt), cmp.Compare(a.Seq, b.Seq))
}

// Cut returns the cut of a log at a size, one that counts before others; nil if
// there is none.
func (t *Tenant) Cut(log archive.Line, size int64) (found *Row) {
	if t == nil {
		return nil
	}
	for _, c := range t.cuts[log] {
		if c.Cut.Size == size && (found == nil || c.Anchored && !found.Anchored) {
			found = c
		}
	}
	return found
}

// LastCut returns the cut of a log that counts and drops the most; nil if there
// is none.
func (t *Tenant) LastCut(log archive.Line) (found *Row) {
	if t == nil {
		return nil
	}
	for _, c := range t.cuts[log] {
		if c.Anchored && (found == nil || c.Cut.Size > found.Cut.Size) {
			found = c
		}
	}
	return found
}

// CutLogs returns the lines in which the tenant's log was ordered to be cut.
func (t *Tenant) CutLogs() []archive.Line {
	if t == nil {
		return nil
	}
	return slices.Collect(maps.Keys(t.cuts))
}

// Row returns the tenant's control row of an id and a kind, one that counts
// before others; nil if there is none.
func (t *Tenant) Row(id, kind string) (found *Row) {
	if t == nil {
		return nil
	}
	for _, c := range t.rows[strings.ToUpper(id)] {
		if c.Kind == kind && (found == nil || c.Anchored && !found.Anchored) {
			found = c
		}
	}
	return found
}

// Outstanding returns how many redactions that count have no receipt that does,
// though they were archived longer than within before the newest anchor.
func (g *Governance) Outstanding(newest time.Time, within time.Duration) (n int64) {
	if g == nil || newest.IsZero() {
		return 0
	}
	for _, t := range g.tenants {
		for _, o := range t.orders {
			if o.Anchored && !o.Cancelled && o.Receipted == 0 && o.ArchivedAt < newest.Add(-within).UnixMicro() {
				n++
			}
		}
	}
	return n
}

// Gating returns the redactions for which a reader must hide something of a row:
// those that reach it and were not taken back, whether or not an anchor covers
// them yet.
func (g *Governance) Gating(row *chain.Row) []*Row {
	t := g.Tenant(row.TenantID.S)
	if t == nil {
		return nil
	}
	return t.gates.Reaching(nil, row)
}

// Gate returns what a reader must hide of a row, by [Governance.Gating]. It
// reports false where that is nothing.
func (g *Governance) Gate(row *chain.Row) (e Erasure, hides bool) {
	for _, r := range g.Gating(row) {
		e = e.Union(r.Redaction.Erasure)
	}
	return e, !e.IsZero()
}

// Hides reports whether the order may still hide something of a row: it says what
// to erase, and was not taken back. A policy's expiry is over with its receipt, for
// all rows that it means were there when it was ordered.
func (o *Order) Hides() bool {
	return !o.Cancelled && o.Redaction != nil && (o.Receipted == 0 || o.Redaction.Target.Before == nil)
}
