package sim_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// compacted is what the oracle knows of what compaction has made of a line.
type compacted struct {
	catalogs []*seenCatalog
	used     map[string]chain.Hash  // keys of data files that were ever there
	stored   map[string][]chain.Row // by key: what the files have that the newest version names
	doomed   map[string]time.Time   // since when, by keys that were ever doomed
}

func newCompacted() compacted {
	return compacted{used: map[string]chain.Hash{}, stored: map[string][]chain.Row{}, doomed: map[string]time.Time{}}
}

// A seenCatalog is a version that is there, or was.
type seenCatalog struct {
	*archive.Catalog
	text  string
	at    time.Time
	files map[string]*archive.CatalogFile // by key
	begin map[string]int64                // where cut logs begin, by tenant
}

// newest returns the newest version of the line's catalog; nil if there is none.
func (l *line) newest() *seenCatalog {
	if len(l.catalogs) == 0 {
		return nil
	}
	return l.catalogs[len(l.catalogs)-1]
}

// watermark returns the first ordinal that is not compacted.
func (l *line) watermark() int64 {
	if c := l.newest(); c != nil {
		return c.Watermark
	}
	return 0
}

// dataWritten hears of a new data file: its key was never there before.
func (w *world) dataWritten(p *process, key string, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts["data-file"]++
	n, ok := archive.ParseDataKey(key)
	l := w.lineLocked(n.TopicID, n.Partition)
	if !ok || l == nil {
		w.failLocked("%s creates %s, which is of no line", p.name, key)
		return
	}
	sum := chain.Hash(sha256.Sum256(body))
	if old, used := l.used[key]; used && old != sum {
		w.failLocked("%s writes other bytes under the key %s", p.name, key)
	}
	if at, dead := l.doomed[key]; dead {
		w.failLocked("%s writes %s again, which is doomed since %v", p.name, key, at)
	}
	l.used[key] = sum
}

// cataloged hands a new version of a catalog to the oracle.
func (w *world) cataloged(p *process, key string, body []byte, began time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name, ok := archive.ParseCatalogKey(key)
	l := w.lineLocked(name.TopicID, name.Partition)
	switch {
	case strings.Contains(key, "/part/"):
		return
	case !ok || l == nil:
		w.failLocked("%s creates %s, which is of no line", p.name, key)
		return
	}
	if name.Number < int64(len(l.catalogs)) {
		// Its writer slept: that version was there, was replaced, and is deleted.
		// Readers take the newest.
		w.counts["catalog-below-newest"]++
		w.strewn[key] = time.Now()
		w.trace.say(p.name, "version %d of the catalog of %s is there again, the newest is %d", name.Number, w.name(l.Line), len(l.catalogs)-1)
		return
	}
	w.counts["catalog"]++
	j := &catalogJudging{w: w, l: l, before: l.newest(), began: began}
	if err := j.judge(name.Number, body); err != nil {
		w.failLocked("%s creates version %d of the catalog of %s: %v", p.name, name.Number, w.name(l.Line), err)
		return
	}
	w.trace.say(p.name, "catalog %s version %d is there: watermark %d, %d files, %d doomed, %d redactions", w.name(l.Line), name.Number, j.c.Watermark, len(j.c.files), len(j.c.Doomed), len(j.c.Redactions))
}

// catalogJudging is one catalog version under examination.
type catalogJudging struct {
	w      *world
	l      *line
	c      *seenCatalog
	before *seenCatalog // nil for version 0
	began  time.Time    // of the round that wrote it
}

func (j *catalogJudging) judge(version int64, body []byte) error {
	if err := j.read(version, body); err != nil {
		return err
	}
	for _, step := range []func() error{j.follows, j.judgeFiles, j.judgeCuts, j.judgeRows, j.judgeHolds, j.judgeDoomed, j.judgeStates} {
		if err := step(); err != nil {
			return err
		}
	}
	j.take()
	return nil
}

// read parses the version and its parts, from the bucket as it is.
func (j *catalogJudging) read(version int64, body []byte) error {
	n, err := sign.Parse(body)
	if err != nil {
		return err
	}
	doc, err := archive.DecodeCatalog(n.Text)
	if err != nil {
		return err
	}
	want := sign.Unsigned
	if j.w.plan.signed {
		want = sign.Good
	}
	if got := j.w.keys.ring.Check(n, sign.Catalog, doc.Time.Time).State; got != want {
		return fmt.Errorf("its signatures are %v, not %v", got, want)
	}
	j.c = &seenCatalog{Catalog: doc, text: n.Text, at: time.Now(), files: map[string]*archive.CatalogFile{}, begin: map[string]int64{}}
	if doc.Version != version || version != int64(len(j.l.catalogs)) || doc.Line() != j.l.Line {
		return fmt.Errorf("version %d of %v, the next of %v is %d", doc.Version, doc.Line(), j.l.Line, len(j.l.catalogs))
	}
	for i := range doc.Parts {
		files, err := archive.ReadPart(context.Background(), j.w.memory, &doc.Parts[i])
		if err != nil {
			return err
		}
		for k := range files {
			j.c.files[files[k].Key] = &files[k]
		}
	}
	return nil
}

// follows requires that the version follows the one before, and that it goes no
// further than the newest anchor.
func (j *catalogJudging) follows() error {
	anchored := int64(0)
	if n := len(j.l.anchors); n > 0 {
		anchored = j.l.anchors[n-1].Ordinal + 1
	}
	if j.c.Watermark > anchored {
		return fmt.Errorf("watermark %d, and anchors cover segments below %d", j.c.Watermark, anchored)
	}
	if j.before == nil {
		if j.c.Previous != nil {
			return errors.New("the first version names one before it")
		}
		return nil
	}
	if j.c.Previous == nil || *j.c.Previous != archive.TextHash(j.before.text) {
		return errors.New("it does not name the version before it")
	}
	if j.c.Watermark < j.before.Watermark {
		return fmt.Errorf("watermark %d goes back from %d", j.c.Watermark, j.before.Watermark)
	}
	return nil
}

// judgeFiles requires that each file is there, as it is named, and that none of
// them is or was doomed.
func (j *catalogJudging) judgeFiles() error {
	for _, key := range slices.Sorted(maps.Keys(j.c.files)) {
		f := j.c.files[key]
		if _, dead := j.l.doomed[key]; dead {
			return fmt.Errorf("%s was doomed, and lives again", key)
		}
		if j.before != nil && j.before.files[key] != nil {
			if !reflect.DeepEqual(j.before.files[key], f) {
				return fmt.Errorf("what it says of %s has changed", key)
			}
			continue
		}
		body, err := j.w.memory.Get(context.Background(), key)
		if err != nil {
			return fmt.Errorf("a file that it names is not there: %w", err)
		}
		file, _, err := archive.OpenDataFile(body, f)
		if err != nil {
			return err
		}
		rows, err := rowsOf(file)
		if err != nil {
			return err
		}
		j.l.stored[key] = rows
		if e := j.bounds(f, rows); e != nil {
			return fmt.Errorf("%s: %w", key, e)
		}
	}
	return nil
}

// rowsOf returns the rows of an object.
func rowsOf(f *parquet.File) (rows []chain.Row, err error) {
	for r, err := range f.Rows() {
		if err != nil {
			return nil, err
		}
		rows = append(rows, *r)
	}
	return rows, nil
}

// bounds requires that what the part says of a file are the file's bounds.
func (j *catalogJudging) bounds(f *archive.CatalogFile, rows []chain.Row) error {
	first, last := &rows[0], &rows[len(rows)-1]
	switch {
	case first.Seq.N != f.FirstSeq || last.Seq.N != f.LastSeq || int64(len(rows)) != f.Rows:
		return fmt.Errorf("it has seq %d to %d, and %d to %d are named", first.Seq.N, last.Seq.N, f.FirstSeq, f.LastSeq)
	case first.PrevHash != f.HeadIn || last.RowHash != f.HeadOut:
		return errors.New("other heads are named")
	}
	return nil
}

// judgeCuts requires that what a log lacks at its beginning was cut by a row that
// counts, and that no cut is taken back.
func (j *catalogJudging) judgeCuts() error {
	for i := range j.c.Cuts {
		cut := &j.c.Cuts[i]
		o := j.w.governing(cut.Tenant, cut.ID)
		switch {
		case o == nil || o.Cut == nil || o.Cut.Log != j.l.Line || o.Cut.Size != cut.Size || o.Cut.Head != cut.Head || !slices.Equal(o.Cut.Frontier, cut.Frontier):
			return fmt.Errorf("the log of %s is cut at %d, and nobody said so", cut.Tenant, cut.Size)
		case o.anchored.IsZero():
			return fmt.Errorf("the log of %s is cut at %d before that is anchored", cut.Tenant, cut.Size)
		}
		j.c.begin[cut.Tenant] = cut.Size
	}
	if j.before == nil {
		return nil
	}
	for tenant, at := range j.before.begin {
		if j.c.begin[tenant] < at {
			return fmt.Errorf("the cut of %s at %d is taken back", tenant, at)
		}
	}
	return nil
}

// judgeRows requires that the files have each row of each log once, up to the
// watermark, and that each is as it was stamped, but for what was to be erased.
func (j *catalogJudging) judgeRows() error {
	logs := map[string][]*archive.CatalogFile{}
	for _, f := range j.c.files {
		logs[f.Tenant] = append(logs[f.Tenant], f)
	}
	want := j.l.headsAt(j.c.Watermark - 1)
	for tenant := range logs {
		if _, ok := want[tenant]; !ok {
			return fmt.Errorf("files of %s, which has no log there", tenant)
		}
	}
	for _, tenant := range slices.Sorted(maps.Keys(want)) {
		files := logs[tenant]
		slices.SortFunc(files, func(a, b *archive.CatalogFile) int { return int(a.FirstSeq - b.FirstSeq) })
		next := j.c.begin[tenant]
		for _, f := range files {
			if f.FirstSeq != next {
				return fmt.Errorf("the log of %s goes on with seq %d, not %d", tenant, f.FirstSeq, next)
			}
			next = f.LastSeq + 1
			if j.before != nil && j.before.files[f.Key] != nil {
				continue
			}
			if err := j.judgeFile(tenant, f); err != nil {
				return fmt.Errorf("%s: %w", f.Key, err)
			}
		}
		if next != max(want[tenant].Tree.Size, j.c.begin[tenant]) {
			return fmt.Errorf("the log of %s ends at seq %d, not %d: rows are invisible", tenant, next, want[tenant].Tree.Size)
		}
	}
	return nil
}

func (j *catalogJudging) judgeFile(tenant string, f *archive.CatalogFile) error {
	log := j.l.logs[tenant]
	rows := j.l.stored[f.Key]
	for i := range rows {
		if err := j.judgeRow(&rows[i], log[f.FirstSeq+int64(i)]); err != nil {
			return fmt.Errorf("seq %d: %w", rows[i].Seq.N, err)
		}
	}
	return nil
}

// judgeRow requires that a row is the one that was stamped, without what its
// sentinel says, that this was ordered, and that nothing comes back.
func (j *catalogJudging) judgeRow(got *chain.Row, p *placed) error {
	s, err := sentinelOf(got)
	if err != nil {
		return err
	}
	if got.RowHash != p.row.RowHash || got.PrevHash != p.row.PrevHash || got.PayloadCommit != p.row.PayloadCommit || got.UserCommit != p.row.UserCommit {
		return errors.New("a hash of it is another one")
	}
	if got.RowSalt != p.row.RowSalt && s.ID == "" || s.ID != "" && got.RowSalt.Valid {
		return errors.New("its salt is not what it was, or not gone")
	}
	want := without(p.row, s)
	have := got.Record
	have.RepeatOf = want.RepeatOf
	if s.ID != "" { // derived from a slot that may be gone
		have.RequestedModel, have.SelectedReason, have.RungOrdinal, have.FallbackChain = want.RequestedModel, want.SelectedReason, want.RungOrdinal, want.FallbackChain
	}
	if !reflect.DeepEqual(want, have) {
		return fmt.Errorf("it is %.300v, and was %.300v", have, want)
	}
	if got.RepeatOf.Valid {
		if err := j.judgeRepeat(got, p); err != nil {
			return err
		}
	}
	if back := lost(p.erased, s); back != "" {
		return fmt.Errorf("%s was erased, and is there again", back)
	}
	if s != p.erased {
		return j.w.ordered(j.l, p, s, j.began)
	}
	return nil
}

// judgeRepeat requires that the row which one repeats came before it, and had
// its coordinates.
func (j *catalogJudging) judgeRepeat(got *chain.Row, p *placed) error {
	log := j.l.logs[got.TenantID.S]
	if got.RepeatOf.N < 0 || got.RepeatOf.N >= p.seq {
		return fmt.Errorf("it repeats seq %d", got.RepeatOf.N)
	}
	first := log[got.RepeatOf.N]
	if first.record == nil || p.record == nil || !p.record.hasCoord || first.record.coord != p.record.coord {
		return fmt.Errorf("it repeats seq %d, which has other coordinates", got.RepeatOf.N)
	}
	return nil
}

// sentinelOf returns what a row says is gone of it; one without an id where it
// is live.
func sentinelOf(row *chain.Row) (chain.Sentinel, error) {
	if !row.Redaction.Valid {
		return chain.Sentinel{}, nil
	}
	return chain.ParseSentinel(row.Redaction.S)
}

// without returns what is left of a row's record.
func without(row *chain.Row, s chain.Sentinel) audit.Record {
	r := row.Record
	for slot := range r.Slots {
		if s.All || s.Slots.Has(audit.Slot(slot)) {
			r.Slots[slot] = nil
		}
	}
	if s.User {
		r.UserID = audit.Text{}
	}
	if s.Hard {
		r = audit.Record{
			TenantID: r.TenantID, Topic: r.Topic, Partition: r.Partition, Seq: r.Seq, KafkaOffset: r.KafkaOffset, KafkaTimestamp: r.KafkaTimestamp,
			ArchivedAt: r.ArchivedAt, Kind: r.Kind, AuditRecordVersion: r.AuditRecordVersion, TopicID: r.TopicID, Epoch: r.Epoch,
		}
	}
	return r
}

// lost names something that one sentinel says is gone, and another does not.
func lost(before, after chain.Sentinel) string {
	switch {
	case before.ID == "":
		return ""
	case before.ID != after.ID:
		return "its first redaction " + before.ID
	case before.All && !after.All, before.Slots&^after.Slots != 0 && !after.All:
		return "a slot"
	case before.User && !after.User:
		return "user_id"
	case before.Hard && !after.Hard:
		return "its header"
	}
	return ""
}

// judgeDoomed requires that what the version before named, and this one does not,
// is doomed; that nothing is doomed that it names, that lies above the watermark,
// or that is never deleted; and that a doomed key stays so until it is gone.
func (j *catalogJudging) judgeDoomed() error {
	listed := map[string]int64{}
	for _, d := range j.c.Doomed {
		listed[d.Key] = d.Since
		if j.c.files[d.Key] != nil || slices.ContainsFunc(j.c.Parts, func(p archive.CatalogPartRef) bool { return p.Key == d.Key }) {
			return fmt.Errorf("%s is doomed, and named", d.Key)
		}
		if err := j.mayDoom(d.Key); err != nil {
			return err
		}
	}
	if j.before == nil {
		return nil
	}
	for key := range j.before.files {
		if _, ok := listed[key]; !ok && j.c.files[key] == nil {
			return fmt.Errorf("%s is neither named any more nor doomed", key)
		}
	}
	for _, d := range j.before.Doomed {
		since, still := listed[d.Key]
		switch {
		case still && since != d.Since:
			return fmt.Errorf("%s is doomed since version %d, it was since %d", d.Key, since, d.Since)
		case !still && j.w.versionsLeft(d.Key) > 0 && j.w.strewn[d.Key].IsZero():
			return fmt.Errorf("%s is doomed no more, and %d versions of it are there", d.Key, j.w.versionsLeft(d.Key))
		}
		delete(listed, d.Key)
	}
	for key, since := range listed {
		if since != j.c.Version {
			return fmt.Errorf("%s is doomed since version %d, and that did not say so", key, since)
		}
	}
	return nil
}

func (j *catalogJudging) mayDoom(key string) error {
	if n, ok := archive.ParseSegmentKey(key); ok {
		if n.TopicID != j.l.TopicID || n.Partition != j.l.Partition || n.Ordinal >= j.c.Watermark {
			return fmt.Errorf("%s is doomed, the watermark is %d", key, j.c.Watermark)
		}
		return nil
	}
	if n, ok := archive.ParseDataKey(key); ok && n.TopicID == j.l.TopicID && n.Partition == j.l.Partition {
		return nil
	}
	if n, ok := archive.ParseCatalogKey(key); ok && n.TopicID == j.l.TopicID && n.Partition == j.l.Partition && n.Number < j.c.Version {
		return nil
	}
	if strings.HasPrefix(key, archive.CatalogPrefix(j.l.Line)+"part/") || strings.HasPrefix(key, archive.SegmentPrefix(j.l.Line)) {
		return nil
	}
	return fmt.Errorf("%s is doomed", key)
}

// take makes the version what is known.
func (j *catalogJudging) take() {
	l := j.l
	l.catalogs = append(l.catalogs, j.c)
	for _, d := range j.c.Doomed {
		if _, ok := l.doomed[d.Key]; !ok {
			l.doomed[d.Key] = j.c.at
		}
	}
	for key, f := range j.c.files {
		if j.before != nil && j.before.files[key] != nil {
			continue
		}
		for i := range l.stored[key] {
			s, _ := sentinelOf(&l.stored[key][i])
			l.logs[f.Tenant][f.FirstSeq+int64(i)].erased = s
		}
		l.counts["file-named"]++
	}
	if j.before == nil {
		return
	}
	for key := range j.before.files {
		if j.c.files[key] == nil {
			delete(l.stored, key)
		}
	}
	if j.c.Watermark > j.before.Watermark {
		l.counts["watermark-moves"]++
	}
}

// mayDelete holds each deleted version against what is named, in the instant in
// which it goes: nothing that a snapshot of less than the grace ago may read.
func (w *world) mayDelete(key string) error {
	now := time.Now()
	l := w.lineOfKey(key)
	if l == nil {
		return errors.New("it is of no line")
	}
	c := l.newest()
	if c == nil {
		return errors.New("the line has no catalog")
	}
	if c.files[key] != nil || slices.ContainsFunc(c.Parts, func(p archive.CatalogPartRef) bool { return p.Key == key }) {
		return errors.New("the newest catalog names it")
	}
	if n, ok := archive.ParseSegmentKey(key); ok && n.Ordinal >= c.Watermark {
		return fmt.Errorf("the watermark is %d", c.Watermark)
	}
	if n, ok := archive.ParseCatalogKey(key); ok && n.Number >= c.Version {
		return errors.New("it is the newest version")
	}
	if strings.HasPrefix(key, "anchor/") || strings.HasPrefix(key, "key/") || key == archive.RootKey {
		return errors.New("such objects are never deleted")
	}
	since, doomed := l.doomed[key]
	switch {
	case !doomed:
		return errors.New("no catalog version ever called it doomed")
	case now.Sub(since) < w.plan.grace-time.Second: // the store tells seconds
		return fmt.Errorf("it is doomed for %v, the grace is %v", now.Sub(since), w.plan.grace)
	}
	return nil
}

// lineOfKey returns the line that an object is of.
func (w *world) lineOfKey(key string) *line {
	if n, ok := archive.ParseDataKey(key); ok {
		return w.lineLocked(n.TopicID, n.Partition)
	}
	for _, l := range w.lines {
		for _, prefix := range []string{archive.SegmentPrefix(l.Line), archive.CatalogPrefix(l.Line)} {
			if strings.HasPrefix(key, prefix) {
				return l
			}
		}
	}
	return nil
}

// versionsLeft returns how many versions and markers of a key are there.
func (w *world) versionsLeft(key string) (n int) {
	for v, err := range w.memory.Versions(context.Background(), key) {
		if err == nil && v.Key == key {
			n++
		}
	}
	return n
}

// strayLocked returns a segment or data file that no document of its line names.
func (w *world) strayLocked() string {
	for o, err := range w.memory.List(context.Background(), "", "") {
		l := w.lineOfKey(o.Key)
		if err != nil || l == nil || l.newest() == nil {
			continue
		}
		c := l.newest()
		segment, isSegment := archive.ParseSegmentKey(o.Key)
		_, isData := archive.ParseDataKey(o.Key)
		if isSegment && segment.Ordinal < c.Watermark || isData && c.files[o.Key] == nil {
			return o.Key
		}
	}
	return ""
}
