package compaction

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// filesOf returns the files of a tenant that the newest catalog names.
func (w *world) filesOf(l archive.Line, tenant string) (files []archive.CatalogFile) {
	w.t.Helper()
	s, err := archive.ReadSnapshot(context.Background(), w.store, l, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range s.Files {
		if f.Tenant == tenant {
			files = append(files, f)
		}
	}
	return files
}

// Files of a day grow: neighbours become one file, a row is written again as
// often as there are levels, a day that is over has one file, and an epoch begins
// one.
func TestFilesGrow(t *testing.T) {
	w := newWorld(t)
	w.settings.MergeFiles = 4
	e := New(w.settings)
	merged := int64(0)
	for i := range 20 {
		var voided []archive.Voided
		if i == 10 {
			voided = w.calls.RollBack(9)
		}
		w.calls.Segment(func(b *prooftest.Batch) {
			if i == 10 {
				b.Reset("acme", "operator", voided...)
				b.Reset("globex", "operator", voided...)
			}
			for range 20 {
				b.Call("acme")
			}
			b.Call("globex")
		})
		if i == 9 {
			continue // void before long
		}
		w.calls.Anchor()
		w.land()
		for _, r := range w.passes(e, w.calls.Line, nil) {
			merged += r.Merged
		}
	}
	w.wantExit(4)
	if files := w.filesOf(w.calls.Line, "globex"); len(files) >= 8 || len(files) < 2 {
		t.Fatalf("%d files of an open day", len(files))
	}
	w.later(26 * time.Hour)
	w.passes(e, w.calls.Line, nil)
	files := w.filesOf(w.calls.Line, "acme")
	if len(files) != 2 || files[1].FirstSeq != 180 {
		t.Fatalf("%d files of a day that is over: %+v", len(files), files)
	}
	w.later(2 * time.Hour)
	w.passes(e, w.calls.Line, nil)
	r := w.wantExit(4)
	if r.StrayCount > 0 || r.Totals.DataFiles != 4 || r.Totals.Rows != 19*21+2 {
		t.Fatalf("%+v", r.Totals)
	}
	if merged == 0 || merged > 2*60 {
		t.Fatalf("%d files were merged", merged)
	}
}

// A full file is closed, and the next one begins; none is larger than the target
// by more than a batch of rows.
func TestFilesEndBySize(t *testing.T) {
	w := newWorld(t)
	w.settings.TargetBytes = 60_000
	for range 20 {
		w.calls.Segment(func(b *prooftest.Batch) {
			for range 100 {
				b.Large("acme")
			}
		})
	}
	w.calls.Anchor()
	w.land()
	w.passes(New(w.settings), w.calls.Line, nil)
	files := w.filesOf(w.calls.Line, "acme")
	if len(files) < 3 || slices.ContainsFunc(files, func(f archive.CatalogFile) bool { return f.Bytes > 100_000 }) {
		t.Fatalf("%d files: %+v", len(files), files)
	}
	w.wantExit(0)
}

// A row that repeats an older one of its log says which: also one in a file of
// before, also one whose content was erased; not one of other content.
func TestRepeatsAreMarked(t *testing.T) {
	w := newWorld(t)
	w.settings.RepeatFiles = 4
	e := New(w.settings)
	call := func(b *prooftest.Batch, turn string, n int64, said string) {
		b.Row("acme", func(r *audit.Record) {
			r.Kind, r.TurnID, r.SeqWithinTurn, r.RedactionPolicy = audit.Str(audit.KindToolCall), audit.Str(turn), audit.I64(n), audit.Str(audit.PolicyNone)
			r.Slots[audit.SlotContext] = []byte(said)
		})
	}
	w.calls.Segment(func(b *prooftest.Batch) {
		call(b, "t-1", 0, "{}")
		call(b, "t-1", 1, "{}")
		call(b, "t-1", 0, "{}")
		call(b, "t-1", 0, `{"other":1}`)
		call(b, "t-2", 0, `{"erased":1}`)
	})
	w.calls.Anchor()
	w.land()
	w.order("acme", audit.KindRedaction, prooftest.OrderID(1), prooftest.Redaction(map[string]any{"turnId": "t-2"}, "*"))
	w.govern(e)
	w.calls.Segment(func(b *prooftest.Batch) {
		call(b, "t-1", 1, "{}")
		call(b, "t-2", 0, `{"erased":1}`)
		call(b, "t-3", 0, "{}")
	})
	w.calls.Anchor()
	w.land()
	w.govern(e)
	want := map[int64]int64{2: 0, 5: 1, 6: 4}
	got := map[int64]int64{}
	for _, f := range w.filesOf(w.calls.Line, "acme") {
		body, err := w.store.Get(context.Background(), f.Key)
		if err != nil {
			t.Fatal(err)
		}
		file, _, err := archive.OpenDataFile(body, &f)
		if err != nil {
			t.Fatal(err)
		}
		for row, err := range file.Rows() {
			if err != nil {
				t.Fatal(err)
			}
			if row.RepeatOf.Valid {
				got[row.Seq.N] = row.RepeatOf.N
			}
		}
	}
	if len(got) != len(want) || got[2] != want[2] || got[5] != want[5] || got[6] != want[6] {
		t.Fatalf("%v, want %v", got, want)
	}
	w.wantExit(4)
}
