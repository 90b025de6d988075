package compaction

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/redact"
)

// entries are what the next version of the catalog says of orders.
type entries struct {
	all     []*entry
	tenants map[string]*tenant
	changed bool // the list itself: entries came or went
}

// An entry is what it says of one.
type entry struct {
	archive.CatalogRedaction
	duty   *Duty // nil: nobody said anything of it in this pass
	open   bool  // it has to look through the files
	unread bool  // and not all of them could be looked through in this pass
	held   bool  // a hold keeps rows that it means
	// heldHere is held of the file at hand.
	heldHere bool
	found    [][2]int64
	sources  map[string]bool // keys of objects that held the rows
	changed  bool
}

// newEntries takes what the base says, and what is due by the duties.
func newEntries(s *Sight, d *Duties) *entries {
	es := &entries{tenants: map[string]*tenant{}}
	known := map[[2]string]*entry{}
	if s.Base != nil {
		for _, r := range s.Base.Redactions {
			e := &entry{CatalogRedaction: r, sources: map[string]bool{}}
			es.all, known[[2]string{r.Tenant, r.ID}] = append(es.all, e), e
		}
	}
	for i := range d.Orders {
		duty := &d.Orders[i]
		if d.Frozen[duty.Row.Tenant] {
			continue
		}
		name := [2]string{duty.Row.Tenant, duty.Row.ID}
		e := known[name]
		switch {
		case duty.Closed && e != nil:
			es.drop(e)
			continue
		case duty.Closed || !duty.reaches(s.Line) || !s.Tenants[duty.Row.Tenant]:
			continue
		case e == nil:
			e = &entry{CatalogRedaction: archive.CatalogRedaction{Tenant: name[0], ID: name[1], State: archive.RedactionGated}, sources: map[string]bool{}}
			es.all, es.changed, known[name] = append(es.all, e), true, e
		}
		e.duty = duty
		e.open = duty.open(&e.CatalogRedaction)
		e.receipted()
	}
	es.withdraw(d)
	es.byTenant(d)
	return es
}

// drop takes an entry off the list.
func (es *entries) drop(e *entry) {
	es.all = slices.DeleteFunc(es.all, func(other *entry) bool { return other == e })
	es.changed = true
}

// withdraw drops entries of orders that nobody speaks of any more, as long as
// nothing was erased by them: they were cancelled, or refused.
func (es *entries) withdraw(d *Duties) {
	for _, e := range slices.Clone(es.all) {
		if e.duty == nil && e.State == archive.RedactionGated && len(e.Erased) == 0 && !d.Frozen[e.Tenant] {
			es.drop(e)
		}
	}
}

// receipted takes what receipts name off the list of what the next one has to.
func (e *entry) receipted() {
	if left := without(e.Erased, e.duty.Receipts); len(left) < len(e.Erased) || len(left) > 0 && left[0] != e.Erased[0] {
		e.Erased, e.changed = left, true
	}
	if e.State == archive.RedactionGone && e.duty.Receipted && len(e.Erased) == 0 && !e.open {
		e.State, e.changed = archive.RedactionReceipted, true
		e.Deleted, e.Kept = nil, nil
	}
}

// A tenant is what governs the rows of one log of the line.
type tenant struct {
	entries []*entry
	index   control.Index // of orders that are due
	of      map[*control.Row]*entry
	closing []*entry // whose own rows are to be erased as well
	users   bool     // an order or a hold is about a user
	holds   []*control.Hold
	heldBy  string   // names the holds
	hit     []*entry // by which the row at hand was erased
	reach   []*control.Row
}

func (es *entries) byTenant(d *Duties) {
	for _, e := range es.all {
		if e.duty == nil || !e.duty.Due && !e.duty.Closing {
			continue
		}
		t := es.tenants[e.Tenant]
		if t == nil {
			t = newTenant(d.holds(e.Tenant))
			t.heldBy = d.heldBy(e.Tenant)
			es.tenants[e.Tenant] = t
		}
		t.add(e)
	}
}

func newTenant(holds []*control.Hold) *tenant {
	users := slices.ContainsFunc(holds, func(h *control.Hold) bool { return h.Scope.User != nil })
	return &tenant{of: map[*control.Row]*entry{}, holds: holds, users: users}
}

func (t *tenant) add(e *entry) {
	t.entries = append(t.entries, e)
	row := e.duty.Row
	if e.duty.Closing {
		t.closing = append(t.closing, e)
	}
	if e.duty.Due && row.Redaction != nil {
		t.of[row] = e
		t.index.Add(row)
		t.users = t.users || row.Redaction.Target.User != nil
	}
}

// tenant returns what governs the rows of a tenant; nil where nothing does.
func (p *pass) tenant(name string) *tenant { return p.entries.tenants[name] }

// A takes is what one order takes from a row.
type takes struct {
	*entry
	chain.Sentinel
}

// takes returns what orders take from a row. What a hold keeps is noted.
func (t *tenant) takes(row *chain.Row) (all []takes) {
	t.reach = t.index.Reaching(t.reach[:0], row)
	for _, r := range t.reach {
		e := t.of[r]
		all = append(all, takes{e, r.Redaction.Sentinel(r.ID)})
	}
	for _, e := range t.closing {
		if e.duty.isOwn(row) {
			all = append(all, takes{e, chain.Sentinel{ID: e.ID, Slots: chain.SlotSetOf(audit.SlotContext)}})
		}
	}
	if len(all) > 0 && (held(t.holds, row) || t.inForce(row)) {
		for _, e := range all {
			e.held, e.heldHere = true, true
		}
		return nil
	}
	return all
}

// still returns what says whether a row, as it is now, has something that a
// sentinel takes.
func still(row *chain.Row) func(chain.Sentinel) bool {
	before, err := chain.ParseSentinel(row.Redaction.S)
	whole := row.RowSalt.Valid || err != nil
	return func(s chain.Sentinel) bool { return whole || before.Union(s) != before }
}

// inForce reports whether a row is that of a hold in force: without its context it
// would hold nothing.
func (t *tenant) inForce(row *chain.Row) bool {
	return row.Kind.S == audit.KindLegalHold && row.RecordID.S != "" && strings.Contains(t.heldBy, strings.ToUpper(row.RecordID.S))
}

// erase takes from a row what orders take, and reports whether it changed. A row
// that was erased before is one that the order's receipt has to name all the same.
func (t *tenant) erase(hashers *chain.Hashers, c *checker, row *chain.Row) (changed bool, err error) {
	if t == nil {
		return false, nil
	}
	t.hit = t.hit[:0]
	has := still(row)
	for _, e := range t.takes(row) {
		hasher, err := hashers.For(c.state.scheme, c.log)
		if errors.Is(err, chain.ErrNoKey) {
			hasher, err = hashers.For(chain.SchemeV1, chain.Log{}) // what is left needs no key
		}
		if err != nil {
			return false, err
		}
		did, err := redact.Erase(hasher, row, e.Sentinel)
		if err != nil {
			return false, err
		}
		changed = changed || did
		if has(e.Sentinel) {
			t.hit = append(t.hit, e.entry)
		}
		e.name(row.Seq.N)
	}
	return changed, nil
}

// would is erase of a row of which only the columns were read that say whether it
// is meant and what went before. It reports whether something would go.
func (t *tenant) would(row *chain.Row) (some bool) {
	has := still(row)
	for _, e := range t.takes(row) {
		e.name(row.Seq.N)
		some = some || has(e.Sentinel)
	}
	return some
}

// lookColumns are what would reads; of users the bytes of rejected rows as well.
func (t *tenant) lookColumns() []string {
	columns := slices.Concat(audit.CoordinateColumns, []string{
		"topic", "topic_id", "partition", "seq", "kafka_offset", "kafka_timestamp", "archived_at", "created_at", "user_id", "row_salt", "redaction",
	})
	if t.users {
		columns = append(columns, "raw", "context")
	}
	return columns
}

// name notes a row that the order means. They come in the order of their log, in
// each file.
func (e *entry) name(seq int64) {
	if n := len(e.found); n > 0 && e.found[n-1][1]+1 == seq {
		e.found[n-1][1] = seq
		return
	}
	e.found = append(e.found, [2]int64{seq, seq})
}

// source notes the object that held the row at hand.
func (t *tenant) source(key string) {
	for _, e := range t.hit {
		if key != "" {
			e.sources[key] = true
		}
	}
}

// marks says what the next version says of orders, given which version that is,
// and reports whether it says anything else than the base.
func (p *pass) marks(version int64) error {
	for _, e := range p.entries.all {
		if err := p.mark(e, version); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) mark(e *entry, version int64) error {
	if e.duty == nil {
		return nil
	}
	found := without(union(nil, e.found), e.duty.Receipts)
	late := e.State != archive.RedactionGated && len(without(found, e.Erased)) > 0
	if len(without(found, e.Erased)) > 0 {
		e.Erased, e.changed = union(e.Erased, found), true
	}
	if err := p.sources(e); err != nil {
		return err
	}
	whole, err := p.whole(e)
	switch {
	case err != nil:
		return err
	case e.held && (e.State != archive.RedactionGated || !slices.Equal(e.Kept, heldText)):
		e.State, e.Since, e.Kept, e.changed = archive.RedactionGated, 0, heldText, true
	case e.held:
	case late, e.State == archive.RedactionGated && (e.open && whole || e.duty.Row.Gone):
		e.State, e.Since, e.Kept, e.changed = archive.RedactionPurged, version, nil, true
	}
	return nil
}

// heldText is what an entry says while rows that the order means are held: it
// then waits, and looks for them again in each pass.
var heldText = []string{"a legal hold keeps rows that it means"}

// whole reports whether an order was carried out in all that was archived before
// it was due: in data files, and in segments, none of which waits any more.
func (p *pass) whole(e *entry) (bool, error) {
	if !e.open || e.unread || e.held || p.watermark <= p.s.anchored() || p.s.behind {
		return false, nil
	}
	if a := p.s.Newest; a != nil && !a.Time.Before(e.duty.DueAt) {
		return true, nil
	}
	if p.s.StoreNow.Before(e.duty.DueAt) {
		return false, nil
	}
	return p.nothingAbove()
}

// nothingAbove reports whether there is no segment that no anchor covers. It asks
// once, and not before all else was read.
func (p *pass) nothingAbove() (bool, error) {
	if p.above == nil {
		above, err := archive.ListSegments(p.ctx, p.e.Archive, p.l, p.s.anchored()+1)
		if err != nil && !errors.Is(err, archive.ErrBreaks) { // a hole is for ingest to find out
			return false, err
		}
		some := err != nil || len(above) > 0
		p.above = &some
	}
	return !*p.above, nil
}

// sources lists the objects that held rows from which something was taken now,
// with the versions that the store has of them.
func (p *pass) sources(e *entry) error {
	keys := slices.Sorted(maps.Keys(e.sources))
	if len(keys) == 0 {
		return nil
	}
	if err := p.askVersions(keys); err != nil {
		return err
	}
	for _, key := range keys {
		d := archive.CatalogDeleted{Key: key}
		for _, v := range p.versions[key] {
			if v.ID != "" && !v.Marker {
				d.Versions = append(d.Versions, v.ID)
			}
		}
		e.Deleted = append(e.Deleted, d)
	}
	e.changed = true
	return nil
}
