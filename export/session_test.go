package export_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/export"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// sessions returns an archive with one long session in many small files and some
// segments of two lines: ids in order, out of order, twice, and none.
func sessions(random *rand.Rand) (*prooftest.Archive, int) {
	a := prooftest.New()
	n := 0
	for p := range int32(2) {
		l := a.Line("audit.calls", p)
		for range 8 {
			l.Segment(func(b *prooftest.Batch) {
				for range 6 {
					b.Call("other")
					b.Row("acme", func(r *audit.Record) {
						r.Kind, r.RedactionPolicy = audit.Str(audit.KindCall), audit.Str(audit.PolicyNone)
						r.SessionID, r.CreatedAt = audit.Str("long"), r.KafkaTimestamp
						switch random.IntN(8) {
						case 0: // one without an id
						case 1:
							r.CreatedAt = audit.Int{}
						case 2: // one that came late, or twice
							r.RecordID = audit.Str(fmt.Sprintf("01KBCDEFGHJKMNPQRSTV%06d", random.IntN(30)))
						default:
							r.RecordID = audit.Str(fmt.Sprintf("01KBCDEFGHJKMNPQRSTV%06d", n))
						}
						n++
					})
				}
				a.Advance(time.Hour)
			})
		}
		l.Anchor()
		l.Compact(prooftest.Compaction{Watermark: 6, FileRows: 5})
	}
	return a, n
}

// The pages of a session, one after the other by the cursor of the last row, are
// all of it, each row once, the newest first; whatever the limit.
func TestPagesOfASession(t *testing.T) {
	for seed := range uint64(4) {
		a, n := sessions(rand.New(rand.NewPCG(seed, 1)))
		e := open(t, prooftest.Bucket(a.Objects()), export.Options{})
		all, err := e.Session(t.Context(), "acme", "long", export.Page{Limit: 1000})
		if err != nil || len(all) != n {
			t.Fatalf("%d rows of %d, %v", len(all), n, err)
		}
		if !slices.IsSortedFunc(all, func(a, b *export.Row) int { return -strings.Compare(a.Cursor(), b.Cursor()) }) {
			t.Error("the newest do not come first")
		}
		for _, limit := range []int{3, 7, 50} {
			var got []string
			for page := (export.Page{Limit: limit}); ; {
				rows, err := e.Session(t.Context(), "acme", "long", page)
				if err != nil {
					t.Fatal(err)
				}
				if got = append(got, names(rows)...); len(rows) < limit {
					break
				}
				page.Before = rows[len(rows)-1].Cursor()
			}
			if !slices.Equal(got, names(all)) {
				t.Errorf("seed %d, pages of %d:\n%q\nwant\n%q", seed, limit, got, names(all))
			}
		}
	}
}

// A page of the newest rows reads those objects that can have some, and of the
// others the end.
func TestAPageDoesNotReadAll(t *testing.T) {
	a := prooftest.New()
	l := a.Line("audit.calls", 0)
	for s := range 20 {
		l.Segment(func(b *prooftest.Batch) {
			for i := range 200 {
				b.Row("acme", func(r *audit.Record) {
					r.Kind, r.RedactionPolicy = audit.Str(audit.KindCall), audit.Str(audit.PolicyNone)
					r.SessionID, r.CreatedAt = audit.Str("long"), r.KafkaTimestamp
					r.RecordID = audit.Str(fmt.Sprintf("01KBCDEFGHJKMNPQRSTV%06d", s*200+i))
					r.Slots[audit.SlotExt] = noise(s*200+i, 1000) // so that an object is more than its end
				})
			}
		})
	}
	l.Anchor()
	l.Compact(prooftest.Compaction{Watermark: 20, FileRows: 200})
	e := open(t, prooftest.Bucket(a.Objects()), export.Options{})
	before := e.Cost()
	rows, err := e.Session(t.Context(), "acme", "long", export.Page{Limit: 10})
	if err != nil || len(rows) != 10 || rows[0].RecordID.S[20:] != "003999" {
		t.Fatal(names(rows), err)
	}
	cost := e.Cost().Sub(before)
	if cost.Gets > 20+5 || cost.Lists > 0 || cost.SegmentGets > 0 {
		t.Errorf("the newest page: %+v", cost)
	}
	before = e.Cost()
	if rows, err = e.Session(t.Context(), "acme", "long", export.Page{Limit: 10, Before: rows[9].Cursor()}); err != nil || len(rows) != 10 {
		t.Fatal(names(rows), err)
	}
	if cost = e.Cost().Sub(before); cost.Gets > 5 {
		t.Errorf("the next page, once the ends are known: %+v", cost)
	}
}

// noise returns JSON that does not compress.
func noise(seed, n int) []byte {
	random := rand.New(rand.NewPCG(uint64(seed), 3))
	b := []byte(`{"x":"`)
	for range n {
		b = append(b, byte('a'+random.IntN(26)))
	}
	return append(b, `"}`...)
}
