package proof

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// A controlRow is what one row of a control log orders or says was done.
type controlRow struct {
	tenant, id, kind string // id is a ULID in upper case
	seq              int64
	at               int64 // archived_at, microseconds
	anchored         bool  // an anchor covers it: only then does it count
	gone             bool  // its context was erased
	order            *order
	cancels          string // id of a redaction
	receipt          *receipt
	cut              *cut
	unsigned         string // why its signature does not count, "" where it does or cannot be told
}

// An order is a redaction.
type order struct {
	controlRow *controlRow
	target     target
	erasure    erasure
	cancelled  bool
	receipts   int   // that count
	receipted  int64 // archived_at of the newest one, microseconds
}

// An erasure is what goes from a row.
type erasure struct {
	all   bool // "*"
	slots chain.SlotSet
	user  bool
	hard  bool
}

// A target says which rows of a tenant an order reaches. One form of
// docs/format.md, section 4, is set.
type target struct {
	record, session, turn, stage, user *string
	within                             *int64 // seqWithinTurn
	log                                *archive.Line
	offset, before                     *int64
}

// A receipt is one part of an erasure-done.
type receipt struct {
	order       string // id of the redaction
	erasure     erasure
	part, parts int64
	erased      []seqRange
	deleted     []string
	at          int64 // archived_at, microseconds
	anchored    bool
}

// A seqRange is a range of rows of one log, both ends in it.
type seqRange struct {
	log         archive.Line
	first, last int64
}

// A cut is a retention-cut.
type cut struct {
	log      archive.Line
	size     int64
	head     chain.Hash
	frontier []chain.Hash
	anchored bool
}

// readControl reads a control row. One whose context says nothing that its kind
// says orders nothing; so does one whose context was erased.
func (v *verifier) readControl(row *chain.Row) *controlRow {
	c := &controlRow{
		tenant: row.TenantID.S, id: strings.ToUpper(row.RecordID.S), kind: row.Kind.S, seq: row.Seq.N, at: row.ArchivedAt.N, unsigned: v.controlSigned(row),
	}
	text := row.Slots[audit.SlotContext]
	c.gone = text == nil
	if c.gone {
		return c
	}
	var err error
	switch c.kind {
	case audit.KindRedaction:
		c.order, err = readOrder(text)
	case audit.KindRedactionCancelled:
		err = readDocument(text, field{Name: "redactionId", Read: func(d *document) { c.cancels = readID(d) }})
	case audit.KindErasureDone:
		c.receipt, err = readReceipt(text)
	case audit.KindRetentionCut:
		c.cut, err = readCut(text)
	}
	if err != nil {
		c.order, c.cancels, c.receipt, c.cut = nil, "", nil, nil
	}
	return c
}

// readID reads a ULID in either case.
func readID(d *document) string {
	id, err := audit.ParseRecordID(d.Str())
	if err != nil {
		d.Fail("no ULID")
	}
	return id
}

func readOrder(text []byte) (*order, error) {
	o := &order{}
	err := readDocument(text, append(erasureFields(&o.erasure),
		field{Name: "target", Read: func(d *document) { o.target = readTarget(d) }})...)
	if err == nil && !o.target.valid() {
		err = errors.New("target is none of the known forms")
	}
	return o, err
}

func erasureFields(e *erasure) []field {
	return []field{
		{Name: "slots", Read: func(d *document) { e.all, e.slots = readSlots(d) }},
		{Name: "user", Read: func(d *document) { e.user = d.Boolean() }},
		{Name: "hard", Read: func(d *document) { e.hard = d.Boolean() }},
	}
}

// readSlots reads "*" or an array of the names of slots.
func readSlots(d *document) (all bool, set chain.SlotSet) {
	if !d.IsArray() {
		d.Constant("*")
		return true, 0
	}
	d.Array(func(d *document) {
		slot, ok := audit.ParseSlot(d.Str())
		if !ok {
			d.Fail("no slot")
			return
		}
		set |= chain.SlotSetOf(slot)
	})
	return false, set
}

func readTarget(d *document) (t target) {
	str := func(into **string) func(*document) {
		return func(d *document) { s := d.Str(); *into = &s }
	}
	num := func(into **int64) func(*document) {
		return func(d *document) { n := d.Integer(); *into = &n }
	}
	var log archive.Line
	var named int
	d.Object(
		field{Name: "recordId", Optional: true, Read: func(d *document) { id := readID(d); t.record = &id }},
		field{Name: "sessionId", Optional: true, Read: str(&t.session)},
		field{Name: "turnId", Optional: true, Read: str(&t.turn)},
		field{Name: "stageId", Optional: true, Read: str(&t.stage)},
		field{Name: "seqWithinTurn", Optional: true, Read: num(&t.within)},
		field{Name: "userId", Optional: true, Read: str(&t.user)},
		field{Name: "topic", Optional: true, Read: func(d *document) { log.Topic = d.Str(); named++ }},
		field{Name: "topicId", Optional: true, Read: func(d *document) { log.TopicID = d.Str(); named++ }},
		field{Name: "partition", Optional: true, Read: func(d *document) { log.Partition = d.Int32(); named++ }},
		field{Name: "offset", Optional: true, Read: num(&t.offset)},
		field{Name: "seqBefore", Optional: true, Read: num(&t.before)})
	if named == 3 {
		t.log = &log
	} else if named > 0 {
		d.Fail("topic, topicId and partition are not all there")
	}
	return t
}

// valid reports whether the target has one of the forms.
func (t *target) valid() bool {
	form := ""
	for _, m := range []struct {
		letter string
		set    bool
	}{
		{"r", t.record != nil},
		{"s", t.session != nil},
		{"t", t.turn != nil},
		{"g", t.stage != nil},
		{"w", t.within != nil},
		{"u", t.user != nil},
		{"l", t.log != nil},
		{"o", t.offset != nil},
		{"b", t.before != nil},
	} {
		if m.set {
			form += m.letter
		}
	}
	return slices.Contains([]string{"r", "stgw", "t", "s", "u", "lo", "lb"}, form)
}

// fits reports whether a row is one that the target means, as far as the columns
// that are left of it can tell.
func (t *target) fits(row *chain.Row, hard bool) bool {
	same := func(want *string, got audit.Text) bool { return want == nil || hard || got.Valid && got.S == *want }
	switch {
	case t.log != nil && (*t.log != archive.Line{Topic: row.Topic.S, TopicID: row.TopicID.S, Partition: int32(row.Partition.N)}):
		return false
	case t.before != nil:
		return row.Seq.N < *t.before
	case t.offset != nil:
		return row.KafkaOffset.Valid && row.KafkaOffset.N == *t.offset
	case t.user != nil && row.UserID.Valid:
		return row.UserID.S == *t.user
	case t.user != nil:
		// A rejected row may have held it in raw.
		return row.UserCommit.Valid || row.Kind.S == audit.KindRejected
	case t.within != nil && !hard && (!row.SeqWithinTurn.Valid || row.SeqWithinTurn.N != *t.within):
		return false
	case t.record != nil && !hard:
		return row.RecordID.Valid && strings.EqualFold(row.RecordID.S, *t.record)
	}
	return same(t.session, row.SessionID) && same(t.turn, row.TurnID) && same(t.stage, row.StageID)
}

func readReceipt(text []byte) (*receipt, error) {
	r := &receipt{}
	err := readDocument(text, append(erasureFields(&r.erasure),
		field{Name: "redactionId", Read: func(d *document) { r.order = readID(d) }},
		field{Name: "part", Read: func(d *document) { r.part = d.Count() }},
		field{Name: "parts", Read: func(d *document) { r.parts = d.Count() }},
		field{Name: "erased", Read: func(d *document) { d.Array(func(d *document) { r.erased = append(r.erased, readErased(d)...) }) }},
		field{Name: "deleted", Read: func(d *document) {
			d.Array(func(d *document) {
				d.Object(field{Name: "key", Read: func(d *document) { r.deleted = append(r.deleted, d.Str()) }})
			})
		}})...)
	if err == nil && (r.part < 1 || r.part > r.parts) {
		err = errors.New("part is not one of parts")
	}
	return r, err
}

func readErased(d *document) (all []seqRange) {
	var log archive.Line
	d.Object(append(logFields(&log), field{Name: "ranges", Read: func(d *document) {
		d.Array(func(d *document) {
			var s seqRange
			d.Tuple(func(d *document) { s.first = d.Count() }, func(d *document) { s.last = d.Count() })
			if s.last < s.first {
				d.Fail("range from %d to %d", s.first, s.last)
			}
			all = append(all, s)
		})
	}})...)
	for i := range all {
		all[i].log = log
	}
	return all
}

func logFields(log *archive.Line) []field {
	return []field{
		{Name: "topic", Read: func(d *document) { log.Topic = d.Str() }},
		{Name: "topicId", Read: func(d *document) { log.TopicID = d.Str() }},
		{Name: "partition", Read: func(d *document) { log.Partition = d.Int32() }},
	}
}

func readCut(text []byte) (*cut, error) {
	c := &cut{}
	err := readDocument(text, append(logFields(&c.log),
		field{Name: "size", Read: func(d *document) { c.size = d.Count() }},
		field{Name: "head", Read: func(d *document) { c.head = d.Hash() }},
		field{Name: "frontier", Read: func(d *document) { c.frontier = d.Hashes() }})...)
	if err == nil {
		err = chain.CheckFrontier(c.size, c.frontier)
	}
	return c, err
}

// A governance is what all control logs order and say was done, by tenant.
type governance struct {
	tenants map[string]*governed
	deleted map[string]string // keys of objects that receipts call deleted, and the ids of their redactions
	sealed  bool
}

// A governed is what governs one tenant's rows.
type governed struct {
	orders   map[string]*order
	rows     map[string][]*controlRow // of all kinds, by id
	cuts     map[archive.Line][]*cut
	cancels  []*controlRow
	receipts []*receipt
	named    map[archive.Line]*namedRows
}

func newGovernance() *governance {
	return &governance{tenants: map[string]*governed{}, deleted: map[string]string{}}
}

// of returns what governs a tenant; nil where nothing does.
func (g *governance) of(tenant string) *governed {
	if g == nil {
		return nil
	}
	return g.tenants[tenant]
}

// add takes in a control row, in the order of its log.
func (g *governance) add(c *controlRow) {
	t := g.tenants[c.tenant]
	if t == nil {
		t = &governed{orders: map[string]*order{}, rows: map[string][]*controlRow{}, cuts: map[archive.Line][]*cut{}, named: map[archive.Line]*namedRows{}}
		g.tenants[c.tenant] = t
	}
	t.rows[c.id] = append(t.rows[c.id], c)
	switch {
	case c.kind == audit.KindRedaction && (t.orders[c.id] == nil || t.orders[c.id].controlRow.gone):
		if c.order == nil {
			c.order = &order{}
		}
		c.order.controlRow = c
		t.orders[c.id] = c.order
	case c.cancels != "":
		t.cancels = append(t.cancels, c)
	case c.receipt != nil:
		c.receipt.at, c.receipt.anchored = c.at, c.anchored
		t.receipts = append(t.receipts, c.receipt)
	case c.cut != nil:
		c.cut.anchored = c.anchored
		t.cuts[c.cut.log] = append(t.cuts[c.cut.log], c.cut)
	}
}

// seal works out which receipts count, and what they name.
func (g *governance) seal() {
	for _, t := range g.tenants {
		for _, c := range t.cancels {
			if o := t.orders[c.cancels]; o != nil && c.anchored {
				o.cancelled = true
			}
		}
		for _, s := range series(t.receipts) {
			g.count(t, s)
		}
		for _, n := range t.named {
			n.seal()
		}
	}
	g.sealed = true
}

// count takes in the parts of a receipt that is whole.
func (g *governance) count(t *governed, parts []*receipt) {
	anchored, at := true, int64(0)
	for _, p := range parts {
		anchored, at = anchored && p.anchored, max(at, p.at)
	}
	if o := t.orders[parts[0].order]; o != nil && anchored {
		o.receipts++
		o.receipted = max(o.receipted, at)
	}
	for _, p := range parts {
		for _, s := range p.erased {
			n := t.named[s.log]
			if n == nil {
				n = &namedRows{}
				t.named[s.log] = n
			}
			n.list = append(n.list, named{s.first, s.last, p.order, p.erasure, anchored})
		}
		for _, key := range p.deleted {
			if anchored {
				g.deleted[key] = p.order
			}
		}
	}
}

// series sorts parts into receipts, and returns those of which all parts are
// there. A receipt may be sent again, and a redaction may have several.
func series(all []*receipt) (whole [][]*receipt) {
	type key struct {
		order string
		parts int64
	}
	open := map[key][]map[int64]*receipt{}
	for _, r := range all {
		k := key{r.order, r.parts}
		i := slices.IndexFunc(open[k], func(s map[int64]*receipt) bool { return s[r.part] == nil })
		if i < 0 {
			i = len(open[k])
			open[k] = append(open[k], map[int64]*receipt{})
		}
		s := open[k][i]
		s[r.part] = r
		if int64(len(s)) < r.parts {
			continue
		}
		open[k] = slices.Delete(open[k], i, i+1)
		list := make([]*receipt, 0, len(s))
		for n := int64(1); n <= r.parts; n++ {
			list = append(list, s[n])
		}
		whole = append(whole, list)
	}
	return whole
}

// A named is a seqRange of rows that a receipt names.
type named struct {
	first, last int64
	order       string // id of the redaction
	erasure     erasure
	anchored    bool
}

// namedRows are the stretches of one log that receipts name.
type namedRows struct {
	list    []named // in the order of first
	highest []int64 // the highest last up to there
}

func (n *namedRows) seal() {
	slices.SortStableFunc(n.list, func(a, b named) int { return cmp.Compare(a.first, b.first) })
	n.highest = make([]int64, len(n.list))
	highest := int64(-1)
	for i := range n.list {
		highest = max(highest, n.list[i].last)
		n.highest[i] = highest
	}
}

// within returns the stretches that have rows of first to last, in order. It may
// be called on nil.
func (n *namedRows) within(first, last int64) (all []named) {
	if n == nil {
		return nil
	}
	from, _ := slices.BinarySearch(n.highest, first)
	for _, s := range n.list[from:] {
		if s.first > last {
			break
		}
		if s.last >= first {
			all = append(all, s)
		}
	}
	return all
}

// A sweep goes over the rows of a log, and knows what receipts name each.
type sweep struct {
	ahead []named
	now   []named
}

// sweepOf returns the sweep over the rows from first to last of a log.
func (g *governance) sweepOf(tenant string, log archive.Line, first, last int64) *sweep {
	t := g.of(tenant)
	if t == nil {
		return &sweep{}
	}
	return &sweep{ahead: t.named[log].within(first, last)}
}

// at returns what names the row at seq, which does not go back.
func (s *sweep) at(seq int64) []named {
	if len(s.now) > 0 {
		s.now = slices.DeleteFunc(s.now, func(n named) bool { return n.last < seq })
	}
	for len(s.ahead) > 0 && s.ahead[0].first <= seq {
		if s.ahead[0].last >= seq {
			s.now = append(s.now, s.ahead[0])
		}
		s.ahead = s.ahead[1:]
	}
	return s.now
}

// cutAt returns the cut of a log at a size, one that counts before others; nil
// if there is none.
func (g *governance) cutAt(tenant string, log archive.Line, size int64) (found *cut) {
	t := g.of(tenant)
	if t == nil {
		return nil
	}
	for _, c := range t.cuts[log] {
		if c.size == size && (found == nil || c.anchored && !found.anchored) {
			found = c
		}
	}
	return found
}

// rowOf returns the control row of a tenant with an id and a kind, one that
// counts before others; nil if there is none.
func (g *governance) rowOf(tenant, id, kind string) (found *controlRow) {
	t := g.of(tenant)
	if t == nil {
		return nil
	}
	for _, c := range t.rows[strings.ToUpper(id)] {
		if c.kind == kind && (found == nil || c.anchored && !found.anchored) {
			found = c
		}
	}
	return found
}

// outstanding returns how many redactions that count have no receipt, though
// they were archived longer than within before the newest anchor.
func (g *governance) outstanding(newest time.Time, within time.Duration) (n int64) {
	if g == nil || newest.IsZero() {
		return 0
	}
	for _, t := range g.tenants {
		for _, o := range t.orders {
			if c := o.controlRow; c.anchored && !o.cancelled && o.receipts == 0 && c.at < newest.Add(-within).UnixMicro() {
				n++
			}
		}
	}
	return n
}
