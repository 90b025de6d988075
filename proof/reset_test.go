package proof_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// reset builds a line whose segments 2 and 3 an operator declared void: the
// first is damaged, the second was built on it.
func reset(t *testing.T) (*prooftest.Archive, *prooftest.Line) {
	t.Helper()
	a := prooftest.New()
	l := a.Line("t", 0)
	for range 4 {
		l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("a/b") })
	}
	l.Segments[2].Rows[0].Status = audit.Str("damaged")
	l.Segments[2].Encode()
	l.Relink(3)
	wantExit(t, verify(t, a.Objects()), 1)
	voided := l.RollBack(2)
	l.Segment(func(b *prooftest.Batch) {
		b.Reset("acme", "operator", voided...)
		b.Call("acme")
		b.Reset("a/b", "operator", voided...)
		b.Call("a/b")
	})
	l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	return a, l
}

// A chain reset takes void segments out of the chain: they are hashed and count
// for nothing, and the reset is never silent.
func TestAChainResetIsFollowedAndNamed(t *testing.T) {
	a, l := reset(t)
	l.Anchor()
	r := verify(t, a.Objects())
	wantExit(t, r, 4)
	if !strings.Contains(strings.Join(r.Looks, "\n"), "chain reset: 2 logs begun anew by an operator's order, 2 segments void") {
		t.Errorf("looks %q", r.Looks)
	}
	for _, log := range r.Lines[0].Logs {
		want := l.Logs[log.Tenant]
		if log.Epoch != 1 || log.Size != want.Tree.Size || log.Head != want.Head || log.Root != want.Tree.Root() || !log.Proved || log.NotAnchored != 0 {
			t.Errorf("log %+v", log)
		}
	}
}

func TestAChainResetMustBeRight(t *testing.T) {
	context := func(row int, old, replace string) func(*testing.T, *prooftest.Archive, *prooftest.Line) {
		return func(t *testing.T, _ *prooftest.Archive, l *prooftest.Line) {
			s := l.Segments[4]
			before := string(s.Rows[row].Slots[audit.SlotContext])
			after := strings.Replace(before, old, replace, 1)
			if before == after {
				t.Fatalf("no %s in %s", old, before)
			}
			s.Rows[row].Slots[audit.SlotContext] = []byte(after)
			restampContent(&s.Rows[row])
			s.Encode()
			l.Relink(5)
		}
	}
	for _, c := range []struct {
		name  string
		kind  proof.FaultKind
		words string
		do    func(*testing.T, *prooftest.Archive, *prooftest.Line)
	}{
		{"another reason", proof.FaultReset, "not the genesis", context(0, "operator", "boredom")},
		{"a reason that is null", proof.FaultReset, "not the genesis", context(0, `"operator"`, "null")},
		{"another size", proof.FaultReset, "behind another row", context(0, `"previousSize":2`, `"previousSize":1`)},
		{"no voided", proof.FaultReset, `"voided" is missing`, context(0, `"voided"`, `"Voided"`)},
		{"other voided", proof.FaultReset, "voided", context(0, `[2,"`, `[1,"`)},
		{"another epoch", proof.FaultReset, "epoch 2", func(_ *testing.T, _ *prooftest.Archive, l *prooftest.Line) {
			s := l.Segments[4]
			for i := range 2 {
				s.Rows[i].Epoch.N = 2
			}
			s.Meta.Logs[0].Epoch = 2
			s.Encode()
			l.Relink(5)
		}},
		{"an epoch that no reset began", proof.FaultReset, "epoch 2 stands where 1 belongs", func(_ *testing.T, _ *prooftest.Archive, l *prooftest.Line) {
			s := l.Segments[4]
			s.Rows[1].Epoch.N = 2
			s.Meta.Logs[0].Epoch = 2
			s.Encode()
			l.Relink(5)
		}},
		{"one log was forgotten", proof.FaultReset, "no chain-reset row says so", func(_ *testing.T, _ *prooftest.Archive, l *prooftest.Line) {
			voided := l.RollBack(4)[:0]
			for _, i := range []int{2, 3} {
				voided = append(voided, archive.Voided{Ordinal: int64(i), SHA256: sum(l.Segments[i].Body)})
			}
			l.Segments = l.Segments[:4]
			l.Segment(func(b *prooftest.Batch) { b.Reset("acme", "operator", voided...); b.Call("acme"); b.Call("a/b") })
		}},
		{"a void segment was changed", proof.FaultHash, "declared it void states", func(_ *testing.T, _ *prooftest.Archive, l *prooftest.Line) {
			flip(l.Segments[3].Body, 999)
			l.Relink(4)
		}},
		{"a void segment is missing", proof.FaultMissing, "segment 3 is missing", func(_ *testing.T, a *prooftest.Archive, l *prooftest.Line) {
			l.Segments[3].Body = nil
		}},
		{"a segment that an anchor covers", proof.FaultReset, "covers it", func(_ *testing.T, _ *prooftest.Archive, l *prooftest.Line) {
			an := l.Anchor()
			list := an.Doc["segments"].([]any)
			covered := map[string]any{"ordinal": 2, "bytes": 1, "sha256": chain.Hash{}, "firstOffset": 0, "nextOffset": 0, "rows": 0, "made": 0, "duplicates": 0, "gaps": 0}
			an.Doc["segments"] = slices.Insert(list, 2, any(covered))
			an.Encode()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, l := reset(t)
			c.do(t, a, l)
			objects := a.Objects()
			for key, body := range objects {
				if body == nil {
					delete(objects, key)
				}
			}
			wantFault(t, verify(t, objects), c.kind, c.words)
		})
	}
}

// restampContent commits to a changed context, and leaves the row's links.
func restampContent(row *chain.Row) {
	chain.NewHasher(nil).Stamp(row, row.PrevHash, row.RowSalt.Hash)
}
