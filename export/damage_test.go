package export_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// faulty yields what a stream says: rows by name, errors by their text.
func faulty(t *testing.T, seq func(func(*export.Row, error) bool)) (rows []string, faults []error) {
	t.Helper()
	for row, err := range seq {
		if err != nil {
			if !errors.Is(err, export.ErrTampered) {
				t.Errorf("an error that is no fault of the archive: %v", err)
			}
			faults = append(faults, err)
			continue
		}
		rows = append(rows, names([]*export.Row{row})...)
	}
	return rows, faults
}

// dataKey returns the key of a tenant's data file.
func dataKey(objects map[string][]byte, tenant string) string {
	for key := range objects {
		if strings.HasPrefix(key, archive.DataPrefix+tenant+"/") {
			return key
		}
	}
	return ""
}

// What was changed is not shown: the log ends there with an error that names the
// object, and all other logs go on.
func TestDamageEndsItsLogAlone(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(a *prooftest.Archive, one *prooftest.Line, objects map[string][]byte) (key string)
		last   string // of acme in line 0, which is shown
		other  int    // rows of other in line 0
	}{
		"a row with another content": {func(_ *prooftest.Archive, one *prooftest.Line, objects map[string][]byte) string {
			s := one.Segments[2]
			s.Rows[4].Slots[audit.SlotTokenCost] = []byte(`{}`) // of acme: seq 24
			s.Encode()
			objects[one.Key(2)] = s.Body
			return one.Key(2)
		}, "0/acme/23", 40},
		"a row with another user": {func(_ *prooftest.Archive, one *prooftest.Line, objects map[string][]byte) string {
			s := one.Segments[3]
			s.Rows[0].UserID = audit.Str("user-9")
			s.Encode()
			objects[one.Key(3)] = s.Body
			return one.Key(3)
		}, "0/acme/32", 40},
		"a derived column that says something else": {func(_ *prooftest.Archive, one *prooftest.Line, objects map[string][]byte) string {
			s := one.Segments[3]
			s.Rows[0].SelectedReason = audit.Str("user-explicit")
			s.Encode()
			objects[one.Key(3)] = s.Body
			return one.Key(3)
		}, "0/acme/32", 40},
		"a tenant whom the metadata hides": {func(_ *prooftest.Archive, one *prooftest.Line, objects map[string][]byte) string {
			s := one.Segments[3]
			for i := range s.Meta.Logs {
				if s.Meta.Logs[i].Tenant == "acme" {
					s.Meta.Logs[i].Tenant = "acmf"
				}
			}
			s.Encode()
			objects[one.Key(3)] = s.Body
			return one.Key(3)
		}, "0/acme/32", 30},
		"two rows that changed places": {func(_ *prooftest.Archive, one *prooftest.Line, objects map[string][]byte) string {
			s := one.Segments[2]
			s.Rows[4], s.Rows[6] = s.Rows[6], s.Rows[4]
			s.Encode()
			objects[one.Key(2)] = s.Body
			return one.Key(2)
		}, "0/acme/23", 40},
		"a row that is gone": {func(_ *prooftest.Archive, one *prooftest.Line, objects map[string][]byte) string {
			s := one.Segments[3]
			s.Rows = slices.Delete(s.Rows, 20, 21) // the reject, which is the last one
			s.Meta.Rows--
			for i := range s.Meta.Logs {
				if s.Meta.Logs[i].Tenant == "acme" {
					s.Meta.Logs[i].Rows--
				}
			}
			s.Meta.Gaps = []archive.Gap{{From: s.Meta.NextOffset - 1, To: s.Meta.NextOffset, Cause: archive.GapControl}}
			s.Encode()
			objects[one.Key(3)] = s.Body
			return one.Key(3)
		}, "0/acme/42", 40},
		"a data file of other bytes": {func(_ *prooftest.Archive, _ *prooftest.Line, objects map[string][]byte) string {
			key := dataKey(objects, "acme")
			objects[key] = slices.Clone(objects[key])
			objects[key][200] ^= 1
			return key
		}, "", 40},
		"a data file that is gone": {func(_ *prooftest.Archive, _ *prooftest.Line, objects map[string][]byte) string {
			key := dataKey(objects, "acme")
			delete(objects, key)
			return key
		}, "", 40},
		"a segment that is none": {func(_ *prooftest.Archive, one *prooftest.Line, objects map[string][]byte) string {
			objects[one.Key(2)] = []byte("PAR1 no more PAR1")
			return one.Key(2)
		}, "0/acme/21", 20},
		"a segment of another line": {func(_ *prooftest.Archive, one *prooftest.Line, objects map[string][]byte) string {
			for key, body := range objects {
				if strings.HasPrefix(key, "log/") && strings.Contains(key, "/00001/") {
					objects[one.Key(2)] = body
				}
			}
			return one.Key(2)
		}, "0/acme/21", 20},
	} {
		for _, memory := range []int64{1, 1 << 30} { // in parts, and whole
			a, one, _ := small()
			objects := a.Objects()
			key := c.damage(a, one, objects)
			e := open(t, prooftest.Bucket(objects), export.Options{Memory: memory})
			rows, faults := faulty(t, e.Range(t.Context(), export.Range{}))
			var last string
			other, second := 0, 0
			for _, r := range rows {
				switch {
				case strings.HasPrefix(r, "0/acme/"):
					last = r
				case strings.HasPrefix(r, "0/other/"):
					other++
				default:
					second++
				}
			}
			inParts := name == "a data file of other bytes" && memory == 1 // which notices later
			if len(faults) == 0 || !strings.Contains(faults[0].Error(), key) || last != c.last && !inParts || other != c.other || second != 10 {
				t.Errorf("%s: last %q, %d of other, %d of the second line: %v", name, last, other, second, faults)
			}
		}
	}
}

// Look-ups name what is damaged, and show what they find elsewhere.
func TestLookUpsGoAroundDamage(t *testing.T) {
	a, one, _ := small()
	objects := a.Objects()
	s := one.Segments[2]
	for i := range s.Rows {
		if s.Rows[i].Seq.N == 24 && s.Rows[i].TenantID.S == "acme" {
			s.Rows[i].ModelID = audit.Str("model-b")
		}
	}
	s.Encode()
	objects[one.Key(2)] = s.Body
	delete(objects, dataKey(objects, "acme"))
	e := open(t, prooftest.Bucket(objects), export.Options{})
	for name, ask := range map[string]func() ([]*export.Row, error){
		"turn":    func() ([]*export.Row, error) { return e.Turn(t.Context(), "acme", "", "turn-5") },
		"session": func() ([]*export.Row, error) { return e.Session(t.Context(), "acme", "sess-0", export.Page{}) },
	} {
		rows, err := ask()
		if len(rows) == 0 || !errors.Is(err, export.ErrTampered) || !strings.Contains(err.Error(), dataKey(a.Objects(), "acme")) {
			t.Errorf("%s: %q, %v", name, names(rows), err)
		}
		if slices.Contains(names(rows), "0/acme/24") {
			t.Errorf("%s: a row that was changed is shown", name)
		}
	}
	if rows, err := e.At(t.Context(), "acme", nil, 24); len(rows) > 0 || !errors.Is(err, export.ErrTampered) || !strings.Contains(err.Error(), "seq 24 of tenant \"acme\"") {
		t.Errorf("%v, %v", names(rows), err)
	}
	if rows, err := e.Turn(t.Context(), "other", "", "turn-0"); len(rows) != 4 || err != nil {
		t.Errorf("another tenant: %v, %v", names(rows), err)
	}
}

// With keys, a catalog that none of them signed is none to go by.
func TestCatalogsCountByTheirSignature(t *testing.T) {
	a, _, _ := small() // nobody signs it
	e := open(t, prooftest.Bucket(a.Objects()), export.Options{Keys: ring()})
	rows, faults := faulty(t, e.Range(t.Context(), export.Range{}))
	if len(faults) != 1 || !errors.Is(faults[0], archive.ErrCatalog) || len(rows) != 10 {
		t.Errorf("%d rows, %v", len(rows), faults)
	}
}

// A position is held against the archive: one of another history is an error, with
// the place; one at the end of the log is none.
func TestRowsFromAPosition(t *testing.T) {
	a, one, _ := small()
	e := open(t, prooftest.Bucket(a.Objects()), export.Options{})
	hashes := []chain.Hash{chain.Genesis(chain.SchemeV1, chain.Log{ArchiveID: a.ID, Tenant: "acme", Topic: one.Topic, TopicID: one.TopicID, Partition: one.Partition})}
	for _, s := range one.Segments {
		for i := range s.Rows {
			if s.Rows[i].TenantID.S == "acme" {
				hashes = append(hashes, s.Rows[i].RowHash)
			}
		}
	}
	for from := range hashes {
		scan := export.Scan{Line: one.Line, Tenant: "acme", From: int64(from), Prev: &hashes[from]}
		rows, err := gather(e.Rows(t.Context(), scan))
		if err != nil || len(rows) != len(hashes)-1-from || len(rows) > 0 && rows[0].Seq.N != int64(from) {
			t.Fatalf("from %d: %d rows, %v", from, len(rows), err)
		}
		scan.Prev = &chain.Hash{1}
		if rows, err := gather(e.Rows(t.Context(), scan)); len(rows) > 0 || !errors.Is(err, export.ErrTampered) || !strings.Contains(err.Error(), "acme") {
			t.Fatalf("from %d behind another row: %d rows, %v", from, len(rows), err)
		}
	}
	beyond := export.Scan{Line: one.Line, Tenant: "acme", From: int64(len(hashes))}
	if rows, err := gather(e.Rows(t.Context(), beyond)); len(rows) > 0 || err != nil {
		t.Errorf("%d rows, %v", len(rows), err)
	}
	beyond.Prev = &hashes[0]
	if _, err := gather(e.Rows(t.Context(), beyond)); !errors.Is(err, export.ErrTampered) {
		t.Errorf("behind the end: %v", err)
	}
}

// The end of a large file is read without what lies in front of it, and is held
// against the row that it follows.
func TestTheEndOfAFileIsReadAlone(t *testing.T) {
	a := prooftest.New()
	l := a.Line("audit.calls", 0)
	for s := range 10 {
		l.Segment(func(b *prooftest.Batch) {
			for i := range 300 {
				b.Row("acme", func(r *audit.Record) {
					r.Kind, r.RedactionPolicy = audit.Str(audit.KindCall), audit.Str(audit.PolicyNone)
					r.Slots[audit.SlotExt] = noise(s*300+i, 2000)
				})
			}
		})
	}
	l.Anchor()
	l.Compact(prooftest.Compaction{Watermark: 10})
	e := open(t, prooftest.Bucket(a.Objects()), export.Options{})
	before := l.Segments[9].Rows[279].RowHash
	for from, size := range map[int64]int64{2980: 1_000_000, 10: 20_000_000} {
		cost := e.Cost()
		rows, err := gather(e.Rows(t.Context(), export.Scan{Line: l.Line, Tenant: "acme", From: from}))
		if err != nil || int64(len(rows)) != 3000-from || rows[0].Seq.N != from {
			t.Fatalf("from %d: %d rows, %v", from, len(rows), err)
		}
		if n := e.Cost().Sub(cost).Bytes; n > size {
			t.Errorf("from %d: %d bytes", from, n)
		}
	}
	for prev, fits := range map[chain.Hash]bool{before: true, {1}: false} {
		_, err := gather(e.Rows(t.Context(), export.Scan{Line: l.Line, Tenant: "acme", From: 2980, Prev: &prev}))
		if (err == nil) != fits || err != nil && !errors.Is(err, export.ErrTampered) {
			t.Errorf("behind %s: %v", prev, err)
		}
	}
}

// A log whose prefix was dropped begins behind it.
func TestRowsOfALogThatWasCut(t *testing.T) {
	a := prooftest.New()
	l := a.Line("audit.calls", 0)
	l.Segment(func(b *prooftest.Batch) {
		for range 10 {
			b.Call("acme")
		}
	})
	l.Anchor()
	cut := l.CutAt("acme", prooftest.OrderID(1), 6)
	l.Compact(prooftest.Compaction{Watermark: 1, Drop: map[string]*prooftest.Cut{"acme": cut}})
	l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	e := open(t, prooftest.Bucket(a.Objects()), export.Options{})
	if rows := names(collect(t, e.Rows(t.Context(), export.Scan{Line: l.Line, Tenant: "acme", From: 2}))); len(rows) != 5 || rows[0] != "0/acme/6" {
		t.Errorf("%q", rows)
	}
	logs, err := e.Logs(t.Context(), "acme")
	if err != nil || len(logs) != 1 || logs[0].First != 6 || logs[0].Next != 11 {
		t.Errorf("%+v, %v", logs, err)
	}
	for prev, fits := range map[chain.Hash]bool{cut.Head: true, {7}: false} {
		_, err := gather(e.Rows(t.Context(), export.Scan{Line: l.Line, Tenant: "acme", From: 6, Prev: &prev}))
		if (err == nil) != fits {
			t.Errorf("at the cut: %v", err)
		}
	}
}

// Unchecked, a row that was changed comes, and says that it was not checked.
func TestRowsUnchecked(t *testing.T) {
	a, one, _ := small()
	s := one.Segments[3]
	s.Rows[0].ModelID = audit.Str("model-b")
	s.Rows[18].RowHash[0] ^= 1 // the last call of acme
	s.Encode()
	e := open(t, prooftest.Bucket(a.Objects()), export.Options{})
	scan := export.Scan{Line: one.Line, Tenant: "acme", From: 33}
	if _, err := gather(e.Rows(t.Context(), scan)); !errors.Is(err, export.ErrTampered) {
		t.Error(err)
	}
	scan.Unchecked = true
	rows, err := gather(e.Rows(t.Context(), scan))
	if err != nil || len(rows) != 11 || slices.ContainsFunc(rows, func(r *export.Row) bool { return r.Checked }) {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}
