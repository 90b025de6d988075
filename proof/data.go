package proof

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/control"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// A dataDigest is what one data file says, checked against itself and against
// the part that lists it: all that can be checked without the files before it.
type dataDigest struct {
	file     *archive.CatalogFile
	meta     *archive.DataFile // nil where the file could not be read
	deep     bool              // its rows are checked, and not only counted
	rows     int64
	kinds    map[string]int64
	rejects  map[string]int64
	lost     int64 // offsets that gap rows tell of
	control  *Fault
	data     bool
	controls []*control.Row
	erased   Erasures
	first    firstRow
	newest   int64 // archived_at of the newest row, microseconds
	offsets  [][2]int64
	marks    []mark
	tree     chain.Tree
	head     chain.Hash
	repeats  []repeat
	broken   bool // not all rows could be read, or they do not follow each other
	faults   []Fault
}

// A mark is a log where it has a size at which somebody states its head.
type mark struct {
	head   chain.Hash
	tree   chain.Tree
	newest int64 // archived_at of the newest row since the mark before
}

// A repeat is a row that says which row it repeats.
type repeat struct {
	seq, of     int64
	coordinates audit.Fingerprint
}

// A dataChecker checks the rows of one data file.
type dataChecker struct {
	v       *verifier
	catalog *lineCatalog
	file    *archive.CatalogFile
	meta    *archive.DataFile
	d       *dataDigest
	hasher  *chain.Hasher
	keyless bool
	at      Line
	log     chain.Log
	sizes   []int64 // at which marks are made
	names   *control.Sweep
	gov     *control.Tenant
	known   map[FaultKind]int // index+1 in d.faults of the first fault of a kind

	next, newest, sinceMark int64
	lastOffset              int64
	first, last             *int64 // offsets
	low, high               *int64 // created_at, microseconds
	day                     [2]int64
}

// dataFile reads a data file, compares it with what the part says, and checks
// it. sizes are those at which the log's state is wanted.
func (v *verifier) dataFile(ctx context.Context, line archive.Line, catalog *lineCatalog, f *archive.CatalogFile, sizes []int64) (*dataDigest, error) {
	c := &dataChecker{
		v: v, catalog: catalog, file: f, at: Line(line), sizes: sizes, known: map[FaultKind]int{}, lastOffset: -1, newest: math.MinInt64, sinceMark: math.MinInt64,
		d: &dataDigest{file: f, deep: v.wants(f.Tenant), kinds: map[string]int64{}, rejects: map[string]int64{}},
	}
	body, wrong, err := v.get(ctx, archive.Object{Key: f.Key, Size: f.Bytes})
	if err != nil {
		return nil, err
	}
	defer func() { v.progress(c.d.rows) }()
	if body != nil && (wrong == nil || int64(len(body)) != f.Bytes) {
		if sum := chain.Hash(sha256.Sum256(body)); sum != f.SHA256 {
			wrong = &problem{FaultHash, fmt.Sprintf("its SHA-256 is %s; the catalog states %s: it was changed, and is not decoded", short(sum), short(f.SHA256))}
		}
	}
	if wrong != nil {
		return c.stop(wrong.kind, wrong.text), nil
	}
	if err := v.permit(ctx); err != nil {
		return nil, err
	}
	defer v.done()
	hashers := v.hashers.Get().(*chain.Hashers)
	defer v.hashers.Put(hashers)
	return c.check(body, line, hashers), nil
}

func (c *dataChecker) check(body []byte, line archive.Line, hashers *chain.Hashers) *dataDigest {
	var text []byte
	err := safely(func() (err error) {
		text, _, err = parquet.TailMetadata(body, int64(len(body)))
		return err
	})
	if err != nil {
		return c.stop(FaultUnreadable, err.Error())
	}
	if c.meta, err = archive.DecodeDataFile(text); err != nil {
		return c.stop(FaultMetadata, "metadata: "+err.Error())
	}
	if text := c.misplaced(line); text != "" {
		return c.stop(FaultMisplaced, text)
	}
	c.compareMeta()
	c.begin(hashers)
	err = safely(func() error {
		if err := parquet.CheckLayout(body); err != nil {
			return err
		}
		return parquet.CheckBounds(body)
	})
	if err != nil {
		return c.stop(FaultLayout, err.Error())
	}
	if err := safely(func() error { return c.rows(body, text) }); err != nil {
		return c.stop(FaultUnreadable, err.Error())
	}
	c.finish()
	return c.d
}

// begin makes ready for the rows.
func (c *dataChecker) begin(hashers *chain.Hashers) {
	m := c.meta
	c.d.meta = m
	c.d.head, c.d.tree, c.next = m.HeadIn, chain.Tree{Size: m.FirstSeq, Frontier: slices.Clone(m.FrontierIn)}, m.FirstSeq
	c.log = chain.Log{ArchiveID: m.ArchiveID, Tenant: m.Tenant, Topic: m.Topic, TopicID: m.TopicID, Partition: m.Partition}
	var err error
	if c.hasher, err = hashers.For(m.Scheme, c.log); err != nil {
		c.keyless = true
		c.hasher, _ = hashers.For(chain.SchemeV1, chain.Log{})
	}
	c.names = c.v.governs.Tenant(m.Tenant).Sweep(archive.Line{Topic: m.Topic, TopicID: m.TopicID, Partition: m.Partition}, m.FirstSeq, m.FirstSeq+m.Rows-1)
	c.gov = c.v.governs.Tenant(m.Tenant)
	if day, err := time.Parse(archive.DayLayout, c.file.Day); err == nil { // so it is: the part was read
		c.day = [2]int64{day.UnixMicro(), day.AddDate(0, 0, 1).UnixMicro()}
	}
	if err := audit.ValidTenant(m.Tenant); err != nil && !audit.IsReservedTenant(m.Tenant) {
		c.fault(FaultColumn, err.Error())
	}
}

// misplaced says where the file belongs by its own metadata, if not here.
func (c *dataChecker) misplaced(line archive.Line) string {
	m := c.meta
	switch {
	case c.v.root.ArchiveID != "" && m.ArchiveID != c.v.root.ArchiveID:
		return fmt.Sprintf("it is of archive %.40q", m.ArchiveID)
	case m.Topic != line.Topic || m.TopicID != line.TopicID || m.Partition != line.Partition:
		return fmt.Sprintf("it says that it is of %s/%d", Printable(m.Topic), m.Partition)
	case m.Tenant != c.file.Tenant:
		return fmt.Sprintf("it says that it is of tenant %s, the catalog says %s", name(m.Tenant), name(c.file.Tenant))
	}
	return ""
}

// compareMeta compares the metadata with what the part says.
func (c *dataChecker) compareMeta() {
	m, f := c.meta, c.file
	if m.FirstSeq != f.FirstSeq || m.Rows != f.Rows {
		c.fault(FaultMetadata, fmt.Sprintf("it has %d rows from seq %d, the catalog says %d from %d", m.Rows, m.FirstSeq, f.Rows, f.FirstSeq))
	}
	if m.HeadIn != f.HeadIn || m.HeadOut != f.HeadOut {
		c.fault(FaultMetadata, "its headIn and headOut are not those that the catalog states")
	}
}

func (c *dataChecker) rows(body, text []byte) error {
	f, err := parquet.Open(body)
	if err != nil {
		return err
	}
	if again, ok := f.Metadata(); !ok || !bytes.Equal(again, text) {
		return fmt.Errorf("the file has more than one metadata %q", archive.MetadataKey)
	}
	rows := f.Rows()
	if !c.d.deep {
		rows = f.Select("kafka_offset", "created_at")
	}
	for row, err := range rows {
		if err != nil {
			return err
		}
		c.offset(row)
		c.created(row)
		if c.d.deep {
			c.row(row)
		}
		c.d.rows++
	}
	return nil
}

// offset notes the offset of a row: in a log offsets go up.
func (c *dataChecker) offset(row *chain.Row) {
	if !row.KafkaOffset.Valid {
		return
	}
	n := row.KafkaOffset.N
	if n <= c.lastOffset {
		c.rowFault(row, FaultCoverage, "the offset is not above that of the row before it in its log")
		return
	}
	c.lastOffset = n
	if c.first == nil {
		c.first = &n
	}
	c.last = &n
	if i := len(c.d.offsets) - 1; i >= 0 && c.d.offsets[i][1] == n {
		c.d.offsets[i][1]++
		return
	}
	c.d.offsets = append(c.d.offsets, [2]int64{n, n + 1})
}

func (c *dataChecker) created(row *chain.Row) {
	if !row.CreatedAt.Valid {
		return
	}
	n := row.CreatedAt.N
	if c.low == nil || n < *c.low {
		c.low = &n
	}
	if c.high == nil || n > *c.high {
		c.high = &n
	}
}

// row checks one row against its log, its kind, itself, and what was ordered.
func (c *dataChecker) row(row *chain.Row) {
	c.place(row)
	state, ok := c.content(row)
	c.kind(row, state)
	c.link(row)
	if ok {
		c.erasure(row, state)
	}
	c.repeat(row)
	if err := checkText(row); err != nil {
		c.rowFault(row, FaultColumn, err.Error())
	}
	if audit.IsControlKind(row.Kind.S) {
		c.governs(row)
	}
}

func (c *dataChecker) place(row *chain.Row) {
	m, text := c.meta, ""
	switch {
	case row.TenantID.S != m.Tenant:
		text = "tenant_id is not that of the file"
	case row.Topic.S != m.Topic:
		text = "topic is not that of the file"
	case row.TopicID.S != m.TopicID:
		text = "topic_id is not that of the file"
	case row.Partition.N != int64(m.Partition):
		text = "partition is not that of the file"
	case row.Epoch.N != int64(m.Epoch):
		text = fmt.Sprintf("epoch %d in a file of epoch %d", row.Epoch.N, m.Epoch)
	case row.ArchivedAt.N < c.day[0] || row.ArchivedAt.N >= c.day[1]:
		text = "archived_at is not of the file's day"
	}
	if text != "" {
		c.rowFault(row, FaultColumn, text)
	}
	if !equalDerived(&row.Derived, row.Slots[audit.SlotDecision]) {
		c.rowFault(row, FaultColumn, "a derived column does not say what the decision slot says")
	}
}

// content recomputes what the row still has. ok is false where it is in no
// state.
func (c *dataChecker) content(row *chain.Row) (state chain.State, ok bool) {
	state, err := chain.StateOf(row)
	ok = err == nil
	if ok {
		c.d.erased.count(state)
		err = c.hasher.Check(row)
	}
	var f *chain.Fault
	if !errors.As(err, &f) {
		return state, ok
	}
	switch {
	case f.Column == "row_hash" && ok && c.keyless:
	case f.Column == "row_hash" && ok:
		c.rowFault(row, FaultRowHash, "row_hash is not the hash of the row's header, commitments and prev_hash")
	case f.Column == "payload_commit" && ok:
		c.rowFault(row, FaultContent, "payload_commit is not the commitment to the row's slots")
	case f.Column == "user_commit" && ok:
		c.rowFault(row, FaultContent, "user_commit is not the commitment to the row's user_id")
	default:
		c.rowFault(row, FaultState, f.Error())
	}
	return state, ok
}

// kind checks what a row's kind asks of the columns that are left of it.
func (c *dataChecker) kind(row *chain.Row, state chain.State) {
	kind, context := row.Kind.S, row.Slots[audit.SlotContext]
	control, data := audit.IsControlKind(kind), isData(kind)
	c.d.kinds[kind]++
	c.d.data = c.d.data || data
	if control && c.d.control == nil {
		c.d.control = &Fault{Kind: FaultColumn, Key: c.file.Key, Line: &c.at, Ordinal: -1, Text: "a control row in a line of data rows"}
		locate(c.d.control, row)
	}
	switch {
	case kind == audit.KindRejected:
		c.rejected(row, context)
	case kind == audit.KindGap:
		c.gap(row, context)
	case !control && !data && kind != audit.KindChainReset:
		c.rowFault(row, FaultColumn, fmt.Sprintf("kind %.40q is unknown", kind))
	}
	if made := isMade(kind); made == row.KafkaOffset.Valid || made == row.KafkaTimestamp.Valid {
		c.rowFault(row, FaultColumn, "kafka_offset and kafka_timestamp are null in rows that ingest made and nowhere else")
	}
	if state != chain.HardErased && data != row.RedactionPolicy.Valid && (control || data || isMade(kind) || kind == audit.KindRejected) {
		c.rowFault(row, FaultColumn, "redaction_policy is null in rejected, made and control rows and nowhere else")
	}
	if row.Slots[audit.SlotRaw] != nil && kind != audit.KindRejected {
		c.rowFault(row, FaultColumn, "raw is set, which only rejected rows have")
	}
	if data && audit.IsReservedTenant(row.TenantID.S) {
		c.rowFault(row, FaultColumn, "a producer's row in the log of a reserved tenant")
	}
}

// rejected checks a rejected row as far as its context, and raw, are left.
func (c *dataChecker) rejected(row *chain.Row, context []byte) {
	if context == nil && !row.RowSalt.Valid {
		return
	}
	r, err := readReject(context)
	if err != nil {
		c.rowFault(row, FaultReject, "context: "+err.Error())
		return
	}
	c.d.rejects[r.reason]++
	if raw := row.Slots[audit.SlotRaw]; raw != nil || row.RowSalt.Valid {
		if err := r.check(raw); err != nil {
			c.rowFault(row, FaultReject, err.Error())
		}
	}
}

func (c *dataChecker) gap(row *chain.Row, context []byte) {
	if row.TenantID.S != audit.TenantPartition {
		c.rowFault(row, FaultGap, fmt.Sprintf("a gap row outside the log of tenant %s", audit.TenantPartition))
	}
	if context == nil && !row.RowSalt.Valid {
		return
	}
	g, err := readGapRow(context)
	if err != nil || g[1] <= g[0] {
		c.rowFault(row, FaultGap, "context does not say which offsets were lost")
		return
	}
	c.d.lost += g[1] - g[0]
}

// link checks that the row follows the one before it in its log, and moves on.
func (c *dataChecker) link(row *chain.Row) {
	d := c.d
	reset := row.Kind.S == audit.KindChainReset
	switch {
	case reset && d.rows > 0:
		c.rowFault(row, FaultReset, "an epoch begins in the middle of a data file")
	case reset:
		c.reset(row)
	case row.PrevHash != d.head:
		c.rowFault(row, FaultLink, "prev_hash is not the row_hash of the row before it in its log")
		d.broken = true
	}
	if row.Seq.N != c.next {
		c.rowFault(row, FaultLink, fmt.Sprintf("seq %d stands where %d belongs", row.Seq.N, c.next))
		d.broken = true
	}
	if d.rows == 0 {
		d.first = firstRow{reset, int32(row.Epoch.N), row.ArchivedAt.N, row.RecordID.S, offsetOf(row)}
	}
	if row.ArchivedAt.N < c.newest {
		c.rowFault(row, FaultTime, "archived_at is before that of the row before it in its log")
	}
	c.newest, c.sinceMark = row.ArchivedAt.N, max(c.sinceMark, row.ArchivedAt.N)
	d.head, c.next = row.RowHash, row.Seq.N+1
	d.tree.Append(row.RowHash)
	for len(c.sizes) > 0 && c.sizes[0] <= d.tree.Size {
		if c.sizes[0] == d.tree.Size {
			d.marks = append(d.marks, mark{d.head, d.tree.Clone(), c.sinceMark})
			c.sinceMark = math.MinInt64
		}
		c.sizes = c.sizes[1:]
	}
}

// reset checks the first row of an epoch.
func (c *dataChecker) reset(row *chain.Row) {
	reason, head, size, _, err := readReset(row.Slots[audit.SlotContext])
	switch {
	case err != nil:
		c.rowFault(row, FaultReset, "context: "+err.Error())
	case head != c.d.head || size != c.next:
		c.rowFault(row, FaultReset, fmt.Sprintf("the new epoch begins behind another row than the log's last one, seq %d", c.next-1))
	case row.PrevHash != chain.ResetGenesis(c.meta.Scheme, c.log, c.meta.Epoch, head, size, reason):
		c.rowFault(row, FaultReset, "prev_hash is not the genesis of the new epoch")
	}
}

// erasure holds what is left of the row against orders and receipts.
func (c *dataChecker) erasure(row *chain.Row, state chain.State) {
	if !c.v.governed() {
		return
	}
	names := c.names.At(row.Seq.N)
	if state == chain.Live && len(names) == 0 {
		return
	}
	switch how, text := judgeErasure(c.gov, row, state, names, func(id string) bool { return c.catalog.awaits(row, id) }); how {
	case disordered:
		c.rowFault(row, FaultErasure, text)
	case unreceived:
		c.d.erased.Unreceipted++
	}
}

// repeat notes which row this one says that it repeats.
func (c *dataChecker) repeat(row *chain.Row) {
	if !row.RepeatOf.Valid {
		return
	}
	of := row.RepeatOf.N
	if of < 0 || of >= row.Seq.N {
		c.rowFault(row, FaultColumn, fmt.Sprintf("repeat_of %d is no row before this one", of))
		return
	}
	if at, ok := row.Coordinates(); ok {
		c.d.repeats = append(c.d.repeats, repeat{row.Seq.N, of, at})
	} else if s, err := chain.ParseSentinel(row.Redaction.S); err != nil || !s.Hard {
		c.rowFault(row, FaultColumn, "repeat_of is set, and the row has no coordinates")
	}
}

// governs takes in a control row. What a data file holds is anchored.
func (c *dataChecker) governs(row *chain.Row) {
	r := c.v.readControl(row)
	r.Anchored = true
	c.d.controls = append(c.d.controls, r)
}

// finish compares what the rows gave with what metadata and part say.
func (c *dataChecker) finish() {
	m, f, d := c.meta, c.file, c.d
	d.newest = c.newest
	if d.rows != m.Rows {
		c.fault(FaultMetadata, fmt.Sprintf("it has %d rows, its metadata says %d", d.rows, m.Rows))
		d.broken = true
	}
	if !equalPtr(c.first, f.FirstOffset) || !equalPtr(c.last, f.LastOffset) {
		c.fault(FaultMetadata, "its first and last offset are not those that the catalog states")
	}
	if !equalTime(c.low, f.MinCreatedAt) || !equalTime(c.high, f.MaxCreatedAt) {
		c.fault(FaultMetadata, "its least and greatest created_at are not those that the catalog states")
	}
	if !d.deep || d.broken {
		return
	}
	if d.head != m.HeadOut {
		c.fault(FaultLink, "headOut is not the row_hash of the file's last row")
		d.broken = true
	}
	if !slices.Equal(d.tree.Frontier, m.FrontierOut) {
		c.fault(FaultTree, "frontierOut is not that of the log's tree after these rows")
	}
}

func equalPtr(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func equalTime(micros *int64, t *archive.Time) bool {
	return micros == nil && t == nil || micros != nil && t != nil && time.UnixMicro(*micros).Equal(t.Time)
}

func (c *dataChecker) stop(kind FaultKind, text string) *dataDigest {
	f := c.fault(kind, text)
	f.Touches = []Touched{{c.file.Tenant, c.file.FirstSeq, c.file.Rows}}
	f.Tenant, f.Seq = "", nil
	c.d.broken, c.d.meta = true, nil
	return c.d
}

// fault adds a fault of the file as a whole.
func (c *dataChecker) fault(kind FaultKind, text string) *Fault {
	seq := c.file.FirstSeq
	f := Fault{Kind: kind, Key: c.file.Key, Line: &c.at, Ordinal: -1, Tenant: c.file.Tenant, Seq: &seq, Text: text}
	if len(c.d.faults) >= maxSegmentFaults {
		c.d.faults[maxSegmentFaults-1].More++
		return &f
	}
	c.d.faults = append(c.d.faults, f)
	return &c.d.faults[len(c.d.faults)-1]
}

// rowFault adds a fault of a row; of a kind that the file has already, it only
// counts one more.
func (c *dataChecker) rowFault(row *chain.Row, kind FaultKind, text string) {
	if i := c.known[kind]; i > 0 {
		c.d.faults[i-1].More++
		return
	}
	f := c.fault(kind, text)
	if c.d.deep {
		locate(f, row)
	}
	c.known[kind] = len(c.d.faults)
}
