package proof

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// maxSegmentFaults bounds the faults of one segment that are kept.
const maxSegmentFaults = 64

// A digest is what one segment says, checked against itself: all that can be
// checked without the segments before it, so that segments are read in
// parallel.
type digest struct {
	meta     *archive.Segment
	logs     []logDigest // in the order of the metadata
	kinds    map[string]int64
	rejects  map[string]int64
	control  *Fault // where the first control row stands; nil if there is none
	data     bool   // there are rows that a data topic brings
	resets   int64
	controls []*control.Row
	newest   int64 // archived_at of the newest row, microseconds; 0 if there is none
	broken   bool  // not all rows could be read: nothing follows from logs
	faults   []Fault
}

// A logDigest is what one segment says about one log.
type logDigest struct {
	stated *archive.LogInterval
	deep   bool // its rows are checked; false where only another tenant was asked for
	rows   int64
	first  firstRow
	hashes []chain.Hash // row_hash of every row, in seq order
	head   chain.Hash   // of the newest row, headIn before there is one
	next   int64        // seq that the next row must have
	epoch  int32        // of the newest row
	newest int64        // archived_at of the newest row, microseconds
	torn   bool         // a link inside the segment does not hold
	kinds  map[string]int64
	known  map[FaultKind]int // index+1 in digest.faults of the first fault of a kind
	names  *control.Sweep    // what receipts name of its rows; nil if nothing
}

// A firstRow is what must fit the state of the log before the segment.
type firstRow struct {
	reset      bool // it begins an epoch
	epoch      int32
	archivedAt int64
	recordID   string
	offset     *int64
}

// A checker checks the rows of one segment.
type checker struct {
	v        *verifier
	o        *object
	meta     *archive.Segment
	d        *digest
	hashers  *chain.Hashers
	at       Line
	byTenant map[string]*logDigest
	last     *logDigest // of the row before
	accounts []account  // duplicates and gaps that are not behind the cursor yet
	cursor   int64      // the next offset to be accounted for
	lost     map[[2]int64]bool
	made     int64
}

// digest checks an object that may be decoded.
func (v *verifier) digest(o *object) *digest {
	c := newChecker(v, o)
	defer v.hashers.Put(c.hashers)
	err := safely(func() error { return c.layout() })
	if err != nil {
		return c.stop(FaultLayout, err)
	}
	if err := safely(c.rows); err != nil {
		return c.stop(FaultUnreadable, err)
	}
	c.finish()
	return c.d
}

func newChecker(v *verifier, o *object) *checker {
	m := o.meta
	c := &checker{
		v: v, o: o, meta: m, hashers: v.hashers.Get().(*chain.Hashers),
		at:       Line{m.Topic, m.TopicID, m.Partition},
		byTenant: make(map[string]*logDigest, len(m.Logs)),
		accounts: accountsOf(m), cursor: m.FirstOffset, lost: lostOf(m),
	}
	c.d = &digest{meta: m, logs: make([]logDigest, len(m.Logs)), kinds: map[string]int64{}, rejects: map[string]int64{}}
	for i := range m.Logs {
		l := &m.Logs[i]
		c.d.logs[i] = logDigest{stated: l, deep: v.wants(l.Tenant), head: l.HeadIn, next: l.FirstSeq, epoch: l.Epoch}
		c.byTenant[l.Tenant] = &c.d.logs[i]
		if v.governed() && c.d.logs[i].deep && l.Rows > 0 {
			c.d.logs[i].names = v.governs.Tenant(l.Tenant).Sweep(archive.Line(c.at), l.FirstSeq, l.FirstSeq+l.Rows-1)
		}
	}
	return c
}

// layout checks all of an object but its rows.
func (c *checker) layout() error {
	checkMetadata(c.meta, func(kind FaultKind, text string) { c.fault(kind, text) })
	for i := range c.d.logs {
		l := &c.d.logs[i]
		if err := audit.ValidTenant(l.stated.Tenant); err != nil && !audit.IsReservedTenant(l.stated.Tenant) {
			c.logFault(l, FaultColumn, err.Error())
		}
	}
	if err := parquet.CheckLayout(c.o.body); err != nil {
		return err
	}
	return parquet.CheckBounds(c.o.body)
}

func (c *checker) log(tenant string) chain.Log {
	return chain.Log{ArchiveID: c.meta.ArchiveID, Tenant: tenant, Topic: c.meta.Topic, TopicID: c.meta.TopicID, Partition: c.meta.Partition}
}

// rows decodes the object and checks each row.
func (c *checker) rows() error {
	f, err := parquet.Open(c.o.body)
	if err != nil {
		return err
	}
	if text, ok := f.Metadata(); !ok || !bytes.Equal(text, c.o.text) {
		return fmt.Errorf("the file has more than one metadata %q", archive.MetadataKey)
	}
	for row, err := range f.Rows() {
		if err != nil {
			return err
		}
		c.row(row)
	}
	return nil
}

func (c *checker) row(row *chain.Row) {
	l := c.last
	if l == nil || l.stated.Tenant != row.TenantID.S {
		l = c.byTenant[row.TenantID.S]
	}
	c.account(row, l)
	if l == nil {
		c.rowFault(nil, row, FaultMetadata, "the row's log is not in logs")
		return
	}
	if c.last = l; l.deep {
		c.count(l, row)
		c.checkRow(l, row)
	} else if row.Kind.S == audit.KindGap {
		c.gap(l, row) // which all tenants' offsets need
	}
	l.rows++
}

// count counts a row by its kind.
func (c *checker) count(l *logDigest, row *chain.Row) {
	c.d.kinds[row.Kind.S]++
	if l.kinds == nil {
		l.kinds = map[string]int64{}
	}
	l.kinds[row.Kind.S]++
	c.d.newest = max(c.d.newest, row.ArchivedAt.N)
}

// finish compares what the rows gave with what the metadata says.
func (c *checker) finish() {
	c.consume(math.MaxInt64)
	if c.made != c.meta.Made {
		c.fault(FaultMetadata, fmt.Sprintf("%d rows were made by ingest, made is %d", c.made, c.meta.Made))
	}
	for _, g := range c.meta.Gaps {
		if c.lost[[2]int64{g.From, g.To}] {
			c.fault(FaultGap, fmt.Sprintf("offsets %d to %d are lost, and no gap row says so", g.From, g.To))
		}
	}
	for i := range c.d.logs {
		c.finishLog(&c.d.logs[i])
	}
}

func (c *checker) finishLog(l *logDigest) {
	s := l.stated
	if l.rows != s.Rows {
		c.logFault(l, FaultMetadata, fmt.Sprintf("the log has %d rows here, logs says %d", l.rows, s.Rows))
		l.torn = true
	}
	if !l.deep || l.rows == 0 {
		return
	}
	if l.head != s.HeadOut {
		c.logFault(l, FaultLink, "headOut is not the row_hash of the log's last row here")
		l.torn = true
	}
	if l.epoch != s.Epoch {
		c.logFault(l, FaultMetadata, fmt.Sprintf("the log ends here in epoch %d, logs says %d", l.epoch, s.Epoch))
	}
}

// stop ends a check early: what was not read is not known.
func (c *checker) stop(kind FaultKind, err error) *digest {
	c.fault(kind, err.Error())
	c.d.broken = true
	return c.d
}

// fault adds a fault of the segment as a whole and returns it, to be made more
// exact at once. Of a segment that has very many, the rest is only counted.
func (c *checker) fault(kind FaultKind, text string) *Fault {
	f := Fault{Kind: kind, Key: c.o.key, Line: &c.at, Ordinal: c.o.ordinal, Text: text}
	if len(c.d.faults) >= maxSegmentFaults {
		c.d.faults[maxSegmentFaults-1].More++
		return &f
	}
	c.d.faults = append(c.d.faults, f)
	return &c.d.faults[len(c.d.faults)-1]
}

// logFault adds a fault of a log as a whole.
func (c *checker) logFault(l *logDigest, kind FaultKind, text string) *Fault {
	f := c.fault(kind, text)
	f.Tenant, f.Seq = l.stated.Tenant, &l.stated.FirstSeq
	return f
}

// rowFault adds a fault of a row; of a kind that the log has in this segment
// already, it only counts one more.
func (c *checker) rowFault(l *logDigest, row *chain.Row, kind FaultKind, text string) {
	if l != nil {
		if i := l.known[kind]; i > 0 {
			c.d.faults[i-1].More++
			return
		}
	}
	locate(c.fault(kind, text), row)
	if l != nil {
		if l.known == nil {
			l.known = map[FaultKind]int{}
		}
		l.known[kind] = len(c.d.faults)
	}
}

// locate says which row a fault touches.
func locate(f *Fault, row *chain.Row) {
	seq := row.Seq.N
	f.Tenant, f.Seq, f.RecordID, f.Offset = row.TenantID.S, &seq, row.RecordID.S, offsetOf(row)
}

func offsetOf(row *chain.Row) *int64 {
	if !row.KafkaOffset.Valid {
		return nil
	}
	n := row.KafkaOffset.N
	return &n
}

// An account says what became of offsets that gave no row.
type account struct {
	from, to int64 // to is exclusive
	dup      int   // index in duplicates, -1 for a gap
}

// accountsOf returns duplicates and gaps in the order of their offsets.
func accountsOf(m *archive.Segment) []account {
	all := make([]account, 0, len(m.Duplicates)+len(m.Gaps))
	for i, d := range m.Duplicates {
		all = append(all, account{d.Offset, d.Offset + 1, i})
	}
	for _, g := range m.Gaps {
		all = append(all, account{g.From, g.To, -1})
	}
	slices.SortStableFunc(all, func(a, b account) int { return cmp.Compare(a.from, b.from) })
	return all
}

// lostOf returns the lost stretches, each of which a gap row must tell of.
func lostOf(m *archive.Segment) map[[2]int64]bool {
	lost := map[[2]int64]bool{}
	for _, g := range m.Gaps {
		if g.Cause == archive.GapLost {
			lost[[2]int64{g.From, g.To}] = true
		}
	}
	return lost
}

// account moves the cursor over the offset of a row: whatever lies before it
// must be in duplicates or gaps, and nothing twice. That all of it ends at
// nextOffset then follows from the equation of checkCoverage.
func (c *checker) account(row *chain.Row, l *logDigest) {
	if !row.KafkaOffset.Valid {
		c.made++
		return
	}
	at := row.KafkaOffset.N
	c.consume(at)
	switch {
	case at < c.cursor:
		c.rowFault(l, row, FaultCoverage, "the offset is accounted for twice, or the rows are not in the order of their offsets")
		return
	case at >= c.meta.NextOffset:
		c.rowFault(l, row, FaultCoverage, fmt.Sprintf("the offset is not below nextOffset %d", c.meta.NextOffset))
	case at > c.cursor:
		c.rowFault(l, row, FaultCoverage, fmt.Sprintf("offsets %d to %d before the row are not accounted for", c.cursor, at))
	}
	c.cursor = at + 1
}

// consume moves the cursor over the duplicates and gaps that begin before to.
func (c *checker) consume(to int64) {
	for len(c.accounts) > 0 && c.accounts[0].from < to {
		a := c.accounts[0]
		c.accounts = c.accounts[1:]
		if a.from != c.cursor {
			c.offsetFault(a.from)
		}
		if a.dup >= 0 {
			c.duplicate(&c.meta.Duplicates[a.dup])
		}
		c.cursor = max(c.cursor, a.to)
	}
}

func (c *checker) offsetFault(from int64) {
	text := fmt.Sprintf("offsets %d to %d are not accounted for", c.cursor, from)
	if from < c.cursor {
		text = fmt.Sprintf("offset %d is accounted for twice", from)
	}
	c.fault(FaultCoverage, text).Offset = &from
}

// duplicate checks one whose log has rows in this segment: it repeats a row
// that stands before it. Of other logs the state of the line knows.
func (c *checker) duplicate(d *archive.Duplicate) {
	l := c.byTenant[d.Tenant]
	if l == nil || !l.deep || d.Seq < l.stated.FirstSeq+l.rows {
		return
	}
	f := c.logFault(l, FaultDuplicate, fmt.Sprintf("the duplicate repeats seq %d, which is no row before it", d.Seq))
	f.Seq, f.Offset = &d.Seq, &d.Offset
}
