package proof

import (
	"fmt"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
)

// A standing is what an erased row is worth.
type standing int

const (
	receipted  standing = iota // receipts say that it went, or nothing went
	unreceived                 // an order allows it, and no receipt says so yet
	disordered                 // a fault
)

// judgeErasure holds what is left of a row against orders and receipts. names
// are the receipts that name the row; awaits says of a redaction whether the
// catalog lists the row for its next receipt. The text says what is wrong.
func judgeErasure(t *control.Tenant, row *chain.Row, state chain.State, names []control.Named, awaits func(id string) bool) (standing, string) {
	var got control.Erasure
	id := ""
	if state != chain.Live {
		id = strings.ToUpper(row.RedactionID.S)
	}
	ordered := false
	for i := range names {
		n := &names[i]
		if !n.Anchored {
			continue
		}
		if what := n.Left(row, state); what != "" {
			return disordered, fmt.Sprintf("the receipt of redaction %s says that it was erased, and %s is still there", n.Order, what)
		}
		got = got.Union(n.Erasure)
		ordered = ordered || n.Order == id
	}
	if state == chain.Live {
		return receipted, ""
	}
	went, err := chain.ParseSentinel(row.Redaction.S)
	if err != nil {
		return receipted, "" // named as a fault of its state
	}
	if ordered && got.Covers(&went) {
		return receipted, ""
	}
	return allowed(t, row, state, names, awaits, &went, got, ordered)
}

// allowed says whether orders allow what no receipt says yet.
func allowed(t *control.Tenant, row *chain.Row, state chain.State, names []control.Named, awaits func(id string) bool, went *chain.Sentinel, got control.Erasure, ordered bool) (standing, string) {
	id := strings.ToUpper(went.ID)
	for i := range names {
		if n := &names[i]; !n.Anchored {
			got = got.Union(n.Erasure)
			ordered = ordered || n.Order == id
		}
	}
	if t == nil {
		return disordered, fmt.Sprintf("the row was erased by order of redaction %s, which no control row gives", id)
	}
	// The order that the row names first: it is nearly always the only one.
	if o := t.Order(id); o != nil && allows(o, row, state, awaits) {
		got, ordered = got.Union(o.Redaction.Erasure), true
	}
	if !got.Covers(went) {
		for o := range t.Orders() {
			if allows(o, row, state, awaits) {
				got = got.Union(o.Redaction.Erasure)
			}
		}
	}
	switch {
	case ordered && got.Covers(went), closing(t, row, id, went):
		return unreceived, ""
	case t.Order(id) == nil:
		return disordered, fmt.Sprintf("the row was erased by order of redaction %s, which no control row gives", id)
	}
	return disordered, fmt.Sprintf("what went from the row is covered by no receipt, and not by what redaction %s and others that are open order of it", id)
}

// allows reports whether an order means the row, and has no receipt yet that
// should have named it. One that came late, while the receipt was on its way, is
// for the next one, as the catalog says.
func allows(o *control.Order, row *chain.Row, state chain.State, awaits func(id string) bool) bool {
	return o.Redaction != nil && o.Tenant == row.TenantID.S && (o.Receipted <= row.ArchivedAt.N || awaits(o.ID)) && o.Redaction.Target.Fits(row, state == chain.HardErased)
}

// closing reports whether the row is a redaction whose own context went after
// its receipt, which the last receipt is to say.
func closing(t *control.Tenant, row *chain.Row, id string, went *chain.Sentinel) bool {
	o := t.Order(id)
	return row.Kind.S == audit.KindRedaction && strings.EqualFold(row.RecordID.S, id) && o != nil && o.Receipted > 0 && !went.User && !went.Hard
}

// Erasures counts rows of which something went.
type Erasures struct {
	Erased       int64 `json:"erased"`       // all content, hard-erased ones among them
	HardErased   int64 `json:"hardErased"`   // their header too: only row_hash, prev_hash and seq are proved
	PartlyErased int64 `json:"partlyErased"` // some slots, or user_id
	Unreceipted  int64 `json:"unreceipted"`  // ordered, and no receipt says so yet
	Cut          int64 `json:"cut"`          // rows that were dropped by a retention-cut
}

func (e *Erasures) count(s chain.State) {
	switch s {
	case chain.PartlyErased:
		e.PartlyErased++
	case chain.HardErased:
		e.HardErased++
		e.Erased++
	case chain.Erased:
		e.Erased++
	}
}

func (e *Erasures) add(o Erasures) {
	e.Erased += o.Erased
	e.HardErased += o.HardErased
	e.PartlyErased += o.PartlyErased
	e.Unreceipted += o.Unreceipted
	e.Cut += o.Cut
}

// openOrders says what was ordered, or done, and is not receipted yet.
func (v *verifier) openOrders(r *Report) []string {
	var all reasons
	var cuts, lingering, locked int64
	var newest time.Time
	var left, held []string
	for _, l := range r.Lines {
		cuts += l.openCuts
		lingering += l.lingering.total
		left = append(left, l.lingering.list...)
		locked += l.locked.total
		held = append(held, l.locked.list...)
		if l.newest.After(newest) {
			newest = l.newest
		}
	}
	open := v.governs.Outstanding(newest, v.o.ErasureWithin)
	all.addIf(r.Totals.Unreceipted > 0, "erasure: of %s something was erased by an order that has no receipt yet", Count(r.Totals.Unreceipted, "row"))
	all.addIf(open > 0, "erasure: %s without a receipt for more than %d days", Count(open, "redaction"), int64(v.o.ErasureWithin/(24*time.Hour)))
	all.addIf(lingering > 0, "erasure: %s that nothing lists, as a process leaves it that slept, with rows that a receipt calls erased: compact sweeps it (%s)", Count(lingering, "object"), some(left))
	all.addIf(locked > 0, "erasure: %s with rows that a receipt calls erased could not be deleted, as the receipt says: the store keeps it (%s)", Count(locked, "object"), some(held))
	all.addIf(cuts > 0, "cut: %s begin behind a retention-cut that no anchor covers yet", Count(cuts, "log"))
	return all
}

// compacted says what went by compaction, which changes nothing.
func (r *Report) compacted() []string {
	var all reasons
	for _, l := range r.Lines {
		for i := range l.Logs {
			if log := &l.Logs[i]; log.FirstSeq > 0 && l.Watermark != nil && len(all) < DefaultFaults {
				all.addIf(true, "%s starts after a cut at %d", name(log.Tenant), log.FirstSeq)
			}
		}
	}
	t := &r.Totals
	all.addIf(t.Erased > t.HardErased, "%s erased, of which commitments and hashes are left", Count(t.Erased-t.HardErased, "row"))
	all.addIf(t.HardErased > 0, "%s hard-erased: of these only row_hash, prev_hash and seq are proved", Count(t.HardErased, "row"))
	all.addIf(t.PartlyErased > 0, "%s erased in part", Count(t.PartlyErased, "row"))
	all.addIf(r.versionsLeft, "whether old versions of deleted objects are there was not looked at: this store has none to list, or lets these credentials list none")
	return all
}
