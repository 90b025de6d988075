package proof_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// A tampering changes rows of segment 0 of a line. The segment is encoded again
// with counts and heads as far as the change makes them, and all later
// segments get the hash of the one before: what is left to see the change is
// the chain alone.
type tampering struct {
	name   string
	kind   proof.FaultKind
	words  string
	change func(s *prooftest.Segment)
}

func TestRowsCannotBeChanged(t *testing.T) {
	for _, c := range append(changedColumns(), []tampering{
		{"cut from the middle, its offset called a gap", proof.FaultLink, "tenant acme, seq 2", func(s *prooftest.Segment) { cut(s, 3) }},
		{"cut from the end of a log", proof.FaultLink, "tenant acme, seq 0: headOut", func(s *prooftest.Segment) { cut(s, 4) }},
		{"the first of a log cut", proof.FaultLink, "tenant acme, seq 1", func(s *prooftest.Segment) { cut(s, 0) }},
		{"added", proof.FaultCoverage, "tenant acme, seq 0", func(s *prooftest.Segment) {
			s.Rows = slices.Insert(s.Rows, 1, s.Rows[0])
			s.Meta.Rows++
			interval(s, "acme").Rows++
		}},
		{"added, where a gap was", proof.FaultLink, "prev_hash", func(s *prooftest.Segment) {
			row := s.Rows[4]
			row.KafkaOffset.N++
			s.Rows = append(s.Rows, row)
			s.Meta.Rows++
			s.Meta.NextOffset++
			interval(s, "acme").Rows++
		}},
		{"swapped with a neighbour", proof.FaultCoverage, "order", func(s *prooftest.Segment) { s.Rows[0], s.Rows[1] = s.Rows[1], s.Rows[0] }},
		{"swapped, with places and hashes left", proof.FaultContent, "tenant acme, seq 0", func(s *prooftest.Segment) {
			a, b := &s.Rows[0], &s.Rows[3]
			a.Record, b.Record = b.Record, a.Record
			a.Seq, b.Seq = b.Seq, a.Seq
			a.KafkaOffset, b.KafkaOffset = b.KafkaOffset, a.KafkaOffset
		}},
		{"given to another tenant", proof.FaultLink, "tenant a/b", func(s *prooftest.Segment) {
			s.Rows[3].TenantID = audit.Str("a/b")
			interval(s, "acme").Rows--
			interval(s, "a/b").Rows++
		}},
		{"of a tenant that logs does not list", proof.FaultMetadata, "not in logs", func(s *prooftest.Segment) { s.Rows[3].TenantID = audit.Str("nobody") }},
		{"erased, as an erasure leaves it", proof.FaultState, "tenant acme, seq 1", func(s *prooftest.Segment) { erase(&s.Rows[3]) }},
		{"a log listed without rows", proof.FaultMetadata, "has no rows", func(s *prooftest.Segment) {
			l := *interval(s, "acme")
			l.Tenant, l.Rows, l.Size, l.FirstSeq, l.Frontier, l.HeadOut = "ghost", 0, 0, 0, []chain.Hash{}, l.HeadIn
			s.Meta.Logs = append(s.Meta.Logs, l)
		}},
	}...) {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			s := w.calls.Segments[0]
			c.change(s)
			s.Encode()
			w.calls.Relink(1)
			r := verify(t, w.Objects())
			wantFault(t, r, c.kind, c.words)
			for _, f := range r.Faults {
				if f.Kind == proof.FaultHash {
					t.Errorf("the objects are covered, and yet: %s", f)
				}
			}
		})
	}
}

// Without new hashes downstream the object itself shows any of the changes.
func TestAChangedObjectIsNotDecoded(t *testing.T) {
	w := newWorld()
	s := w.calls.Segments[0]
	cut(s, 3)
	s.Encode()
	r := verify(t, w.Objects())
	wantFault(t, r, proof.FaultHash, w.calls.Key(0), "segment 1 states", "not decoded")
	if len(r.Faults) != 1 {
		t.Errorf("faults %v", r.Faults)
	}
}

// changedColumns changes every column of a row, one at a time.
func changedColumns() (all []tampering) {
	row := func(name string, kind proof.FaultKind, change func(*chain.Row)) {
		all = append(all, tampering{"column " + name, kind, "tenant acme, seq 1", func(s *prooftest.Segment) { change(&s.Rows[3]) }})
	}
	for i := range audit.Header {
		switch c := &audit.Header[i]; {
		case c.Name == "tenant_id" || c.Name == "seq" || c.Name == "kafka_offset": // their own tests
		case c.Text != nil:
			row(c.Name, proof.FaultRowHash, func(r *chain.Row) { *c.Text(&r.Record) = audit.Str(c.Text(&r.Record).S + "x") })
			row(c.Name+" gone", proof.FaultRowHash, func(r *chain.Row) { toggleText(c.Text(&r.Record), c.Required) })
		default:
			row(c.Name, proof.FaultRowHash, func(r *chain.Row) { *c.Int(&r.Record) = audit.I64(c.Int(&r.Record).N + 1) })
		}
	}
	for s := range audit.NumSlots {
		row(s.String(), proof.FaultContent, func(r *chain.Row) { r.Slots[s] = append(slices.Clone(r.Slots[s]), ' ') })
	}
	row("decision gone", proof.FaultContent, func(r *chain.Row) { r.Slots[audit.SlotDecision] = nil })
	row("user_id", proof.FaultContent, func(r *chain.Row) { r.UserID.S += "x" })
	row("user_id gone", proof.FaultContent, func(r *chain.Row) { r.UserID = audit.Text{} })
	row("row_salt", proof.FaultContent, func(r *chain.Row) { r.RowSalt.Hash[31] ^= 1 })
	row("row_salt gone", proof.FaultState, func(r *chain.Row) { r.RowSalt = chain.NullHash{} })
	row("user_salt", proof.FaultState, func(r *chain.Row) { r.UserSalt = r.RowSalt })
	row("user_commit", proof.FaultContent, func(r *chain.Row) { r.UserCommit.Hash[0] ^= 1 })
	row("payload_commit", proof.FaultContent, func(r *chain.Row) { r.PayloadCommit[0] ^= 1 })
	row("prev_hash", proof.FaultLink, func(r *chain.Row) { r.PrevHash[0] ^= 1 })
	row("row_hash", proof.FaultRowHash, func(r *chain.Row) { r.RowHash[0] ^= 1 })
	row("residual", proof.FaultState, func(r *chain.Row) { r.Residual = audit.Str("{}") })
	row("redaction", proof.FaultState, func(r *chain.Row) { r.Redaction = audit.Str("{}") })
	row("redaction_id", proof.FaultState, func(r *chain.Row) { r.RedactionID = r.RecordID })
	row("topic_id", proof.FaultColumn, func(r *chain.Row) { r.TopicID.S = strings.ToLower(r.TopicID.S) })
	row("epoch", proof.FaultReset, func(r *chain.Row) { r.Epoch.N++ })
	row("requested_model", proof.FaultColumn, func(r *chain.Row) { r.RequestedModel = audit.Str("model-z") })
	row("selected_reason", proof.FaultColumn, func(r *chain.Row) { r.SelectedReason = audit.Str("user-explicit") })
	row("rung_ordinal", proof.FaultColumn, func(r *chain.Row) { r.RungOrdinal.N++ })
	row("fallback_chain", proof.FaultColumn, func(r *chain.Row) { r.FallbackChain = []string{"model-x"} })
	row("fallback_chain gone", proof.FaultColumn, func(r *chain.Row) { r.FallbackChain = nil })
	row("repeat_of", proof.FaultColumn, func(r *chain.Row) { r.RepeatOf = audit.I64(0) })
	return all
}

// erase leaves of a row what an erasure of all its slots leaves.
func erase(row *chain.Row) {
	row.UserSalt = chain.NullHash{Hash: chain.SlotSalt(row.RowSalt.Hash, "user_id"), Valid: true}
	row.RowSalt = chain.NullHash{}
	row.Slots = [audit.NumSlots][]byte{}
	row.Derived = audit.Derived{}
	row.RedactionID = audit.Str("01KBCDEFGHJKMNPQRSTVWXYZ09")
	row.Redaction = audit.Str(chain.Sentinel{ID: row.RedactionID.S, All: true}.String())
	if err := chain.NewHasher(nil).Check(row); err != nil {
		panic(err)
	}
}

// toggleText makes null what is set, and empty what is null or must be set.
func toggleText(t *audit.Text, required bool) {
	if t.Valid && !required {
		*t = audit.Text{}
		return
	}
	*t = audit.Str("")
}

// cut takes a row out, and makes the counts right again.
func cut(s *prooftest.Segment, i int) {
	row := s.Rows[i]
	s.Rows = slices.Delete(slices.Clone(s.Rows), i, i+1)
	s.Meta.Rows--
	s.Meta.Gaps = append(s.Meta.Gaps, archive.Gap{From: row.KafkaOffset.N, To: row.KafkaOffset.N + 1, Cause: archive.GapCompacted})
	l := interval(s, row.TenantID.S)
	l.Rows--
	l.Size--
	l.Frontier = slices.Repeat([]chain.Hash{{}}, onesCount(l.Size))
}

func onesCount(n int64) (ones int) {
	for ; n > 0; n >>= 1 {
		ones += int(n & 1)
	}
	return ones
}

func interval(s *prooftest.Segment, tenant string) *archive.LogInterval {
	for i := range s.Meta.Logs {
		if s.Meta.Logs[i].Tenant == tenant {
			return &s.Meta.Logs[i]
		}
	}
	panic("no log of " + tenant)
}

// A writer that hashes what the format forbids, or that states what is not so,
// is seen although all of its hashes are right.
func TestRightHashesDoNotMakeItRight(t *testing.T) {
	slot := func(s audit.Slot, text string) func(*chain.Row) {
		return func(r *chain.Row) { r.Slots[s] = []byte(text) }
	}
	for _, c := range []struct {
		name    string
		kind    proof.FaultKind
		words   string
		segment int
		row     int
		change  func(*chain.Row)
	}{
		{"an unknown kind", proof.FaultColumn, `kind "nonsense" is unknown`, 0, 1, func(r *chain.Row) { r.Kind.S = "nonsense" }},
		{"a producer's spelling of a kind", proof.FaultColumn, "is unknown", 0, 1, func(r *chain.Row) { r.Kind.S = "ToolCall" }},
		{"a control row among data", proof.FaultColumn, "a control row in a line of data rows", 0, 1, func(r *chain.Row) {
			r.Kind.S, r.RedactionPolicy = audit.KindRetentionCut, audit.Text{}
		}},
		{"no redaction_policy", proof.FaultColumn, "redaction_policy", 0, 1, func(r *chain.Row) { r.RedactionPolicy = audit.Text{} }},
		{"a policy on a rejected row", proof.FaultColumn, "redaction_policy", 2, 0, func(r *chain.Row) { r.RedactionPolicy = audit.Str("none") }},
		{"raw on a call", proof.FaultColumn, "raw is set", 0, 1, slot(audit.SlotRaw, "x")},
		{"no kafka_timestamp", proof.FaultColumn, "kafka_timestamp", 0, 1, func(r *chain.Row) { r.KafkaTimestamp = audit.Int{} }},
		{"no kafka_offset", proof.FaultColumn, "kafka_offset", 0, 1, func(r *chain.Row) { r.KafkaOffset = audit.Int{} }},
		{"archived before the row before it", proof.FaultTime, "tenant acme, seq 1", 0, 3, func(r *chain.Row) { r.ArchivedAt.N = prooftest.Start - 1 }},
		{"archived before the segment before it", proof.FaultTime, "tenant acme, seq 3", 1, 0, func(r *chain.Row) { r.ArchivedAt.N = prooftest.Start - 1 }},
		{"a producer's row of a reserved tenant", proof.FaultColumn, "reserved tenant", 2, 3, func(r *chain.Row) {
			r.Kind, r.RedactionPolicy = audit.Str(audit.KindCall), audit.Str("none")
			r.Slots = [audit.NumSlots][]byte{}
		}},
		{"a derived column of a decision that is no object", proof.FaultColumn, "derived", 0, 1, slot(audit.SlotDecision, `["selectedReason"]`)},
		{"an empty chain of models that is null", proof.FaultColumn, "derived", 0, 1, func(r *chain.Row) {
			r.Slots[audit.SlotDecision] = []byte(`{"fallbackChain":[]}`)
			r.Derived = audit.Derived{}
		}},
		{"another topic", proof.FaultColumn, "topic is not", 0, 1, func(r *chain.Row) { r.Topic.S = "other" }},
		{"another partition", proof.FaultColumn, "partition is not", 0, 1, func(r *chain.Row) { r.Partition.N++ }},
		{"a reject of another size", proof.FaultReject, "raw has 3 bytes, context says 2", 2, 0, slot(audit.SlotRaw, "{xx")},
		{"a reject of another hash", proof.FaultReject, "sha256", 2, 0, slot(audit.SlotRaw, "{x")},
		{"a reject without its bytes", proof.FaultReject, "raw is null", 2, 0, func(r *chain.Row) { r.Slots[audit.SlotRaw] = nil }},
		{"a null value with bytes", proof.FaultReject, "no sha256", 2, 3, slot(audit.SlotRaw, "")},
		{"an unknown reason", proof.FaultReject, "no known class", 2, 0, func(r *chain.Row) {
			r.Slots[audit.SlotContext] = bytes.Replace(r.Slots[audit.SlotContext], []byte("invalid_unicode"), []byte("bad_mood"), 1)
		}},
		{"a reject without context", proof.FaultReject, "context", 2, 0, func(r *chain.Row) { r.Slots[audit.SlotContext] = nil }},
		{"a reject that says it twice", proof.FaultReject, "stands twice", 2, 0, func(r *chain.Row) {
			r.Slots[audit.SlotContext] = bytes.Replace(r.Slots[audit.SlotContext], []byte(`{`), []byte(`{"size":1,`), 1)
		}},
		{"a reject without size", proof.FaultReject, `"size" is missing`, 2, 0, func(r *chain.Row) {
			r.Slots[audit.SlotContext] = bytes.Replace(r.Slots[audit.SlotContext], []byte(`"size"`), []byte(`"Size"`), 1)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			c.change(&w.calls.Segments[c.segment].Rows[c.row])
			w.calls.Restamp()
			wantFault(t, verify(t, w.Objects()), c.kind, c.words, fmt.Sprintf("%020d.parquet", c.segment))
		})
	}
}

// A log's seq has no holes: not even where the row with a wrong one is hashed and
// linked as it should be.
func TestSeqIsDense(t *testing.T) {
	for _, seq := range []int64{9, 11, 0} { // 10 belongs there
		w := newWorld()
		w.calls.Segment(func(b *prooftest.Batch) {
			b.Row("acme", func(r *audit.Record) {
				r.Kind, r.RedactionPolicy, r.Seq = audit.Str(audit.KindCall), audit.Str(audit.PolicyNone), audit.I64(seq)
			})
		})
		wantFault(t, verify(t, w.Objects()), proof.FaultLink, fmt.Sprintf("seq %d stands where 10 belongs", seq))
	}
}

// A segment continues each of its logs where the one before left it. Here the
// newest segment is right in itself, and stands on another state.
func TestASegmentStandsOnTheOneBefore(t *testing.T) {
	for _, c := range []struct {
		name   string
		kind   proof.FaultKind
		words  string
		change func(row *chain.Row, l *archive.LogInterval, tree *chain.Tree)
	}{
		{"", "", "", func(*chain.Row, *archive.LogInterval, *chain.Tree) {}},
		{"on another head", proof.FaultLink, "headIn is 01", func(row *chain.Row, l *archive.LogInterval, _ *chain.Tree) {
			l.HeadIn = chain.Hash{1}
		}},
		{"behind rows that are not there", proof.FaultLink, "the log goes on at seq 10 where seq 9 belongs", func(row *chain.Row, l *archive.LogInterval, tree *chain.Tree) {
			l.FirstSeq++
			tree.Append(chain.Hash{})
		}},
		{"on another tree", proof.FaultTree, "frontier", func(_ *chain.Row, _ *archive.LogInterval, tree *chain.Tree) { tree.Frontier[0][0] ^= 1 }},
		{"in another epoch", proof.FaultReset, "epoch 1 where epoch 0 belongs", func(row *chain.Row, l *archive.LogInterval, _ *chain.Tree) {
			row.Epoch.N, l.Epoch = 1, 1
		}},
		{"under another scheme", proof.FaultReset, "begun under ledgerlake-v1", func(_ *chain.Row, l *archive.LogInterval, _ *chain.Tree) { l.Scheme = chain.SchemeHMACv1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			before, s := interval(w.calls.Segments[5], "acme"), w.calls.Segments[6]
			row, l := &s.Rows[0], interval(s, "acme")
			tree := chain.Tree{Size: before.Size, Frontier: slices.Clone(before.Frontier)}
			c.change(row, l, &tree)
			row.Seq.N = l.FirstSeq
			chain.NewHasher(nil).Stamp(row, l.HeadIn, row.RowSalt.Hash)
			tree.Append(row.RowHash)
			l.HeadOut, l.Size, l.Frontier = row.RowHash, tree.Size, tree.Frontier
			s.Encode()
			if r := verify(t, w.Objects()); c.kind == "" {
				wantExit(t, r, 0)
			} else {
				wantFault(t, r, c.kind, "tenant acme", c.words)
			}
		})
	}
}

// No log has a tenant that the format refuses.
func TestTenantsAreThoseThatTheFormatAllows(t *testing.T) {
	for _, tenant := range []string{"", ".", "..", "_", "_control", "a\x00", "a\u0085", strings.Repeat("x", 257)} {
		w := newWorld()
		w.calls.Segment(func(b *prooftest.Batch) { b.Call(tenant) })
		wantFault(t, verify(t, w.Objects()), proof.FaultColumn, "bad tenant id")
	}
}

// Lost offsets and gap rows come in pairs.
func TestGapRowsTellOfLostOffsets(t *testing.T) {
	for _, c := range []struct {
		name, words string
		change      func(*prooftest.Segment)
	}{
		{"another stretch", "no lost gap", func(s *prooftest.Segment) {
			s.Rows[1].Slots[audit.SlotContext] = []byte(`{"from":0,"to":4,"cause":"lost"}`)
		}},
		{"another cause in the metadata", "no lost gap", func(s *prooftest.Segment) { s.Meta.Gaps[0].Cause = archive.GapCompacted }},
		{"a gap that no row tells of", "no gap row says so", func(s *prooftest.Segment) {
			s.Meta.Gaps = append(s.Meta.Gaps, archive.Gap{From: s.Meta.NextOffset, To: s.Meta.NextOffset + 2, Cause: archive.GapLost})
			s.Meta.NextOffset += 2
		}},
		{"a context that is none", "context", func(s *prooftest.Segment) { s.Rows[1].Slots[audit.SlotContext] = []byte(`[11,15]`) }},
		{"told in another tenant's log", "outside the log", func(s *prooftest.Segment) {
			s.Rows[1].TenantID = audit.Str("acme")
			s.Meta.Logs = slices.DeleteFunc(s.Meta.Logs, func(l archive.LogInterval) bool { return l.Tenant == audit.TenantPartition })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			s := w.calls.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Lost(4); b.Call("acme") })
			wantExit(t, verify(t, w.Objects()), 4)
			c.change(s)
			w.calls.Restamp()
			wantFault(t, verify(t, w.Objects()), proof.FaultGap, c.words)
		})
	}
}

// Every offset is accounted for exactly once: here the metadata says otherwise,
// with hashes that fit.
func TestEveryOffsetIsAccountedForOnce(t *testing.T) {
	for _, c := range []struct {
		name, words string
		kind        proof.FaultKind
		change      func(*world)
	}{
		{"a segment begins inside the one before", "begins at offset 4, those before it end at 5", proof.FaultCoverage, func(w *world) { shift(w.calls.Segments[1], -1) }},
		{"a segment begins behind the end of the one before", "begins at offset 6, those before it end at 5", proof.FaultCoverage, func(w *world) { shift(w.calls.Segments[1], 1) }},
		{"an offset is twice a duplicate", "offset 6 is accounted for twice", proof.FaultCoverage, func(w *world) {
			m := &w.calls.Segments[1].Meta
			m.Duplicates = append(m.Duplicates, m.Duplicates[0])
			m.NextOffset++
		}},
		{"an offset is a row and a duplicate", "offset 5", proof.FaultCoverage, func(w *world) { w.calls.Segments[1].Meta.Duplicates[0].Offset = 5 }},
		{"an offset is a row and in a gap", "offset", proof.FaultCoverage, func(w *world) { w.calls.Segments[3].Meta.Gaps[1].From--; w.calls.Segments[3].Meta.Gaps[1].To-- }},
		{"an offset is nothing", "account for 3", proof.FaultCoverage, func(w *world) { w.calls.Segments[1].Meta.NextOffset++ }},
		{"an offset is nothing, in the middle", "offsets 6 to 7 before the row are not accounted for", proof.FaultCoverage, func(w *world) {
			w.calls.Segments[1].Meta.Duplicates[0].Offset = 8
			w.calls.Segments[1].Meta.NextOffset = 9
		}},
		{"a row lies behind the end", "not below nextOffset", proof.FaultCoverage, func(w *world) { w.calls.Segments[1].Meta.NextOffset-- }},
		{"a duplicate repeats a row that comes later", "repeats seq 4", proof.FaultDuplicate, func(w *world) { w.calls.Segments[1].Meta.Duplicates[0].Seq = 4 }},
		{"a duplicate repeats a row of its segment that comes later", "repeats seq 5", proof.FaultDuplicate, func(w *world) {
			w.calls.Segments[2].Meta.Duplicates = []archive.Duplicate{{Offset: 8, Tenant: "acme", Seq: 5}}
			w.calls.Segments[2].Meta.FirstOffset--
			w.calls.Segments[1].Meta.NextOffset--
		}},
		{"a duplicate in a segment without the log repeats no row", "seq 2, which the log does not have", proof.FaultDuplicate, func(w *world) { w.calls.Segments[4].Meta.Duplicates[0].Seq = 2 }},
		{"a duplicate repeats a row of nobody", "which the log does not have", proof.FaultDuplicate, func(w *world) { w.calls.Segments[4].Meta.Duplicates[0].Tenant = "nobody" }},
		{"made is not what ingest made", "1 rows were made by ingest, made is 0", proof.FaultMetadata, func(w *world) {
			w.calls.Segment(func(b *prooftest.Batch) { b.Lost(4) }).Meta.Made = 0
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			c.change(w)
			w.calls.Restamp()
			wantFault(t, verify(t, w.Objects()), c.kind, c.words)
		})
	}
}

// shift moves a segment by some offsets.
func shift(s *prooftest.Segment, by int64) {
	for i := range s.Rows {
		s.Rows[i].KafkaOffset.N += by
	}
	s.Meta.FirstOffset += by
	s.Meta.NextOffset += by
	for i := range s.Meta.Duplicates {
		s.Meta.Duplicates[i].Offset += by
	}
}

// Whole objects cannot be taken away, put elsewhere or changed. The newest of a
// line is spared where nothing vouches for it.
func TestObjectsCannotBeMoved(t *testing.T) {
	foreign := func() *world { // another archive, otherwise the same
		w := newWorld()
		a := prooftest.NewWithID("01KBCDEFGHJKMNPQRSTVWXYZ02")
		l := a.Line("audit.calls", 0)
		l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
		w.Archive, w.calls = a, l
		return w
	}()
	for _, c := range []struct {
		name  string
		kind  proof.FaultKind
		words []string
		do    func(w *world, o map[string][]byte)
	}{
		{"one is missing", proof.FaultMissing, []string{"segment 3 is missing"}, func(w *world, o map[string][]byte) { delete(o, w.calls.Key(3)) }},
		{"several are missing", proof.FaultMissing, []string{"segments 2 to 4 are missing"}, func(w *world, o map[string][]byte) {
			for i := 2; i <= 4; i++ {
				delete(o, w.calls.Key(i))
			}
		}},
		{"the first is missing", proof.FaultMissing, []string{"segment 0 is missing"}, func(w *world, o map[string][]byte) { delete(o, w.calls.Key(0)) }},
		{"two are swapped", proof.FaultMisplaced, []string{"it is segment 3 of audit.calls"}, func(w *world, o map[string][]byte) {
			o[w.calls.Key(2)], o[w.calls.Key(3)] = o[w.calls.Key(3)], o[w.calls.Key(2)]
		}},
		{"one is repeated", proof.FaultMisplaced, []string{w0().calls.Key(7), "it is segment 6"}, func(w *world, o map[string][]byte) { o[w.calls.Key(7)] = o[w.calls.Key(6)] }},
		{"one stands in place of another", proof.FaultHash, []string{"segment 4 states", "it is segment 2 "}, func(w *world, o map[string][]byte) { o[w.calls.Key(3)] = o[w.calls.Key(2)] }},
		{"one is of another partition", proof.FaultMisplaced, []string{"/1 by its own metadata"}, func(w *world, o map[string][]byte) { o[w.calls.Key(7)] = o[w.other.Key(2)] }},
		{"a line is copied to another partition", proof.FaultMisplaced, []string{"00009/"}, func(w *world, o map[string][]byte) {
			for i := range 3 {
				o[strings.Replace(w.other.Key(i), "/00001/", "/00009/", 1)] = o[w.other.Key(i)]
			}
		}},
		{"one is of another archive", proof.FaultHash, []string{"WXYZ02", "not of"}, func(w *world, o map[string][]byte) {
			o[foreign.calls.Key(0)] = foreign.calls.Segments[0].Body
		}},
		{"one is cut short", proof.FaultHash, []string{"segment 2 states"}, func(w *world, o map[string][]byte) { o[w.calls.Key(1)] = o[w.calls.Key(1)][:100] }},
		{"one is empty", proof.FaultHash, []string{"segment 2 states"}, func(w *world, o map[string][]byte) { o[w.calls.Key(1)] = []byte{} }},
		{"the newest is empty", proof.FaultUnreadable, []string{w0().calls.Key(6)}, func(w *world, o map[string][]byte) { o[w.calls.Key(6)] = []byte{} }},
		{"one has bytes behind its end", proof.FaultHash, []string{"segment 2 states"}, func(w *world, o map[string][]byte) { o[w.calls.Key(1)] = append(o[w.calls.Key(1)], 0) }},
		{"an older one is put at the end", proof.FaultMisplaced, []string{"it is segment 1 "}, func(w *world, o map[string][]byte) { o[w.calls.Key(7)] = o[w.calls.Key(1)] }},
		{"ledgerlake.json is missing", proof.FaultRoot, []string{"is missing, and the bucket holds 13 objects"}, func(w *world, o map[string][]byte) { delete(o, archive.RootKey) }},
		{"ledgerlake.json is of another archive", proof.FaultMisplaced, []string{"it is of archive"}, func(w *world, o map[string][]byte) { o[archive.RootKey] = foreign.Root }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld()
			objects := w.Objects()
			c.do(w, objects)
			wantFault(t, verify(t, objects), c.kind, c.words...)
		})
	}
}

// A segment with the right rows in another layout is refused: what lies between
// its parts is read by nobody, and what stands in its footer outlives an erasure.
func TestRightRowsInAWrongLayout(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  proof.FaultKind
		words string
		body  func(good []byte) []byte
	}{
		{"bytes before the footer", proof.FaultLayout, "footer begins", func(good []byte) []byte {
			at := len(good) - 8 - int(binary.LittleEndian.Uint32(good[len(good)-8:]))
			return slices.Insert(slices.Clone(good), at, []byte("hidden")...)
		}},
		{"bytes behind the footer", proof.FaultUnreadable, "", func(good []byte) []byte { return append(slices.Clone(good), "hidden"...) }},
		{"rewritten with another library's settings, statistics among them", proof.FaultLayout, "statistics of a sealed column", func([]byte) []byte { return read(t, "testdata/statistics.parquet") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, l := small()
			l.Segments[0].Body = c.body(l.Segments[0].Body)
			l.Relink(1)
			wantFault(t, verify(t, a.Objects()), c.kind, l.Key(0), c.words)
		})
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func w0() *world { return newWorld() }

// ledgerlake.json is read strictly.
func TestTheRootIsReadStrictly(t *testing.T) {
	const good = `{"format":"ledgerlake-v1","archiveId":"01KBCDEFGHJKMNPQRSTVWXYZ01","createdAt":"2026-05-28T20:26:40.000000Z","graceSeconds":3600}`
	w := newWorld()
	wantExit(t, verify(t, with(w.Objects(), archive.RootKey, good)), 0)
	for _, c := range [][2]string{
		{`"ledgerlake-v1"`, `"ledgerlake-v2"`},
		{`"format":"ledgerlake-v1",`, ``},
		{`"archiveId":`, `"ArchiveId":`},
		{`WXYZ01"`, `WXYZ0I"`},
		{`WXYZ01"`, `WXYZ01 "`},
		{`{"format"`, `{"archiveId":"01KBCDEFGHJKMNPQRSTVWXYZ02","format"`},
		{`40.000000Z`, `40.000Z`},
		{`40.000000Z`, `40.000000+00:00`},
		{`2026-05-28`, `2026-02-31`},
		{`3600`, `3600.0`},
		{`3600`, `0`},
		{`3600`, `"3600"`},
		{`3600}`, `3600}{}`},
		{`3600}`, `3600,}`},
		{good, ``},
		{good, `null`},
		{good, `[]`},
	} {
		bad := strings.Replace(good, c[0], c[1], 1)
		wantFault(t, verify(t, with(w.Objects(), archive.RootKey, bad)), proof.FaultRoot)
	}
}
