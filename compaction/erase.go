package compaction

import (
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
	duty    *Duty // nil: nobody said anything of it in this pass
	open    bool  // it has to look through the files
	unread  bool  // and not all of them could be looked through in this pass
	held    bool  // a hold keeps rows that it means
	found   [][2]int64
	sources map[string]bool // keys of objects that held the rows
	changed bool
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
	index   *orderIndex
	holds   []*control.Hold
	hit     []*entry // by which the row at hand was erased
}

func (es *entries) byTenant(d *Duties) {
	for _, e := range es.all {
		if e.duty == nil || !e.duty.Due && !e.duty.Closing {
			continue
		}
		t := es.tenants[e.Tenant]
		if t == nil {
			t = &tenant{holds: d.holds(e.Tenant)}
			es.tenants[e.Tenant] = t
		}
		t.entries = append(t.entries, e)
	}
	for _, t := range es.tenants {
		t.index = newOrderIndex(t.entries)
	}
}

// tenant returns what governs the rows of a tenant; nil where nothing does.
func (p *pass) tenant(name string) *tenant { return p.entries.tenants[name] }

// erase takes from a row what orders take, and reports whether it changed. A row
// that was erased before is one that the order's receipt has to name all the same.
func (t *tenant) erase(hashers *chain.Hashers, c *checker, row *chain.Row) (changed bool, err error) {
	if t == nil {
		return false, nil
	}
	t.hit = t.hit[:0]
	seq := row.Seq.N
	for _, e := range t.index.candidates(row) {
		s, ok := e.duty.takes(row)
		if !ok {
			continue
		}
		if held(t.holds, row) {
			e.held = true
			continue
		}
		t.hit = append(t.hit, e)
		hasher, err := hashers.For(c.state.scheme, c.log)
		if err != nil {
			hasher, err = hashers.For(chain.SchemeV1, chain.Log{}) // residuals need no key
		}
		if err != nil {
			return false, err
		}
		did, err := redact.Erase(hasher, row, s)
		if err != nil {
			return false, err
		}
		changed = changed || did
		e.name(seq)
	}
	return changed, nil
}

// would is erase of a row of which only the columns were read that say whether it
// is meant and what went before. It reports whether something would go.
func (t *tenant) would(row *chain.Row) (takes bool) {
	before, err := chain.ParseSentinel(row.Redaction.S)
	for _, e := range t.index.candidates(row) {
		s, ok := e.duty.takes(row)
		switch {
		case !ok:
		case held(t.holds, row):
			e.held = true
		default:
			e.name(row.Seq.N)
			takes = takes || row.RowSalt.Valid || err != nil || before.Union(s) != before
		}
	}
	return takes
}

// lookColumns are what would reads; of users the bytes of rejected rows as well.
func (t *tenant) lookColumns() []string {
	columns := slices.Concat(audit.CoordinateColumns, []string{
		"topic", "topic_id", "partition", "seq", "kafka_offset", "kafka_timestamp", "archived_at", "created_at", "user_id", "row_salt", "redaction",
	})
	users := slices.ContainsFunc(t.holds, func(h *control.Hold) bool { return h.Scope.User != nil })
	if users || len(t.index.users) > 0 {
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

// An orderIndex finds the orders that may mean a row, so that a row is not held
// against all of them.
type orderIndex struct {
	records, sessions, turns, users map[string][]*entry
	others                          []*entry
}

func upper(id string) string { return strings.ToUpper(id) }

func newOrderIndex(all []*entry) *orderIndex {
	x := &orderIndex{map[string][]*entry{}, map[string][]*entry{}, map[string][]*entry{}, map[string][]*entry{}, nil}
	for _, e := range all {
		var in map[string][]*entry
		var name string
		if o := e.duty.Row.Redaction; o != nil && !e.duty.Closing {
			switch t := &o.Target; {
			case t.Record != nil:
				in, name = x.records, upper(*t.Record)
			case t.Turn != nil:
				in, name = x.turns, *t.Turn
			case t.Session != nil:
				in, name = x.sessions, *t.Session
			case t.User != nil:
				in, name = x.users, *t.User
			}
		}
		if in == nil {
			x.others = append(x.others, e)
			continue
		}
		in[name] = append(in[name], e)
	}
	return x
}

// candidates returns the orders that may mean a row. A rejected row may hold any
// user's id in its bytes.
func (x *orderIndex) candidates(row *chain.Row) []*entry {
	all := slices.Clone(x.others)
	if row.RecordID.Valid && len(x.records) > 0 {
		all = append(all, x.records[upper(row.RecordID.S)]...)
	}
	if row.SessionID.Valid && len(x.sessions) > 0 {
		all = append(all, x.sessions[row.SessionID.S]...)
	}
	if row.TurnID.Valid && len(x.turns) > 0 {
		all = append(all, x.turns[row.TurnID.S]...)
	}
	switch {
	case len(x.users) == 0:
	case row.Kind.S == audit.KindRejected:
		for _, name := range slices.Sorted(maps.Keys(x.users)) {
			all = append(all, x.users[name]...)
		}
	case row.UserID.Valid:
		all = append(all, x.users[row.UserID.S]...)
	}
	return all
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
	case e.held && e.State != archive.RedactionGated:
		e.State, e.Since, e.changed = archive.RedactionGated, 0, true
	case late, e.State == archive.RedactionGated && e.open && whole:
		e.State, e.Since, e.changed = archive.RedactionPurged, version, true
	}
	return nil
}

// whole reports whether an order was carried out in all that was archived before
// it was due: in data files, and in segments, none of which waits any more.
func (p *pass) whole(e *entry) (bool, error) {
	if !e.open || e.unread || e.held || p.watermark <= p.s.anchored() || p.s.behind {
		return false, nil
	}
	if a := p.s.Newest; a != nil && !a.Time.Before(e.duty.DueAt) {
		return true, nil
	}
	above, err := archive.ListSegments(p.ctx, p.e.Archive, p.l, p.s.anchored()+1)
	return len(above) == 0, err
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
