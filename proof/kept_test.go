package proof_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// An object that was doomed when the receipt came, and still holds what was
// erased, is a fault; unless the receipt itself says of this object that it could
// not go, because of a lock: then it is to be looked at.
func TestWhatALockKeepsIsToBeLookedAt(t *testing.T) {
	id := prooftest.OrderID
	for name, key := range map[string]func(h *history) string{
		"a segment":   func(h *history) string { return h.calls.Key(0) },
		"a data file": func(h *history) string { return dataKey(h, "acme", 0) },
	} {
		for said, exit := range map[string]int{"KEY is locked in the store": 4, "KEYx is locked in the store": 1, "something is locked in the store": 1} {
			t.Run(name+"/"+said, func(t *testing.T) {
				old := newHistory()
				old.calls.Compact(prooftest.Compaction{Watermark: 9, FileRows: 2, ULID: id(7)})
				kept := key(old)
				h := newHistory()
				erase := func(row *chain.Row) {
					if row.TenantID.S == "acme" && row.Seq.N == 0 {
						prooftest.Erase(row, id(1))
					}
				}
				h.calls.Compact(prooftest.Compaction{Watermark: 9, FileRows: 2, ULID: id(8), Change: erase, Catalog: func(cat *archive.Catalog) {
					cat.Doomed = append(cat.Doomed, archive.CatalogDoomed{Key: kept})
				}})
				h.Later(time.Minute)
				h.order(func(b *prooftest.Batch) {
					b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(map[string]any{"turnId": "turn-0"}, "*"))
					receipt := h.calls.Receipt(id(1), "*", [2]int64{0, 0})
					receipt["outOfReach"] = []string{strings.Replace(said, "KEY", kept, 1)}
					b.Order("acme", audit.KindErasureDone, id(2), receipt)
				})
				objects := h.Objects()
				objects[kept] = bodyOf(old, kept)
				r := verifyWith(t, objects, proof.Options{Keys: ring(t, keyA)})
				wantExit(t, r, exit)
				if told := strings.Contains(strings.Join(r.Looks, " "), kept+")"); told != (exit == 4) {
					t.Errorf("looks %q", r.Looks)
				}
			})
		}
	}
}

// bodyOf returns an object of a history.
func bodyOf(h *history, key string) []byte {
	for i := range h.calls.Segments {
		if h.calls.Key(i) == key {
			return h.calls.Segments[i].Body
		}
	}
	return h.Others[key]
}
