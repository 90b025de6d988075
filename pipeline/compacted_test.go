package pipeline_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/archivetest"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/pipeline"
	"github.com/ledgerlake/ledgerlake/redact"
)

const dataID = "01KBCDEFGHJKMNPQRSTVWXYZ0R"

// A compaction is what a test does to the line of partition 0, in the order in
// which a compactor does it.
type compaction struct {
	watermark int64
	change    func(*chain.Row) // what becomes of a row; nil leaves it
	keys      chain.Keys
	signers   []note.Signer
	keep      bool // the segments stay
	fileRows  int  // the most rows of a file; 0 is no limit
	cut       int  // so many rows of each log go
}

// compact makes data files of all rows below a watermark, and the next version of
// the catalog, and deletes what that replaces.
func (w *world) compact(c compaction) {
	w.t.Helper()
	ctx, l := context.Background(), w.lineOf(0)
	check(w.t, compactLine(ctx, w.memory, l, c))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func compactLine(ctx context.Context, m *archive.Memory, l archive.Line, c compaction) error {
	s, err := archive.ReadSnapshot(ctx, m, l, nil)
	if err != nil {
		return err
	}
	logs, gone, err := rowsBelow(ctx, m, s, c)
	if err != nil {
		return err
	}
	doc := &archive.Catalog{
		Topic: l.Topic, TopicID: l.TopicID, Partition: l.Partition, Watermark: c.watermark, Time: archive.Time{Time: time.Now().UTC().Truncate(time.Microsecond)},
	}
	if s.Catalog != nil {
		doc.Version, doc.Previous = s.Catalog.Version+1, &s.Catalog.SHA256
	}
	var files []archive.CatalogFile
	for _, tenant := range slices.Sorted(maps.Keys(logs)) {
		more, err := logs[tenant].write(ctx, m, doc, c)
		if err != nil {
			return err
		}
		files = append(files, more...)
	}
	for _, key := range gone {
		if !c.keep {
			break // it is gone by the next version, which drops it
		}
		doc.Doomed = append(doc.Doomed, archive.CatalogDoomed{Key: key, Since: doc.Version})
	}
	if _, err := archivetest.PutCatalog(ctx, m, doc, files, c.signers...); err != nil {
		return err
	}
	if c.keep {
		return nil
	}
	for v, err := range m.Versions(ctx, "") {
		if err != nil {
			return err
		}
		if slices.Contains(gone, v.Key) {
			if kept := m.Delete(ctx, []archive.Version{v}); len(kept) > 0 {
				return kept[0].Err
			}
		}
	}
	return nil
}

// A compactedLog is a log on its way into data files.
type compactedLog struct {
	chain.Log
	scheme string
	rows   []chain.Row
}

// rowsBelow reads all rows of a snapshot below a watermark, and names the objects
// that they are in.
func rowsBelow(ctx context.Context, m *archive.Memory, s *archive.Snapshot, c compaction) (map[string]*compactedLog, []string, error) {
	logs, gone := map[string]*compactedLog{}, []string{}
	of := func(log chain.Log, scheme string) *compactedLog {
		if logs[log.Tenant] == nil {
			logs[log.Tenant] = &compactedLog{Log: log, scheme: scheme}
		}
		return logs[log.Tenant]
	}
	for i := range s.Files {
		body, err := m.Get(ctx, s.Files[i].Key)
		if err != nil {
			return nil, nil, err
		}
		f, meta, err := archive.OpenDataFile(body, &s.Files[i])
		if err != nil {
			return nil, nil, err
		}
		log := of(chain.Log{ArchiveID: meta.ArchiveID, Tenant: meta.Tenant, Topic: meta.Topic, TopicID: meta.TopicID, Partition: meta.Partition}, meta.Scheme)
		for row, err := range f.Rows() {
			if err != nil {
				return nil, nil, err
			}
			log.rows = append(log.rows, *row)
		}
		gone = append(gone, s.Files[i].Key)
	}
	segments, err := goodSegments(ctx, m, s, c)
	if err != nil {
		return nil, nil, err
	}
	for n := s.Watermark(); n < c.watermark; n++ {
		gone = append(gone, archive.SegmentKey(s.Line, n))
	}
	for _, seg := range slices.Backward(segments) {
		for i := range seg.Rows {
			tenant := seg.Rows[i].TenantID.S
			scheme := seg.Logs[slices.IndexFunc(seg.Logs, func(l archive.LogInterval) bool { return l.Tenant == tenant })].Scheme
			log := of(seg.Log(tenant), scheme)
			log.rows = append(log.rows, seg.Rows[i])
		}
	}
	return logs, gone, nil
}

// goodSegments reads the segments of a snapshot below a watermark, the newest
// first, without void ones.
func goodSegments(ctx context.Context, m *archive.Memory, s *archive.Snapshot, c compaction) (all []*archive.SegmentObject, err error) {
	for n := c.watermark - 1; n >= s.Watermark(); n-- {
		seg, err := archive.GetSegment(ctx, m, s.Line, n, c.keys)
		if err != nil {
			return nil, err
		}
		all = append(all, seg)
		if len(seg.Voided) > 0 {
			n = seg.Voided[0].Ordinal
		}
	}
	return all, nil
}

// write makes the data files of a log: each of one day and one epoch.
func (g *compactedLog) write(ctx context.Context, m *archive.Memory, doc *archive.Catalog, c compaction) (files []archive.CatalogFile, err error) {
	doc.ArchiveID = g.ArchiveID
	var tree chain.Tree
	for i := range g.rows[:c.cut] {
		tree.Append(g.rows[i].RowHash)
	}
	if c.cut > 0 {
		doc.Cuts = append(doc.Cuts, archive.CatalogCut{Tenant: g.Tenant, ID: dataID, Size: tree.Size, Head: g.rows[c.cut-1].RowHash, Frontier: slices.Clone(tree.Frontier)})
	}
	day := func(r *chain.Row) string { return time.UnixMicro(r.ArchivedAt.N).UTC().Format(archive.DayLayout) }
	for rows := g.rows[c.cut:]; len(rows) > 0; {
		n := 0
		for n < len(rows) && day(&rows[n]) == day(&rows[0]) && rows[n].Epoch == rows[0].Epoch && (c.fileRows == 0 || n < c.fileRows) {
			if c.change != nil {
				c.change(&rows[n])
			}
			n++
		}
		f, err := archivetest.PutDataFile(ctx, m, g.Log, g.scheme, &tree, rows[:n], fmt.Sprintf("01KBCDEFGHJKMNPQRSTVWX%04d", doc.Version))
		if err != nil {
			return nil, err
		}
		files, rows = append(files, f), rows[n:]
	}
	return files, nil
}

// snapshotKinds returns the kinds of all rows of a line, by seq.
func (w *world) snapshotKinds() (rows []string) {
	w.t.Helper()
	s, err := archive.ReadSnapshot(context.Background(), w.memory, w.lineOf(0), nil)
	check(w.t, err)
	logs, _, err := rowsBelow(context.Background(), w.memory, s, compaction{watermark: s.Next()})
	check(w.t, err)
	for _, r := range logs["acme"].rows {
		reason, _, _ := strings.Cut(strings.TrimPrefix(string(r.Slots[audit.SlotContext]), `{"reason":"`), `"`)
		rows = append(rows, strings.TrimSuffix(r.Kind.S+":"+reason, ":"))
	}
	return rows
}

// Behind a compacted line ingest goes on as if there had been no compaction:
// repeats of rows that lie in data files are repeats, other content under their
// coordinates is a conflict, and verify finds one line. So it is where the
// segments are still there, are gone, or nothing signs.
func TestIngestGoesOnBehindACompactedLine(t *testing.T) {
	for _, signed := range []bool{true, false} {
		for _, c := range []compaction{{watermark: 3}, {watermark: 3, keep: true}, {watermark: 2}, {watermark: 3, fileRows: 2}} {
			t.Run(fmt.Sprintf("signed %v, watermark %d, kept %v", signed, c.watermark, c.keep), func(t *testing.T) {
				inWorld(t, 1, func(w *world) {
					mutate := func(*pipeline.Settings) {}
					if signed {
						key := newKey(t, "k")
						mutate, c.signers = signedBy(t, key), []note.Signer{key}
					}
					w.archivedWith(mutate, calls("a", 0, 3), calls("a", 3, 3), calls("b", 0, 1))
					w.compact(c)
					r := w.ingest(mutate)
					w.produce(0, calls("a", 1, 4)...)                // repeats
					w.produce(0, call("b", 0, `,"toolName":"x"`))    // a conflict
					w.produce(0, calls("c", 0, 2)...)                // new
					w.produce(0, call("b", 0, ""), call("c", 1, "")) // repeats
					w.waitCommitted(0, 16)
					r.wantCleanStop()
					w.wantExit(0)
					rows := w.snapshotKinds()
					if want := append(slices.Repeat([]string{"call"}, 7), "rejected:conflict", "call", "call"); !slices.Equal(rows, want) {
						t.Errorf("rows %q, want %q", rows, want)
					}
				})
			})
		}
	}
}

// eraseBy takes slots from the rows of a session.
func eraseBy(t *testing.T, session string, s chain.Sentinel) func(*chain.Row) {
	return func(row *chain.Row) {
		if row.SessionID.S == session {
			_, err := redact.Erase(chain.NewHasher(nil), row, s)
			check(t, err)
		}
	}
}

// Whatever has the coordinates of a row that was erased is a repeat of it and no
// conflict, after a start and in a process that knew the row. Of a row that was
// erased hard, or cut, no coordinates are left: what says something else is a row,
// and what repeats that one is a repeat.
func TestARepeatOfAnErasedRowIsNoConflict(t *testing.T) {
	const id = dataID
	for name, tc := range map[string]struct {
		c    compaction
		rows int
	}{
		"all":      {compaction{change: eraseBy(t, "s", chain.Sentinel{ID: id, All: true})}, 4},
		"one slot": {compaction{change: eraseBy(t, "s", chain.Sentinel{ID: id, Slots: chain.SlotSetOf(audit.SlotExt)})}, 4},
		"hard":     {compaction{change: eraseBy(t, "s", chain.Sentinel{ID: id, All: true, User: true, Hard: true})}, 6},
		"cut":      {compaction{cut: 2}, 4},
	} {
		for _, restart := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, restarted %v", name, restart), func(t *testing.T) {
				inWorld(t, 1, func(w *world) {
					r := w.ingest()
					w.produce(0, calls("s", 0, 2)...)
					w.waitCommitted(0, 2)
					time.Sleep(2 * time.Minute) // in which it is anchored
					if restart {
						r.wantCleanStop()
					}
					tc.c.watermark = int64(len(w.memoryKeys("log/")))
					w.compact(tc.c)
					if restart {
						r = w.ingest()
					}
					w.produce(0, calls("x", 0, 2)...) // after which the catalog was looked at
					w.waitCommitted(0, 4)
					other := `,"toolName":"other"`
					w.produce(0, call("s", 0, other), call("s", 0, other))
					w.waitCommitted(0, 6)
					w.produce(0, call("s", 1, other), call("s", 0, other), call("s", 1, other))
					w.waitCommitted(0, 9)
					r.wantCleanStop()
					rows := w.snapshotKinds()
					if len(rows) != tc.rows || slices.Contains(rows, "rejected:conflict") {
						t.Errorf("rows %q, want %d", rows, tc.rows)
					}
				})
			})
		}
	}
}

// Of two processes that knew a row one sees first that it was erased, and calls
// other content its repeat. The other one compares that, and does not hold what it
// remembers against it.
func TestTheOtherProcessMaySeeAnErasureFirst(t *testing.T) {
	for name, s := range map[string]chain.Sentinel{
		"all":  {ID: dataID, All: true},
		"hard": {ID: dataID, All: true, User: true, Hard: true},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				byHand := func(s *pipeline.Settings) {
					s.Topics, s.Assign = nil, []pipeline.Partition{{Topic: topic}}
					s.Batch = pipeline.Batch{Rows: 1, Strict: true}
				}
				slow := w.tether()
				met := slow.delay(func(c ask) bool { return c.op == "create" && strings.HasSuffix(c.key, "1.parquet") }, false, time.Minute)
				a, b := w.tether().ingest(1, byHand), slow.ingest(2, byHand)
				w.produce(0, call("s", 0, ""))
				a.waitOffset(1)
				b.waitOffset(1)
				time.Sleep(2 * time.Minute) // in which it is anchored
				w.compact(compaction{watermark: 1, change: eraseBy(t, "s", s)})
				w.produce(0, call("x", 0, ""), call("s", 0, `,"toolName":"other"`), call("x", 1, ""), call("s", 0, `,"toolName":"third"`), call("x", 2, ""))
				waitFor(t, "the slow one to write", met)
				a.waitOffset(6)
				b.waitOffset(6)
				if len(b.compared) < 4 {
					t.Errorf("compared %v, want all behind the first segment", b.compared)
				}
				a.wantCleanStop()
				b.wantCleanStop()
				if rows := w.snapshotKinds(); slices.Contains(rows, "rejected:conflict") != s.Hard {
					t.Errorf("rows %q", rows)
				}
			})
		})
	}
}

// grace makes the archive one whose snapshots are good for a minute, so that an
// hour's sleep is one of two minutes.
func (w *world) grace() {
	w.t.Helper()
	root := fmt.Sprintf(`{"format":"ledgerlake-v1","archiveId":"01KBCDEFGHJKMNPQRSTVWXYZ01","createdAt":"2000-01-01T00:00:00.000000Z","graceSeconds":%d}`, 60)
	_, err := w.memory.Create(context.Background(), archive.RootKey, []byte(root))
	check(w.t, err)
}

const asleepBeforeASegment = "before a segment"

// A process that sleeps while its segment is written by another one, anchored,
// compacted and deleted gets an answer that says nothing: it does not believe it,
// starts again from the bucket, and all records are there once.
func TestAProcessThatSleptStartsAgain(t *testing.T) {
	for name, at := range map[string]func(ask) bool{
		asleepBeforeASegment: func(c ask) bool {
			return c.op == "create" && strings.HasPrefix(c.key, "log/") && strings.HasSuffix(c.key, "1.parquet")
		},
		"before an anchor": func(c ask) bool {
			return c.op == "create" && strings.HasPrefix(c.key, "anchor/") && strings.HasSuffix(c.key, "1.note")
		},
		"before it checks what it signs": func(c ask) bool {
			return c.op == "get" && strings.HasPrefix(c.key, "log/") && strings.HasSuffix(c.key, "1.parquet")
		},
	} {
		for _, signed := range []bool{true, false} {
			if !signed && name != asleepBeforeASegment {
				continue
			}
			t.Run(fmt.Sprint(name, ", signed ", signed), func(t *testing.T) {
				inWorld(t, 1, func(w *world) {
					mutate, c := func(*pipeline.Settings) {}, compaction{watermark: 4}
					if signed {
						key := newKey(t, "k")
						mutate, c.signers = signedBy(t, key), []note.Signer{key}
					}
					byHand := func(s *pipeline.Settings) {
						mutate(s)
						s.Topics, s.Assign = nil, []pipeline.Partition{{Topic: topic}}
					}
					w.grace()
					wrote, slow := name == asleepBeforeASegment, w.tether()
					met := slow.delay(at, false, 5*time.Minute)
					a := slow.ingest(1, byHand)
					w.produce(0, calls("a", 0, 2)...)
					a.waitOffset(2)
					time.Sleep(2 * time.Minute)
					w.produce(0, calls("a", 2, 2)...)
					waitFor(t, "the process to sleep", met)
					b := w.tether().ingest(2, byHand)
					waitFor(t, "the other one to begin", func() bool { return b.status(0).NextOffset == 4 })
					w.produce(0, calls("b", 0, 2)...)
					b.waitOffset(6)
					w.produce(0, calls("b", 2, 2)...)
					b.waitOffset(8)
					time.Sleep(3 * time.Minute)
					b.wantCleanStop()
					segments := len(w.memoryKeys("log/"))
					c.watermark = int64(segments)
					w.compact(c)
					w.produce(0, calls("c", 0, 2)...)
					time.Sleep(5 * time.Minute)
					if len(a.stopped) > 0 {
						t.Fatalf("stopped: %v", a.stopped)
					}
					a.waitOffset(10)
					a.wantCleanStop()
					want := 0
					if wrote {
						want = 4 // what it wrote is a stray, until compaction sweeps it
					}
					w.wantExit(want)
					if rows := w.snapshotKinds(); len(rows) != 10 {
						t.Errorf("%d rows, want 10", len(rows))
					}
				})
			})
		}
	}
}

// Two processes slept. What the first writes at an ordinal that was compacted is a
// stray, and continues what the second knows: it must not go on from it.
func TestTwoThatSleptMakeNoLineOfTheirOwn(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		key := newKey(t, "k")
		byHand := func(s *pipeline.Settings) {
			signedBy(t, key)(s)
			s.AnchorTopic, s.Topics, s.Assign = "", nil, []pipeline.Partition{{Topic: topic}}
		}
		at := func(c ask) bool {
			return c.op == "create" && strings.HasPrefix(c.key, "log/") && strings.HasSuffix(c.key, "1.parquet")
		}
		w.grace()
		first, second := w.tether(), w.tether()
		w.archivedWith(byHand, calls("a", 0, 2))
		met, alsoMet := first.delay(at, false, 5*time.Minute), second.delay(at, false, 7*time.Minute)
		first.ingest(11, byHand)
		b := second.ingest(12, byHand)
		waitFor(t, "the second to begin", func() bool { return b.status(0).NextOffset == 2 })
		w.produce(0, calls("b", 0, 2)...)
		waitFor(t, "both to sleep", func() bool { return met() && alsoMet() })
		third := w.ingest(byHand)
		third.waitOffset(4)
		time.Sleep(2 * time.Minute)
		third.wantCleanStop()
		w.compact(compaction{watermark: 2, signers: []note.Signer{key}})
		waitFor(t, "the stray", func() bool { return len(w.memoryKeys("log/")) == 1 })
		first.cut()
		time.Sleep(3 * time.Minute)
		w.produce(0, calls("c", 0, 2)...)
		b.waitOffset(6)
		b.wantCleanStop()
		w.wantExit(4)
		if rows := w.snapshotKinds(); len(rows) != 6 {
			t.Errorf("%d rows, want 6", len(rows))
		}
	})
}

// A start can sleep before anything that it asks the bucket, while others write,
// anchor, and compact to the end of the line. It begins anew, or goes on behind
// that, and all records are there once.
func TestAStartThatSlept(t *testing.T) {
	for _, signed := range []bool{true, false} {
		slept := true
		for n := 1; slept; n++ {
			t.Run(fmt.Sprintf("signed %v, call %d", signed, n), func(t *testing.T) {
				inWorld(t, 1, func(w *world) { slept = w.startAsleep(signed, n) })
			})
		}
	}
}

// startAsleep reports whether a start made so many calls.
func (w *world) startAsleep(signed bool, n int) bool {
	w.grace()
	mutate, c := func(*pipeline.Settings) {}, compaction{watermark: 4}
	if signed {
		key := newKey(w.t, "k")
		mutate, c.signers = signedBy(w.t, key), []note.Signer{key}
	}
	byHand := func(s *pipeline.Settings) {
		mutate(s)
		s.AnchorTopic, s.Topics, s.Assign = "", nil, []pipeline.Partition{{Topic: topic}}
	}
	w.archivedWith(byHand, calls("a", 0, 2))
	r := w.ingest(byHand, unanchored)
	w.produce(0, calls("a", 2, 2)...)
	r.waitOffset(4)
	r.wantCleanStop()
	slow, seen := w.tether(), 0
	met := slow.delay(func(ask) bool { seen++; return seen == n }, false, 5*time.Minute)
	late := slow.ingest(9, byHand)
	time.Sleep(2 * time.Second)
	if !met() {
		return false
	}
	r = w.ingest(byHand)
	w.produce(0, append(calls("b", 0, 2), call("a", 3, ""))...)
	r.waitOffset(7)
	r.wantCleanStop()
	c.watermark = int64(len(w.memoryKeys("log/")))
	w.compact(c)
	w.produce(0, calls("c", 0, 2)...)
	time.Sleep(6 * time.Minute)
	if len(late.stopped) > 0 {
		w.t.Fatalf("stopped: %v", late.stopped)
	}
	late.waitOffset(9)
	late.wantCleanStop()
	w.wantExit(0)
	if rows := w.snapshotKinds(); len(rows) != 8 {
		w.t.Errorf("%d rows, want 8", len(rows))
	}
	return true
}

// In the steady state a writer looks at the catalog once in half of the grace,
// whatever it writes meanwhile.
func TestTheCatalogIsListedTwiceInTheGrace(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.grace()
		r := w.tether().ingest(1)
		w.produce(0, calls("a", 0, 1)...)
		w.waitCommitted(0, 1)
		w.bucket.mu.Lock()
		w.bucket.calls = nil
		w.bucket.mu.Unlock()
		for i := range 60 {
			w.produce(0, calls("b", i, 1)...)
			time.Sleep(2 * time.Second)
		}
		lists, creates := 0, 0
		w.bucket.mu.Lock()
		for _, call := range w.bucket.calls {
			if strings.HasPrefix(call, "list catalog/") {
				lists++
			}
			if strings.HasPrefix(call, "create log/") {
				creates++
			}
		}
		w.bucket.mu.Unlock()
		if lists > 4 || lists < 3 || creates < 60 {
			t.Errorf("%d LISTs for %d segments in two minutes, the grace being one", lists, creates)
		}
		r.wantCleanStop()
	})
}

// A start refuses a catalog that its anchors do not bear out, or that nobody good
// signed, and says what to do.
func TestAStartRefusesACatalog(t *testing.T) {
	key, stranger := newKey(t, "k"), newKey(t, "stranger")
	for name, tc := range map[string]struct {
		by     []note.Signer
		damage func(w *world)
		words  []string
	}{
		"of a stranger":             {by: []note.Signer{stranger}, words: []string{"stranger", "vkey"}},
		"that nobody signed":        {words: []string{"nobody has signed it", "catalog key"}},
		"whose anchors are missing": {by: []note.Signer{key}, damage: func(w *world) { w.remove(archive.AnchorKey(w.lineOf(0), int64(len(w.anchorsOf(0))-1))) }, words: []string{"anchors are missing", "restore"}},
		"whose file is gone":        {by: []note.Signer{key}, damage: func(w *world) { w.remove(w.memoryKeys("data/")[0]) }, words: []string{"data/"}},
		"whose file was changed": {by: []note.Signer{key}, damage: func(w *world) {
			file := w.memoryKeys("data/")[0]
			w.remove(file)
			_, err := w.memory.Create(context.Background(), file, []byte("x"))
			check(w.t, err)
		}, words: []string{"not the data file that the catalog lists"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				signed := func(s *pipeline.Settings) { signedBy(t, key)(s); s.AnchorTopic = "" }
				w.archivedWith(signed, calls("a", 0, 3), calls("a", 3, 3))
				w.compact(compaction{watermark: 2, signers: tc.by})
				if tc.damage != nil {
					tc.damage(w)
				}
				w.ingest(signed).wantStopped(tc.words...)
			})
		})
	}
}

// A segment that is compared with Kafka may name rows that lie in data files now,
// and were erased or cut since. A repeat of a row of which nothing is left that
// could say so is taken from nobody but an operator: any record could be called
// that.
func TestComparedWithRowsInDataFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		c      compaction
		forged bool
		hidden bool // nothing is left of the row that is repeated
	}{
		"whole":       {},
		"small files": {c: compaction{fileRows: 2}},
		"erased":      {c: compaction{change: eraseBy(t, "s", chain.Sentinel{ID: dataID, All: true})}},
		"erased hard": {hidden: true, c: compaction{change: eraseBy(t, "s", chain.Sentinel{ID: dataID, All: true, User: true, Hard: true})}},
		"cut":         {hidden: true, c: compaction{cut: 6}},
		"not as hashed": {forged: true, c: compaction{change: func(row *chain.Row) {
			row.TurnID = audit.Str("t-2")
		}}},
	} {
		for _, window := range []int{2, 100} {
			t.Run(fmt.Sprintf("%s, window %d", name, window), func(t *testing.T) {
				inWorld(t, 1, func(w *world) {
					key := newKey(t, "k")
					signed := func(s *pipeline.Settings) { signedBy(t, key)(s); s.AnchorTopic = "" }
					w.archivedWith(signed, calls("s", 0, 6), calls("u", 0, 1))
					tc.c.signers, tc.c.watermark = []note.Signer{key}, 2
					w.compact(compaction{watermark: 2, signers: tc.c.signers})
					r := w.tether().ingest(2, signed, unanchored)
					w.produce(0, append(calls("s", 0, 6), call("s", 4, `,"toolName":"x"`), call("s", 3, ""))...)
					r.waitOffset(15)
					r.wantCleanStop()
					w.compact(tc.c)
					other := func(s *pipeline.Settings) { s.Group, s.Window = "other", window }
					if tc.hidden {
						w.ingest(signed, other).wantStopped("it is called a repeat of seq", "trust-tail accepts it")
						keyed := signed
						signed = func(s *pipeline.Settings) { keyed(s); s.TrustTail = true }
					}
					again := w.ingest(signed, other)
					if tc.forged {
						again.wantStopped("data/acme/", "row_hash")
						return
					}
					again.waitOffset(15)
					again.wantCleanStop()
					if len(again.compared) == 0 {
						t.Error("nothing was compared")
					}
				})
			})
		}
	}
}

// A chain reset of a compacted line declares void what no anchor covers, and the
// line goes on behind it.
func TestResetOfACompactedLine(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.archivedWith(func(*pipeline.Settings) {}, calls("a", 0, 2), calls("a", 2, 2))
		w.compact(compaction{watermark: 2})
		r := w.ingest(unanchored)
		for i := range 3 {
			w.produce(0, calls("b", 2*i, 2)...)
			w.waitSegments(1 + i)
		}
		r.wantCleanStop()
		w.damage(3)
		w.ingest().wantStopped("reset-chain")
		plan := w.reset()
		if plan.Ordinal != 5 || len(plan.Voided) != 2 || plan.Offset != 6 {
			t.Errorf("segment %d declares %d void, and goes on at offset %d", plan.Ordinal, len(plan.Voided), plan.Offset)
		}
		r = w.ingest()
		w.waitCommitted(0, 10)
		r.wantCleanStop()
		w.wantExit(4)

		// Compaction takes all of that, and the epoch goes on.
		s, err := archive.ReadSnapshot(context.Background(), w.memory, w.lineOf(0), nil)
		check(t, err)
		w.compact(compaction{watermark: s.Next()})
		r = w.ingest()
		w.produce(0, call("b", 5, ""), call("c", 0, ""))
		w.waitCommitted(0, 12)
		r.wantCleanStop()
		w.wantExit(4)
		if rows := w.snapshotKinds(); len(rows) != 12 || !strings.HasPrefix(rows[6], audit.KindChainReset) {
			t.Errorf("rows %q", rows)
		}
	})
}

// The key of a log is tried on its newest row, also where that lies in a data
// file, and also where it was erased.
func TestKeyedLogsBehindACompactedLine(t *testing.T) {
	for name, change := range map[string]func(*chain.Row){
		"live": nil,
		"erased": func(row *chain.Row) {
			_, err := redact.Erase(chain.NewHasher(nil), row, chain.Sentinel{ID: dataID, All: true})
			check(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				r := w.ingest(keyedBy(someMaster))
				w.produceFor("acme", 0)
				w.waitSegments(1)
				r.wantCleanStop()
				w.compact(compaction{watermark: 1, change: change, keys: chain.MasterKeys(someMaster)})
				other := w.ingest(keyedBy(append([]byte("x"), someMaster...)))
				w.produceFor("acme", 1)
				other.wantStopped("row_hash")
				again := w.ingest(keyedBy(someMaster))
				w.waitSegments(1)
				again.wantCleanStop()
			})
		})
	}
}

// Where no key is known and the group has vouched for nothing, a start does not
// take over what it cannot compare, unless it is told to.
func TestAnUnsignedCompactedLineNeedsAVoucher(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.archivedWith(func(*pipeline.Settings) {}, calls("a", 0, 3))
		w.compact(compaction{watermark: 1})
		other := func(s *pipeline.Settings) { s.Group = "other" }
		w.ingest(other).wantStopped("vouched for nothing", "trust-tail")
		r := w.ingest(other, func(s *pipeline.Settings) { s.TrustTail = true })
		r.waitOffset(3)
		r.wantCleanStop()
		w.wantExit(0)
	})
}
