package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// compactedSubject is an archive with a line whose first three segments became
// data files, in which one row is erased: a control row orders it, another one
// is the receipt. change changes what compaction makes of it.
func compactedSubject(change func(*subject, *prooftest.Compaction)) *subject {
	s := newSubject(prooftest.ID)
	s.control = s.Line(audit.ControlTopic, 0)
	s.sign(prooftest.Signer(longLived))
	s.fill(func(*prooftest.Batch) {})
	order := prooftest.OrderID(1)
	first := s.calls.Segments[0].Rows[0].RecordID.S
	s.control.Segment(func(b *prooftest.Batch) {
		b.Order("acme", audit.KindRedaction, order, prooftest.Redaction(map[string]any{"recordId": first}, "*"))
	})
	s.control.Segment(func(b *prooftest.Batch) {
		b.Order("acme", audit.KindErasureDone, prooftest.OrderID(2), s.calls.Receipt(order, "*", [2]int64{0, 0}))
	})
	s.anchor(s.control)
	c := prooftest.Compaction{Watermark: 3, FileRows: 2, Change: func(row *chain.Row) {
		if row.RecordID.S == first {
			prooftest.Erase(row, order)
		}
	}}
	change(s, &c)
	s.calls.Compact(c)
	return s
}

// compactedAttacks are on data files, catalogs, and what compaction may do to
// rows.
func compactedAttacks() []attack {
	return onlyOf([]string{compacted}, slices.Concat(dataAttacks(), compactionAttacks())...)
}

// dataAttacks take objects of a compacted line away, and move them.
func dataAttacks() (all []attack) {
	const kind = "data files and catalogs dropped, swapped, moved"
	const most = 8 // objects
	for i := range most {
		at := func(s *subject) string {
			keys := slices.Sorted(maps.Keys(s.Others))
			return keys[i%len(keys)]
		}
		all = append(all,
			on(kind, fmt.Sprintf("object %d dropped", i), func(s *subject, o objects) bool { delete(o, at(s)); return true }),
			on(kind, fmt.Sprintf("object %d given to another tenant", i), func(s *subject, o objects) bool {
				key := at(s)
				parts := strings.Split(key, "/")
				parts[1] = "globex"
				o[strings.Join(parts, "/")] = o[key]
				delete(o, key)
				return parts[0] == "data"
			}),
			on(kind, fmt.Sprintf("object %d swapped with another", i), func(s *subject, o objects) bool {
				keys := slices.Sorted(maps.Keys(s.Others))
				a, b := at(s), keys[(i+1)%len(keys)]
				o[a], o[b] = o[b], o[a]
				return true
			}),
			wanting(4, on(kind, fmt.Sprintf("object %d copied beside itself", i), func(s *subject, o objects) bool {
				o[at(s)+"~"] = o[at(s)]
				return true
			})))
	}
	return all
}

// compactionAttacks compact otherwise than they may, and sign the catalog with
// the right key, if no other is named.
func compactionAttacks() (all []attack) {
	wrong := func(exit int, kind, name string, change func(*subject, *prooftest.Compaction)) {
		all = append(all, attack{kind: kind, name: name, want: exit, do: func(*subject) objects { return compactedSubject(change).pack() }})
	}
	row := func(kind, name string, seq int64, do func(*chain.Row)) {
		wrong(1, kind, fmt.Sprintf("%s, row %d", name, seq), func(_ *subject, c *prooftest.Compaction) {
			before := c.Change
			c.Change = func(row *chain.Row) {
				before(row)
				if row.TenantID.S == "acme" && row.Seq.N == seq {
					do(row)
				}
			}
		})
	}
	const faked, rows = "redactions faked in data files", "rows changed in data files"
	for _, seq := range []int64{1, 3} {
		row(faked, "erased by an order for another row", seq, func(r *chain.Row) { prooftest.Erase(r, prooftest.OrderID(1)) })
		row(faked, "erased by an order that is none", seq, func(r *chain.Row) { prooftest.Erase(r, prooftest.OrderID(7)) })
		row(faked, "a slot erased by an order for another row", seq, func(r *chain.Row) { prooftest.Erase(r, prooftest.OrderID(1), audit.SlotDecision) })
		row(faked, "content gone without a word", seq, func(r *chain.Row) { r.Slots, r.Derived = [audit.NumSlots][]byte{}, audit.Derived{} })
		row(rows, "status", seq, func(r *chain.Row) { r.Status = audit.Str("provider-error") })
		row(rows, "row_hash empty", seq, func(r *chain.Row) { r.RowHash = chain.Hash{} })
		row(rows, "a slot", seq, func(r *chain.Row) { r.Slots[audit.SlotTokenCost] = []byte("{}") })
		row(rows, "tenant", seq, func(r *chain.Row) { r.TenantID = audit.Str("a/b") })
	}
	row(faked, "an erased row that has content again", 0, func(r *chain.Row) { r.Slots[audit.SlotContext] = []byte("{}") })
	row(faked, "another sentinel", 0, func(r *chain.Row) { r.Redaction.S = strings.Replace(r.Redaction.S, `"*"`, `["decision"]`, 1) })
	const catalogs = "catalogs that say what is not so"
	wrong(1, faked, "the order's row kept whole, which its receipt calls erased", func(_ *subject, c *prooftest.Compaction) { c.Change = nil })
	wrong(1, catalogs, "a cut that nobody ordered", func(s *subject, c *prooftest.Compaction) {
		c.Drop = map[string]*prooftest.Cut{"acme": s.calls.CutAt("acme", prooftest.OrderID(9), 2)}
	})
	catalog := func(exit int, name string, do func(*archive.Catalog)) {
		wrong(exit, catalogs, name, func(_ *subject, c *prooftest.Compaction) { c.Catalog = do })
	}
	catalog(1, "another watermark", func(c *archive.Catalog) { c.Watermark-- })
	catalog(1, "a watermark behind the last anchor", func(c *archive.Catalog) { c.Watermark = 99 })
	catalog(1, "a day left out", func(c *archive.Catalog) { c.Parts = nil })
	catalog(1, "another hash", func(c *archive.Catalog) { c.Parts[0].SHA256[0] ^= 1 })
	catalog(1, "another archive", func(c *archive.Catalog) { c.ArchiveID = "01KBCDEFGHJKMNPQRSTVWXYZ02" })
	catalog(1, "another partition", func(c *archive.Catalog) { c.Partition = 1 })
	const keys = "keys"
	wrong(1, keys, "a catalog signed by a stranger", func(s *subject, _ *prooftest.Compaction) { s.Signers = []*sign.Signer{prooftest.Signer(stranger)} })
	wrong(3, keys, "a catalog without a signature", func(s *subject, _ *prooftest.Compaction) { s.Signers = nil })
	return all
}
