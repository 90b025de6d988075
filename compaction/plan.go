package compaction

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A Plan says what a pass does to a line, and why. It is made of a [Sight] and
// [Duties] alone.
type Plan struct {
	Line      archive.Line
	Version   int64 // of the catalog that it starts from, -1 if there is none
	Watermark int64 // of that version: the first ordinal that is not compacted
	Anchored  int64 // the last ordinal that an anchor covers that counts, -1

	Compact Step     // segments from the watermark on: the first ones of those that wait
	Waiting int64    // anchored segments that are not compacted, with those of Compact
	Look    []Step   // files of which orders may reach rows; most are only looked at
	Drop    []Step   // files that begin below a cut: dropped, or in part
	Merge   []Step   // neighbours that become one file
	Delete  []string // doomed objects whose time is up
	Doom    []string // versions of the catalog that have had their time
	Orders  []OrderStep
	Holds   bool // the catalog is to list other holds

	More bool // not all that is due fits into one pass
}

// A Step is one piece of a plan.
type Step struct {
	Why    string
	Tenant string   // "" of segments
	Day    string   // UTC; "" of segments and where files are of several days
	Keys   []string // of data files; none of segments
	From   int64    // ordinal or seq, and
	To     int64    // the one behind the last
	Rows   int64
	Bytes  int64
	Orders []string // ids
	Cut    string   // id
}

// An OrderStep is what the catalog is to say of an order.
type OrderStep struct {
	Tenant, ID string
	From       string // state, "" where it is not listed
	To         string // state that can be reached, "" where its entry goes
	Why        string
}

// Nothing reports whether there is nothing to do.
func (p *Plan) Nothing() bool {
	return p.Compact.Why == "" && !p.Holds && len(p.Look)+len(p.Drop)+len(p.Merge)+len(p.Delete)+len(p.Orders) == 0
}

// planner makes a plan.
type planner struct {
	*Settings
	s     *Sight
	d     *Duties
	now   time.Time
	grace time.Duration
	apart map[string]bool // keys of files that begin an epoch
	busy  map[string]bool // keys of files that a cut replaces
	plan  *Plan
}

// makePlan is pure.
func makePlan(s *Sight, d *Duties, o *Settings, apart map[string]bool, now time.Time) *Plan {
	p := &planner{
		Settings: o, s: s, d: d, now: now, apart: apart, grace: time.Duration(o.Root.GraceSeconds) * time.Second, busy: map[string]bool{},
		plan: &Plan{Line: s.Line, Version: s.version(), Watermark: s.watermark(), Anchored: s.anchored()},
	}
	p.doomed()
	p.orders()
	p.drops()
	p.compact()
	p.merges()
	p.plan.Holds = (s.Base != nil || s.Newest != nil) && !sameHolds(s.Base, d)
	return p.plan
}

// doomed says which objects may be deleted, and which versions of the catalog
// have been replaced for so long that no reader can be on its way through them.
func (p *planner) doomed() {
	if p.s.Base == nil {
		return
	}
	listed := map[string]bool{}
	for _, d := range p.s.Base.Doomed {
		listed[d.Key] = true
		if p.old(d.Since) && p.s.links.free(d.Since, p.s.StoreNow, p.grace) {
			p.plan.Delete = append(p.plan.Delete, d.Key)
		}
	}
	there := []int64{}
	for v := range p.s.Versions {
		if v <= p.s.Base.Version {
			there = append(there, v)
		}
	}
	slices.Sort(there)
	for i := 0; i+1 < len(there); i++ {
		if key := archive.CatalogKey(p.s.Line, there[i]); !listed[key] && p.old(there[i+1]) {
			p.plan.Doom = append(p.plan.Doom, key)
		}
	}
}

// old reports whether a version of the catalog is older than the grace, by the
// store's clock. One that is gone is; one of which the store does not say when it
// was written never is.
func (p *planner) old(version int64) bool {
	at, there := p.s.Versions[version]
	return !there && version < p.s.version() || !at.IsZero() && p.s.StoreNow.Sub(at) > p.grace
}

// entry returns what the base says of an order.
func (s *Sight) entry(tenant, id string) *archive.CatalogRedaction {
	if s.Base == nil {
		return nil
	}
	for i := range s.Base.Redactions {
		if r := &s.Base.Redactions[i]; r.Tenant == tenant && r.ID == id {
			return r
		}
	}
	return nil
}

// open reports whether an order has still to look through the files of a line.
func (d *Duty) open(entry *archive.CatalogRedaction) bool {
	return d.Closing && !d.Row.Gone || d.Due && d.Row.Redaction != nil && (entry == nil || entry.State == archive.RedactionGated)
}

// orders says which files orders have to look into, and which entries of the
// catalog they have.
func (p *planner) orders() {
	looks := map[string][]string{} // ids by key
	for i := range p.d.Orders {
		d := &p.d.Orders[i]
		entry := p.s.entry(d.Row.Tenant, d.Row.ID)
		if step, ok := p.order(d, entry); ok {
			p.plan.Orders = append(p.plan.Orders, step)
		}
		if d.Closed || !p.concerns(d) || !d.open(entry) {
			continue
		}
		files := p.s.filesOf(d.Row.Tenant)
		for j := range files {
			if f := &files[j]; d.mayBeIn(f) {
				looks[f.Key] = append(looks[f.Key], d.Row.ID)
			}
		}
	}
	for i := range p.s.Files {
		if f := &p.s.Files[i]; looks[f.Key] != nil {
			step := stepOf("orders may reach rows of it", f)
			step.Orders = looks[f.Key]
			p.plan.Look = append(p.plan.Look, step)
		}
	}
}

// concerns reports whether an order is for the line.
func (p *planner) concerns(d *Duty) bool {
	return d.reaches(p.s.Line) && p.s.Tenants[d.Row.Tenant] && !p.d.Frozen[d.Row.Tenant]
}

// order says what becomes of an order's entry, as far as that can be known now.
func (p *planner) order(d *Duty, entry *archive.CatalogRedaction) (step OrderStep, ok bool) {
	step = OrderStep{Tenant: d.Row.Tenant, ID: d.Row.ID}
	if entry != nil {
		step.From, step.To = entry.State, entry.State
	}
	switch {
	case p.d.Frozen[d.Row.Tenant]:
		return step, false
	case d.Closed:
		step.To, step.Why = "", "it is closed"
		return step, entry != nil
	case !p.concerns(d):
		return step, false
	case d.open(entry):
		step.To, step.Why = archive.RedactionPurged, "it is due"
		return step, true
	case entry == nil:
		step.To, step.Why = archive.RedactionGated, "it is archived: readers hide what it names"
		return step, true
	case entry.State == archive.RedactionPurged:
		step.To, step.Why = archive.RedactionGone, "once the old objects are gone"
		return step, true
	case entry.State == archive.RedactionGone && d.Receipted && len(without(entry.Erased, d.Receipts)) == 0:
		step.To, step.Why = archive.RedactionReceipted, "its receipt is archived"
		return step, true
	}
	return step, false
}

// mayBeIn reports whether a file can hold rows that the order means, by what the
// catalog says of it.
func (d *Duty) mayBeIn(f *archive.CatalogFile) bool {
	if d.Closing {
		return f.FirstSeq <= d.Row.Seq && d.Row.Seq <= f.LastSeq
	}
	switch t := &d.Row.Redaction.Target; {
	case t.Before != nil:
		return f.FirstSeq < *t.Before
	case t.Offset != nil:
		return f.FirstOffset != nil && *f.FirstOffset <= *t.Offset && *t.Offset <= *f.LastOffset
	}
	return true
}

// drops says which files a cut drops, as a whole or in part. A cut beyond what is
// compacted waits, and so does one of a tenant whose rows are held.
func (p *planner) drops() {
	for _, f := range p.s.Files {
		cut := p.d.cut(p.s.Line, f.Tenant)
		if cut == nil || f.FirstSeq >= cut.Cut.Size || p.sizeOf(f.Tenant) < cut.Cut.Size {
			continue
		}
		step := stepOf("a cut is archived", &f)
		step.Cut, step.To = cut.ID, min(f.LastSeq+1, cut.Cut.Size)
		step.Rows = step.To - step.From
		p.plan.Drop = append(p.plan.Drop, step)
		p.busy[f.Key] = true
	}
}

// sizeOf returns how many rows of a log are compacted.
func (p *planner) sizeOf(tenant string) int64 {
	if f := p.s.last(tenant); f != nil {
		return f.LastSeq + 1
	}
	return 0
}

// last returns the newest file of a log.
func (s *Sight) last(tenant string) *archive.CatalogFile {
	i, _ := slices.BinarySearchFunc(s.Files, tenant, func(f archive.CatalogFile, tenant string) int {
		if f.Tenant <= tenant {
			return -1
		}
		return 1
	})
	if i > 0 && s.Files[i-1].Tenant == tenant {
		return &s.Files[i-1]
	}
	return nil
}

func stepOf(why string, f *archive.CatalogFile) Step {
	return Step{Why: why, Tenant: f.Tenant, Day: f.Day, Keys: []string{f.Key}, From: f.FirstSeq, To: f.LastSeq + 1, Rows: f.Rows, Bytes: f.Bytes}
}

// compact says which segments are compacted: the first ones that wait, where it
// is time, as many as one pass takes.
func (p *planner) compact() {
	entries := p.s.entries()
	p.plan.Waiting = int64(len(entries))
	why := p.whyCompact(entries)
	if why == "" {
		return
	}
	c := &p.plan.Compact
	c.Why, c.From = why, p.s.watermark()
	for _, e := range entries {
		if c.Bytes > 0 && c.Bytes+e.Bytes > p.windowBytes() {
			p.plan.More = true
			break
		}
		c.To, c.Rows, c.Bytes = e.Ordinal+1, c.Rows+e.Rows, c.Bytes+e.Bytes
	}
}

// entries returns the anchored segments that are not compacted.
func (s *Sight) entries() (all []archive.AnchorSegment) {
	for _, a := range s.Anchors {
		for _, e := range a.Segments {
			if e.Ordinal >= s.watermark() {
				all = append(all, e)
			}
		}
	}
	return all
}

func (p *planner) whyCompact(entries []archive.AnchorSegment) string {
	if len(entries) == 0 {
		return ""
	}
	bytes := int64(0)
	for i := range entries {
		bytes += entries[i].Bytes
	}
	age := p.now.Sub(p.since(entries[0].Ordinal))
	switch {
	case p.Once:
		return "all that is anchored is compacted"
	case p.orderWaits():
		return "an order is due"
	case int64(len(entries)) >= max(p.MinSegments, p.s.Made): // a pass is to leave fewer objects than it found
		return fmt.Sprintf("%d segments wait", len(entries))
	case bytes >= p.windowBytes():
		return fmt.Sprintf("segments of %d bytes wait", bytes)
	case age >= p.MaxAge:
		return fmt.Sprintf("the oldest segment has waited for %s", age.Round(time.Second))
	}
	return ""
}

// since returns when an anchor covered a segment first.
func (p *planner) since(ordinal int64) time.Time {
	for _, a := range p.s.Anchors {
		if a.Ordinal >= ordinal {
			return a.Time.Time
		}
	}
	return p.now
}

// orderWaits reports whether an order, or a cut, needs what is not compacted.
func (p *planner) orderWaits() bool {
	for i := range p.d.Orders {
		d := &p.d.Orders[i]
		if !d.Closed && p.concerns(d) && (d.Late || d.open(p.s.entry(d.Row.Tenant, d.Row.ID))) {
			return true
		}
	}
	for tenant := range p.d.Cuts {
		if cut := p.d.cut(p.s.Line, tenant); cut != nil && p.sizeOf(tenant) < cut.Cut.Size && p.s.cutSize(tenant) < cut.Cut.Size {
			return true
		}
	}
	return false
}

// cutSize returns where the base says that a log begins.
func (s *Sight) cutSize(tenant string) int64 {
	if c := s.cut(tenant); c != nil {
		return c.Size
	}
	return 0
}

func (s *Sight) cut(tenant string) *archive.CatalogCut {
	if s.Base == nil {
		return nil
	}
	for i := range s.Base.Cuts {
		if c := &s.Base.Cuts[i]; c.Tenant == tenant {
			return c
		}
	}
	return nil
}

// windowBytes is how many bytes of segments one pass takes.
func (s *Settings) windowBytes() int64 { return max(s.Memory/24, 1) }

// merges says which neighbours become one file. Files are put into levels by
// size, each MergeFiles times that of the one below; so many neighbours of one
// level or lower ones, of one day, become one file, unless one of them makes up
// most of it: so that a row is written again only to come into a file of more than
// twice the size. Of a day that is over all neighbours are merged, as far as they
// fit into one file.
func (p *planner) merges() {
	left := p.PassBytes
	newest := ""
	for i := range p.s.Files {
		newest = max(newest, p.s.Files[i].Day)
	}
	for from := 0; from < len(p.s.Files); {
		to := from + 1
		for to < len(p.s.Files) && p.joins(&p.s.Files[to-1], &p.s.Files[to]) {
			to++
		}
		for _, g := range p.groups(p.s.Files[from:to], p.over(p.s.Files[from].Day, newest)) {
			if left < 0 {
				p.plan.More = true
				return
			}
			left -= g.Bytes
			p.plan.Merge = append(p.plan.Merge, g)
		}
		from = to
	}
}

// joins reports whether two files may become one.
func (p *planner) joins(a, b *archive.CatalogFile) bool {
	return a.Tenant == b.Tenant && a.Day == b.Day && a.LastSeq+1 == b.FirstSeq && !p.busy[a.Key] && !p.busy[b.Key] && !p.apart[b.Key] &&
		!p.full(a) && !p.full(b)
}

// full reports whether a file is as large as files get.
func (p *planner) full(f *archive.CatalogFile) bool { return f.Bytes > p.TargetBytes/2 }

// over reports whether no more rows of a day come. archived_at never goes back in
// a line; of the newest day that is known once nothing waits any more.
func (p *planner) over(day, newest string) bool {
	if day < newest || p.plan.Waiting > 0 || p.s.behind {
		return day < newest
	}
	t, err := time.Parse(archive.DayLayout, day)
	return err == nil && p.now.After(t.AddDate(0, 0, 1).Add(time.Hour))
}

// groups parts neighbours into those that become one file each.
func (p *planner) groups(run []archive.CatalogFile, over bool) (groups []Step) {
	if over {
		return p.chunks(run, 2, 0, "the day is over")
	}
	for level := p.level(smallest(run)); level > 0; level-- {
		for from := 0; from < len(run); {
			to := from
			for to < len(run) && p.level(run[to].Bytes) >= level {
				to++
			}
			if to-from >= p.MergeFiles {
				groups = append(groups, p.chunks(run[from:to], p.MergeFiles/2+1, 2, fmt.Sprintf("%d neighbours of like size", to-from))...)
			}
			from = max(to, from+1)
		}
		if len(groups) > 0 {
			return groups
		}
	}
	return nil
}

func smallest(run []archive.CatalogFile) int64 {
	return slices.MinFunc(run, func(a, b archive.CatalogFile) int { return cmp.Compare(a.Bytes, b.Bytes) }).Bytes
}

// level returns how many times a file has to grow by MergeFiles to be full.
func (p *planner) level(bytes int64) (n int) {
	for bytes = max(bytes, 1); bytes <= p.TargetBytes/2; bytes *= int64(p.MergeFiles) {
		n++
	}
	return n
}

// chunks parts neighbours into groups that fit into one file, of at least so many
// files, and of so many times the bytes of the largest of them.
func (p *planner) chunks(run []archive.CatalogFile, least int, growth int64, why string) (groups []Step) {
	g, largest := Step{}, int64(0)
	flush := func() {
		if len(g.Keys) >= least && g.Bytes > growth*largest {
			groups = append(groups, g)
		}
	}
	for i := range run {
		f := &run[i]
		if i > 0 && g.Bytes+f.Bytes <= p.TargetBytes {
			g.Keys, g.To, g.Rows, g.Bytes = append(g.Keys, f.Key), f.LastSeq+1, g.Rows+f.Rows, g.Bytes+f.Bytes
			largest = max(largest, f.Bytes)
			continue
		}
		flush()
		g, largest = stepOf(why, f), f.Bytes
	}
	flush()
	return groups
}

func sameHolds(base *archive.CatalogVersion, d *Duties) bool {
	var listed []archive.CatalogHold
	if base != nil {
		listed = base.Holds
	}
	return slices.Equal(sortedHolds(listed), d.catalogHolds(base))
}

// catalogHolds returns the holds as the next version of a catalog lists them:
// those in force, and those of frozen tenants that the base lists.
func (d *Duties) catalogHolds(base *archive.CatalogVersion) (all []archive.CatalogHold) {
	for _, r := range d.Holds {
		all = append(all, archive.CatalogHold{Tenant: r.Tenant, ID: r.ID})
	}
	if base != nil {
		for _, h := range base.Holds {
			if d.Frozen[h.Tenant] {
				all = append(all, h)
			}
		}
	}
	return sortedHolds(all)
}

func sortedHolds(all []archive.CatalogHold) []archive.CatalogHold {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b archive.CatalogHold) int {
		return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
	})
	return slices.Compact(all)
}
