package scan

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
	"github.com/ledgerlake/ledgerlake/redact"
)

const order = "01KBCDEFGH3KWJRP1XPA000005"

// stamped makes rows of one log, in which every value that can be erased is found
// nowhere else.
func stamped(r *rand.Rand, n int) []chain.Row {
	h, rows, head := chain.NewHasher(nil), make([]chain.Row, n), chain.Hash{1}
	for i := range rows {
		fill(r, &rows[i], i)
		h.Stamp(&rows[i], head, random(r))
		head = rows[i].RowHash
	}
	return rows
}

func random(r *rand.Rand) (h chain.Hash) {
	for i := range h {
		h[i] = byte(r.Uint32())
	}
	return h
}

func fill(r *rand.Rand, row *chain.Row, i int) {
	token := func(name string) string { return fmt.Sprintf("%s-%016x", name, r.Uint64()) }
	row.TenantID, row.Topic, row.TopicID = audit.Str("acme"), audit.Str("audit.calls"), audit.Str("kTq2VqYJQ0mFvY8v2b3m0A")
	row.Partition, row.Epoch, row.Seq, row.KafkaOffset = audit.I64(0), audit.I64(0), audit.I64(int64(i)), audit.I64(int64(i))
	row.ArchivedAt, row.Kind, row.RedactionPolicy = audit.I64(1_779_000_000_000_000+int64(i)), audit.Str(audit.KindCall), audit.Str("none")
	row.RecordID, row.SessionID, row.TurnID = audit.Str(token("record")), audit.Str(token("session")), audit.Str(token("turn"))
	row.ModelID, row.FinishReason = audit.Str(token("model")), audit.Str(token("finish"))
	if i%3 != 0 {
		row.UserID = audit.Str(token("user"))
	}
	for s := range audit.NumSlots {
		if r.IntN(4) == 0 {
			row.Slots[s] = fmt.Appendf(nil, `{"v":"%s"}`, strings.Repeat(token("slot"), 1+r.IntN(9)))
		}
	}
	if r.IntN(4) == 0 {
		row.Slots[audit.SlotDecision] = fmt.Appendf(nil, `{"selectedReason":"%s","requestedModel":"%s","fallbackChain":["%s","%s"],"rungOrdinal":1}`,
			token("reason"), token("asked"), token("fallback"), token("fallback"))
	}
	row.Derived = audit.Derive(row.Slots[audit.SlotDecision])
}

// erasures are sentinels of every kind; the zero one erases nothing.
var erasures = []chain.Sentinel{
	{},
	{},
	{ID: order, All: true},
	{ID: order, All: true, User: true},
	{ID: order, All: true, User: true, Hard: true},
	{ID: order, Slots: chain.SlotSet(1<<audit.SlotDecision | 1<<audit.SlotPrompts)},
	{ID: order, Slots: chain.SlotSet(1<<audit.SlotContext | 1<<audit.SlotExt | 1<<audit.SlotRaw), User: true},
}

// values returns what rows hold, everything that is 8 bytes or longer.
func values(rows []chain.Row) map[string]bool {
	all := map[string]bool{}
	for i := range rows {
		derived := append([]string{rows[i].SelectedReason.S, rows[i].RequestedModel.S}, everything(&rows[i])...)
		for _, v := range derived {
			if len(v) >= window {
				all[v] = true
			}
		}
	}
	return all
}

// eraseSome erases from some rows, and returns what no row holds any more.
func eraseSome(t *testing.T, r *rand.Rand, rows []chain.Row) (gone []string) {
	t.Helper()
	before, h := values(rows), chain.NewHasher(nil)
	for i := range rows {
		s := erasures[r.IntN(len(erasures))]
		if s.ID == "" {
			continue
		}
		if _, err := redact.Erase(h, &rows[i], s); err != nil {
			t.Fatal(err)
		}
	}
	after := values(rows)
	for v := range before {
		if !after[v] {
			gone = append(gone, v)
		}
	}
	return gone
}

// Of what was erased from rows nothing stands in the file that is written of
// them, in no page, dictionary, bound or index; nor in one that it is merged into.
// Of what was not erased everything does, and before the erasure all of it did.
func TestNothingErasedIsInADataFile(t *testing.T) {
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 3))
		rows := stamped(r, 600)
		w := parquet.NewDataWriter(parquet.DataOptions{GroupRows: 250})
		first := dataFile(t, w, rows)
		gone := eraseSome(t, r, rows)
		if got := find(t, first, gone...); len(got) != len(gone) || len(gone) < 1000 {
			t.Fatalf("%d of %d values are found before they are erased", len(got), len(gone))
		}
		second := dataFile(t, w, rows)
		merged := mergeFiles(t, w, second, dataFile(t, w, rows[:100]), second)
		for name, object := range map[string][]byte{"rewritten": second, "merged": merged} {
			for _, i := range find(t, object, gone...) {
				t.Errorf("%s file holds %.80q", name, gone[i])
			}
		}
		left := values(rows)
		if got := find(t, merged, keys(left)...); len(got) != len(left) {
			t.Errorf("%d of %d values that were not erased are found", len(got), len(left))
		}
		for i := range rows {
			if err := chain.NewHasher(nil).Check(&rows[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func keys(all map[string]bool) (list []string) {
	for v := range all {
		list = append(list, v)
	}
	return list
}

func dataFile(t testing.TB, w *parquet.DataWriter, rows []chain.Row) []byte {
	t.Helper()
	all := make([]*chain.Row, len(rows))
	for i := range rows {
		all[i] = &rows[i]
	}
	if err := w.Rows(all); err != nil {
		t.Fatal(err)
	}
	return must(w.Close([]byte("{}")))
}

func mergeFiles(t *testing.T, w *parquet.DataWriter, objects ...[]byte) []byte {
	t.Helper()
	for _, object := range objects {
		if err := w.File(must(parquet.Open(object))); err != nil {
			t.Fatal(err)
		}
	}
	return must(w.Close([]byte("{}")))
}

// A bloom filter answers for a value that was erased as for one that never was:
// a filter of the rows that are left is what the new file has, bit by bit.
func TestErasedUsersAreInNoBloomFilter(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	rows := stamped(r, 500)
	w := parquet.NewDataWriter(parquet.DataOptions{})
	for i := range rows {
		if i%2 == 0 {
			if _, err := redact.Erase(chain.NewHasher(nil), &rows[i], chain.Sentinel{ID: order, All: true, User: true}); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := userFilter(t, dataFile(t, w, rows))
	for i := range rows {
		rows[i].RecordID = audit.Str("another record")
	}
	if want := userFilter(t, dataFile(t, w, rows)); !bytes.Equal(got, want) || len(got) == 0 {
		t.Errorf("filters of %d and %d bytes differ", len(got), len(want))
	}
	never, n := stamped(rand.New(rand.NewPCG(9, 9)), 500), 0
	for i := range never {
		if i%2 == 0 && never[i].UserID.Valid {
			if has, err := parquet.BloomHas(got, never[i].UserID.S); err != nil {
				t.Fatal(err)
			} else if has {
				n++
			}
		}
	}
	if n > 10 {
		t.Errorf("%d of 167 erased users seem to be there", n)
	}
}

func userFilter(t *testing.T, object []byte) []byte {
	t.Helper()
	f := must(parquet.ParseFooter(object, int64(len(object))))
	spans, ok, err := f.Blooms("user_id")
	if err != nil || !ok || len(spans) != 1 {
		t.Fatalf("%d filters, %v, %v", len(spans), ok, err)
	}
	return object[spans[0].Offset : spans[0].Offset+spans[0].Size]
}
