package proof_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// What somebody may try with erasures, each named by a verification: that nothing
// is erased by an order that was made up, that nothing is said to be gone and is
// there, and that nothing that was ordered is left undone in silence.
func TestErasuresThatAreNotRight(t *testing.T) {
	id, turn := prooftest.OrderID, map[string]any{"turnId": "turn-0"}
	erased := func(row *chain.Row) {
		if row.TenantID.S == "acme" && row.Seq.N == 0 {
			prooftest.Erase(row, id(1))
		}
	}
	compact := func(h *history, change func(*chain.Row)) {
		h.calls.Compact(prooftest.Compaction{Watermark: 9, FileRows: 4, Change: change})
	}
	order := func(h *history, by *sign.Signer) {
		h.order(func(b *prooftest.Batch) {
			b.OrderSigned("acme", audit.KindRedaction, id(1), id(1), prooftest.Redaction(turn, "*"), by)
		})
	}
	receipt := func(h *history, by *sign.Signer) {
		h.order(func(b *prooftest.Batch) {
			b.OrderSigned("acme", audit.KindErasureDone, id(2), id(2), h.calls.Receipt(id(1), "*", [2]int64{0, 0}), by)
		})
	}
	// inForce puts control keys into force long before what follows.
	inForce := func(h *history) {
		h.Keys.Control = []string{keyB.VKey()}
		h.control.Segment(func(b *prooftest.Batch) {
			b.OrderSigned("globex", audit.KindLegalHold, id(9), id(9), map[string]any{"scope": map[string]any{"tenant": true}, "set": false}, keyB)
		})
		h.control.Anchor()
		h.Later(time.Hour)
	}
	for name, c := range map[string]struct {
		exit  int
		says  string
		build func(h *history)
	}{
		"all in order": {4, "1 row erased, of which", func(h *history) {
			inForce(h)
			order(h, keyB)
			compact(h, erased)
			receipt(h, keyB)
		}},
		"a redaction that nobody signed": {1, "control keys are in force, and the row has no signature", func(h *history) {
			inForce(h)
			order(h, nil)
			compact(h, erased)
			receipt(h, keyB)
		}},
		"a redaction of another key": {1, "control keys are in force, and it is signed by no good control key", func(h *history) {
			inForce(h)
			order(h, prooftest.Signer("other.example/key"))
			compact(h, erased)
			receipt(h, keyB)
		}},
		"no redaction": {1, "which no control row gives", func(h *history) {
			inForce(h)
			compact(h, erased)
		}},
		"no receipt": {4, "of 1 row something was erased by an order that has no receipt yet", func(h *history) {
			inForce(h)
			order(h, keyB)
			compact(h, erased)
		}},
		"no receipt for more than 30 days": {4, "1 redaction without a receipt for more than 30 days", func(h *history) {
			inForce(h)
			order(h, keyB)
			h.Later(31 * 24 * time.Hour)
			h.control.Segment(func(b *prooftest.Batch) {
				b.OrderSigned("globex", audit.KindLegalHold, id(8), id(8), map[string]any{"scope": map[string]any{"tenant": true}, "set": true}, keyB)
			})
			h.control.Anchor()
		}},
		"a receipt of a row that is there": {1, "says that it was erased, and what salts are made of is still there", func(h *history) {
			inForce(h)
			order(h, keyB)
			compact(h, nil)
			receipt(h, keyB)
		}},
		"a catalog of another key": {1, "it is signed, but by no key that is good for it", func(h *history) {
			h.Signers = []*sign.Signer{prooftest.Signer("other.example/key")}
			compact(h, nil)
		}},
		"a catalog that nobody signed": {3, "1 note without a signature, while others are signed", func(h *history) {
			h.Signers = nil
			compact(h, nil)
		}},
		"a catalog that was changed": {1, "a signature in the name of a good key is not its signature", func(h *history) {
			compact(h, nil)
			key := archive.CatalogKey(h.calls.Line, 0)
			h.Others[key] = []byte(strings.Replace(string(h.Others[key]), `"watermark":9`, `"watermark":8`, 1))
		}},
		"a redaction that a producer sent": {1, "a control row in a line of data rows", func(h *history) {
			h.calls.Segment(func(b *prooftest.Batch) { b.Order("acme", audit.KindRedaction, id(1), prooftest.Redaction(turn, "*")) })
			h.calls.Anchor()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory()
			c.build(h)
			r := verifyWith(t, h.Objects(), proof.Options{Keys: ring(t, keyA)})
			wantExit(t, r, c.exit)
			said := strings.Join(slices.Concat(r.Looks, r.Less, r.Notes), "\n")
			for _, f := range r.Faults {
				said += "\n" + f.String()
			}
			if !strings.Contains(said, c.says) {
				t.Errorf("%s: does not say %q", said, c.says)
			}
		})
	}
}
