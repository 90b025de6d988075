package chain

import (
	"errors"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
)

// callRecord returns a record of the usual shape: an LLM call of 1.3 KB on the
// wire, with five of its slots filled.
func callRecord() audit.Record {
	r := audit.Record{
		TenantID: audit.Str("acme"), Topic: audit.Str("audit.calls"), Partition: audit.I64(3), Seq: audit.I64(41),
		KafkaOffset: audit.I64(52), KafkaTimestamp: audit.I64(1780000000200000), ArchivedAt: audit.I64(1780000000550123),
		Kind: audit.Str(audit.KindCall), AuditRecordVersion: audit.I64(19), RecordID: audit.Str(someULID),
		SessionID: audit.Str("3c8c1f5e-8a3f-4a52-9d57-0f9f7c1d2b10"), TurnID: audit.Str("9f1d2c3b-1111-4222-8333-944445555666"),
		StageID: audit.Str("tool-loop"), SeqWithinTurn: audit.I64(4), CreatedAt: audit.I64(1780000000123000),
		ActorKind: audit.Str("user"), SessionAuthMethod: audit.Str("clerk"), CallClass: audit.Str("synthesize"),
		Family: audit.Str("anthropic"), ModelID: audit.Str("claude-sonnet-4-5"), Transport: audit.Str("native"),
		InputTokens: audit.I64(1200), OutputTokens: audit.I64(55), Status: audit.Str("ok"), LatencyUS: audit.I64(1234567),
		FinishReason: audit.Str("stop"), HTTPStatus: audit.I64(200), RedactionPolicy: audit.Str("none"),
		UserID: audit.Str("user-42@example.test"),
	}
	r.Slots[audit.SlotDecision] = []byte(`{"requestedModel":null,"selectedReason":"family-lock","rungOrdinal":0,"fallbackChain":[]}`)
	r.Slots[audit.SlotOutcomeWhy] = filler(160)
	r.Slots[audit.SlotFamilyLock] = filler(220)
	r.Slots[audit.SlotCacheBreakpoint] = filler(180)
	r.Slots[audit.SlotTokenCost] = filler(90)
	return r
}

func filler(n int) []byte { return []byte(`{"s":"` + strings.Repeat("x", n-8) + `"}`) }

var (
	someSalt = Hash{1, 2, 3}
	somePrev = Hash{4, 5, 6}
	otherSum = Hash{7, 8, 9}
)

func liveRow() *Row {
	row := &Row{Record: callRecord()}
	NewHasher(nil).Stamp(row, somePrev, someSalt)
	return row
}

// Stamping and checking a row, in both schemes, allocates nothing: at 40,000
// rows a second each allocation would be a visible part of the CPU.
func TestStampAndCheckDoNotAllocate(t *testing.T) {
	var checked error
	for scheme, key := range map[string][]byte{SchemeV1: nil, SchemeHMACv1: []byte("key")} {
		h, row := NewHasher(key), liveRow()
		h.Stamp(row, somePrev, someSalt)
		if n := testing.AllocsPerRun(100, func() { h.Stamp(row, somePrev, someSalt) }); n != 0 {
			t.Errorf("%s: Stamp allocates %v times a row", scheme, n)
		}
		partly := partlyErasedRow()
		partly.RowHash = h.RowHash(partly)
		for _, row := range []*Row{row, partly} {
			if n := testing.AllocsPerRun(100, func() { checked = h.Check(row) }); n != 0 || checked != nil {
				t.Errorf("%s: Check allocates %v times a row: %v", scheme, n, checked)
			}
		}
	}
}

// A Hasher has buffers. Rows that go through one Hasher, large ones and ones
// without slots in between, come out as from a fresh one.
func TestHasherKeepsNothingOfARow(t *testing.T) {
	shared := NewHasher(nil)
	large, bare := callRecord(), audit.Record{TenantID: audit.Str("t")}
	large.Slots[audit.SlotRaw] = filler(1 << 20)
	for i, record := range []audit.Record{callRecord(), large, bare, callRecord(), bare, large} {
		one, other := Row{Record: record}, Row{Record: record}
		shared.Stamp(&one, somePrev, someSalt)
		NewHasher(nil).Stamp(&other, somePrev, someSalt)
		if one.RowHash != other.RowHash || one.PayloadCommit != other.PayloadCommit || one.UserCommit != other.UserCommit {
			t.Errorf("record %d: the shared Hasher stamps it otherwise", i)
		}
	}
}

// Whatever a row was before, stamped it is live.
func TestStampMakesALiveRow(t *testing.T) {
	for _, row := range []*Row{partlyErasedRow(), erasedRow(), hardErasedRow()} {
		NewHasher(nil).Stamp(row, somePrev, someSalt)
		if state, err := StateOf(row); err != nil || state != Live {
			t.Errorf("%s, %v", state, err)
		}
	}
}

// A slot that is null is not an empty one, for user_id and columns alike.
func TestNullIsNotEmpty(t *testing.T) {
	h := NewHasher(nil)
	base := &Row{Record: callRecord()}
	base.Slots[audit.SlotExt], base.UserID, base.ToolName = nil, audit.Text{}, audit.Text{}
	h.Stamp(base, somePrev, someSalt)
	for name, fill := range map[string]func(*Row){
		"ext":       func(r *Row) { r.Slots[audit.SlotExt] = []byte{} },
		"user_id":   func(r *Row) { r.UserID = audit.Str("") },
		"tool_name": func(r *Row) { r.ToolName = audit.Str("") },
		"depth":     func(r *Row) { r.SubagentDepth = audit.I64(0) },
	} {
		row := *base
		fill(&row)
		h.Stamp(&row, somePrev, someSalt)
		if row.RowHash == base.RowHash {
			t.Errorf("%s: empty hashes like null", name)
		}
	}
}

// A live row that changed in any column does not check, and the fault names
// the column that no longer recomputes.
func TestCheckFindsEveryChangeOfALiveRow(t *testing.T) {
	h := NewHasher(nil)
	if err := h.Check(liveRow()); err != nil {
		t.Fatal("untouched: ", err)
	}
	for _, c := range changesOfALiveRow() {
		row := liveRow()
		c.change(row)
		var fault *Fault
		if err := h.Check(row); !errors.As(err, &fault) || fault.Column != c.fault {
			t.Errorf("%s: %v, want a fault in %s", c.name, err, c.fault)
		}
	}
}

type rowChange struct {
	name   string
	change func(*Row)
	fault  string // the column that is named
}

func changesOfALiveRow() []rowChange {
	all := []rowChange{
		{"prev_hash", func(r *Row) { r.PrevHash[31] ^= 1 }, "row_hash"},
		{"row_hash", func(r *Row) { r.RowHash[0] ^= 1 }, "row_hash"},
		{"payload_commit", func(r *Row) { r.PayloadCommit[0] ^= 1 }, "payload_commit"},
		{"user_commit", func(r *Row) { r.UserCommit.Hash[0] ^= 1 }, "user_commit"},
		{"row_salt", func(r *Row) { r.RowSalt.Hash[0] ^= 1 }, "user_commit"},
		{"user_id", func(r *Row) { r.UserID.S += "x" }, "user_commit"},
	}
	for s := range audit.NumSlots {
		all = append(all, rowChange{s.String(), func(r *Row) { r.Slots[s] = append(r.Slots[s], ' ') }, "payload_commit"})
		if liveRow().Slots[s] != nil {
			all = append(all, rowChange{"no " + s.String(), func(r *Row) { r.Slots[s] = nil }, "payload_commit"})
		}
	}
	for _, c := range audit.Header {
		all = append(all, rowChange{c.Name, func(r *Row) { changeColumn(c, &r.Record) }, "row_hash"})
	}
	return all
}

func changeColumn(c audit.Column, r *audit.Record) {
	if c.Text != nil {
		*c.Text(r) = audit.Str(c.Text(r).S + "x")
		return
	}
	*c.Int(r) = audit.I64(c.Int(r).N + 1)
}

// Two columns cannot trade bytes: every value is framed.
func TestColumnsCannotTradeBytes(t *testing.T) {
	one, other := callRecord(), callRecord()
	one.SessionID, one.TurnID = audit.Str("ab"), audit.Str("c")
	other.SessionID, other.TurnID = audit.Str("a"), audit.Str("bc")
	h, rows := NewHasher(nil), [2]Row{{Record: one}, {Record: other}}
	h.Stamp(&rows[0], somePrev, someSalt)
	h.Stamp(&rows[1], somePrev, someSalt)
	if rows[0].RowHash == rows[1].RowHash {
		t.Error("equal hashes")
	}
}

// The key of a keyed log changes row_hash, and nothing else. A wrong key, no
// key, or a key where there is none all fail.
func TestKeyEntersRowHashOnly(t *testing.T) {
	plain, keyed := liveRow(), liveRow()
	NewHasher([]byte("key")).Stamp(keyed, somePrev, someSalt)
	if plain.PayloadCommit != keyed.PayloadCommit || plain.UserCommit != keyed.UserCommit || plain.RowHash == keyed.RowHash {
		t.Error("the key changes more than row_hash, or nothing")
	}
	for _, c := range []struct {
		name string
		key  []byte
		row  *Row
		good bool
	}{
		{"right key", []byte("key"), keyed, true},
		{"wrong key", []byte("kez"), keyed, false},
		{"keyed without a key", nil, keyed, false},
		{"unkeyed with a key", []byte("key"), plain, false},
	} {
		if err := NewHasher(c.key).Check(c.row); (err == nil) != c.good {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestEmptyKeyPanics(t *testing.T) {
	requirePanic(t, "an empty key", func() { NewHasher([]byte{}) })
}

func requirePanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s does not panic", what)
		}
	}()
	f()
}

// BenchmarkStamp is one row of a 1.3 KB record with five slots and a user; the
// bytes are those of the record on the wire.
func BenchmarkStamp(b *testing.B) {
	h, row := NewHasher(nil), liveRow()
	b.SetBytes(1300)
	b.ReportAllocs()
	for b.Loop() {
		h.Stamp(row, row.RowHash, someSalt)
	}
}

// BenchmarkCheck is what a verifier does to each row.
func BenchmarkCheck(b *testing.B) {
	h, row := NewHasher(nil), liveRow()
	b.SetBytes(1300)
	b.ReportAllocs()
	for b.Loop() {
		if err := h.Check(row); err != nil {
			b.Fatal(err)
		}
	}
}
