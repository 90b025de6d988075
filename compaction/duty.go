package compaction

import (
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
)

// Duties are what governs one line in one pass. All rows in them are archived
// and anchored, and signed where control keys are in force. The zero Duties are
// none.
type Duties struct {
	Orders []Duty
	Cuts   map[string]*control.Row // by tenant: the newest cut of its log on this line
	Holds  []*control.Row          // in force
	// Seen are all rows of holds that were read, also of those that are lifted. A
	// hold that the catalog lists and that is none of them is one that whoever made
	// the duties has not heard of yet: nothing is done then.
	Seen []*control.Row
	// Frozen are tenants of whom not all that governs them could be read: what the
	// catalog says of them stays as it is, and nothing of theirs is erased or cut.
	Frozen map[string]bool
}

// A Duty is one redaction, as it stands.
type Duty struct {
	Row *control.Row // with its Redaction, but where Closing or Closed is set
	// Due says that it may be carried out; DueAt since when, by the store's
	// clock. A line is purged once all is compacted that was archived before.
	Due   bool
	DueAt time.Time
	// Receipts are the rows of this line that complete, anchored receipts of the
	// order name: first and last seq, both in it.
	Receipts [][2]int64
	// Receipted says that there is such a receipt of what the line has called
	// gone, though it may name no row of it.
	Receipted bool
	// Late says that the time for late rows is over, and the order not closed yet:
	// what is anchored is compacted at once, for some of it may have come in time.
	Late bool
	// Closing says that the order's own context, on the control line, is to be
	// erased as well.
	Closing bool
	// Closed says that nothing is left to do: its entry in the catalog goes.
	Closed bool
}

// reaches reports whether the order is one for a line at all: one that names a
// place is for that line alone, and for the one where its own row is to go.
func (d *Duty) reaches(l archive.Line) bool {
	o := d.Row.Redaction
	return o == nil || d.Closing || o.Target.Log == nil || *o.Target.Log == l
}

// isOwn reports whether a row is the order's own.
func (d *Duty) isOwn(row *chain.Row) bool {
	return row.Kind.S == audit.KindRedaction && row.TenantID.S == d.Row.Tenant && strings.EqualFold(row.RecordID.S, d.Row.ID)
}

// stale returns a hold that the catalog lists and that the duties know nothing of,
// nil if there is none.
func (d *Duties) stale(base *archive.CatalogVersion) *archive.CatalogHold {
	if base == nil || len(base.Holds) == 0 {
		return nil
	}
	seen := map[archive.CatalogHold]bool{}
	for _, r := range slices.Concat(d.Holds, d.Seen) {
		seen[archive.CatalogHold{Tenant: r.Tenant, ID: r.ID}] = true
	}
	for i := range base.Holds {
		if h := &base.Holds[i]; !seen[*h] && !d.Frozen[h.Tenant] {
			return h
		}
	}
	return nil
}

// holds returns the holds of a tenant.
func (d *Duties) holds(tenant string) (all []*control.Hold) {
	for _, r := range d.Holds {
		if r.Tenant == tenant && r.Hold != nil {
			all = append(all, r.Hold)
		}
	}
	return all
}

// heldBy names the holds of a tenant.
func (d *Duties) heldBy(tenant string) string {
	var ids []string
	for _, r := range d.Holds {
		if r.Tenant == tenant {
			ids = append(ids, r.ID)
		}
	}
	slices.Sort(ids)
	return strings.Join(ids, " ")
}

func held(holds []*control.Hold, row *chain.Row) bool {
	return slices.ContainsFunc(holds, func(h *control.Hold) bool { return h.Scope.Holds(row) })
}

// cut returns the cut of a tenant's log on a line, nil where there is none.
func (d *Duties) cut(l archive.Line, tenant string) *control.Row {
	if r := d.Cuts[tenant]; r != nil && r.Cut != nil && r.Cut.Log == l && !d.Frozen[tenant] {
		return r
	}
	return nil
}

// without returns ranges but for what others name. Ranges are in order and apart.
func without(ranges, others [][2]int64) (left [][2]int64) {
	for _, r := range ranges {
		left = append(left, minus(r, others)...)
	}
	return left
}

func minus(r [2]int64, others [][2]int64) (left [][2]int64) {
	others = slices.Clone(others)
	slices.SortFunc(others, func(a, b [2]int64) int { return int(min(max(a[0]-b[0], -1), 1)) })
	for _, o := range others {
		if o[1] < r[0] || o[0] > r[1] {
			continue
		}
		if o[0] > r[0] {
			left = append(left, [2]int64{r[0], o[0] - 1})
		}
		if o[1] >= r[1] {
			return left
		}
		r[0] = o[1] + 1
	}
	return append(left, r)
}

// union returns ranges with those of others, in order and apart.
func union(ranges, others [][2]int64) (all [][2]int64) {
	both := slices.Concat(ranges, others)
	slices.SortFunc(both, func(a, b [2]int64) int { return int(min(max(a[0]-b[0], -1), 1)) })
	for _, r := range both {
		if n := len(all); n > 0 && r[0]-1 <= all[n-1][1] {
			all[n-1][1] = max(all[n-1][1], r[1])
			continue
		}
		all = append(all, r)
	}
	return all
}
