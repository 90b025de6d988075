package proof_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

func sum(b []byte) chain.Hash { return sha256.Sum256(b) }

// anchored builds a line with three anchors: two segments, two more, none.
func anchored() (*prooftest.Archive, *prooftest.Line) {
	a := prooftest.New()
	l := a.Line("audit.calls", 0)
	l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("a/b"); b.Duplicate("acme", 0) })
	l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Skip(2, archive.GapControl) })
	l.Anchor()
	l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("東京") })
	l.Anchor()
	l.Anchor()
	return a, l
}

// Anchors are compared with what was recomputed, and vouch for what they cover,
// also for the newest segment.
func TestAnchorsAreCompared(t *testing.T) {
	a, l := anchored()
	r := verify(t, a.Objects())
	wantExit(t, r, 0)
	if r.Totals.Anchors != 3 || r.Lines[0].Anchored != 3 || r.Tenants()[1].NotAnchored != 0 {
		t.Errorf("report %+v", r.Lines[0])
	}
	if !strings.Contains(strings.Join(r.Notes, "\n"), "3 anchors with 0 signatures: compared with what was recomputed, signatures not checked: T0") {
		t.Errorf("notes %q", r.Notes)
	}
	flip(l.Segments[3].Body, 999)
	wantFault(t, verify(t, a.Objects()), proof.FaultHash, "anchor 1 states", "not decoded")
	a, l = anchored()
	l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("acme") })
	r = verify(t, a.Objects())
	wantExit(t, r, 0)
	if !strings.Contains(strings.Join(r.Notes, "\n"), "2 rows of acme not anchored yet") {
		t.Errorf("notes %q", r.Notes)
	}
}

// A missing tail shows where an anchor covers it.
func TestAnAnchoredTailCannotGoMissing(t *testing.T) {
	a, l := anchored()
	for n := 3; n >= 0; n-- {
		objects := a.Objects()
		for i := n; i <= 3; i++ {
			delete(objects, l.Key(i))
		}
		wantFault(t, verify(t, objects), proof.FaultMissing, "covers segments up to", fmt.Sprintf("end before %d: the tail is missing", n))
	}
}

// A row that was changed together with everything but the anchors is found.
func TestAnchorsBindARebuiltLine(t *testing.T) {
	a, l := anchored()
	l.Segments[0].Rows[0].Status.S = "changed"
	l.Restamp()
	wantFault(t, verify(t, a.Objects()), proof.FaultAnchor, "anchor 0 states")
	wantFault(t, verify(t, a.Objects()), proof.FaultAnchor, "tenant acme", "the anchor says that the log has 2 rows")
}

// Each member of an anchor is changed: no change of what can be recomputed is
// passed over. Only its time and its keys take a signature.
func TestNoMemberOfAnAnchorCanBeChanged(t *testing.T) {
	_, line := anchored()
	doc := decode(t, text(line.Anchors[1].Doc))
	for _, e := range edits("", doc) {
		t.Run(e.path+" "+e.name, func(t *testing.T) {
			a, l := anchored()
			objects := a.Objects()
			l.Anchors = l.Anchors[:1]
			delete(objects, l.AnchorKey(2)) // it would see any change
			objects[l.AnchorKey(1)] = []byte(chain.NoteText(chain.AnchorNote, []byte(e.text)) + "\n")
			r := verify(t, objects)
			if strings.HasPrefix(e.path, ".keys") && e.name == "changed" || e.path == ".checkpoints.0" && e.name != "of another type" || e.path == ".checkpoints.1" && e.name != "of another type" {
				wantExit(t, r, 0)
				return
			}
			wantExit(t, r, 1)
		})
	}
}

// Anchors follow each other, and are where their keys say.
func TestAnchorsFollowEachOther(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  proof.FaultKind
		words string
		do    func(l *prooftest.Line, o map[string][]byte)
	}{
		{"one is missing", proof.FaultMissing, "anchor 1 is missing", func(l *prooftest.Line, o map[string][]byte) { delete(o, l.AnchorKey(1)) }},
		{"the first is missing", proof.FaultMissing, "anchor 0 is missing", func(l *prooftest.Line, o map[string][]byte) { delete(o, l.AnchorKey(0)) }},
		{"two are swapped", proof.FaultAnchor, "it says that it is number", func(l *prooftest.Line, o map[string][]byte) {
			o[l.AnchorKey(0)], o[l.AnchorKey(1)] = o[l.AnchorKey(1)], o[l.AnchorKey(0)]
		}},
		{"one is of another line", proof.FaultAnchor, "of another line", func(l *prooftest.Line, o map[string][]byte) {
			o[strings.Replace(l.AnchorKey(0), "/00000/", "/00001/", 1)] = l.Anchors[0].Body
		}},
		{"ledgerlake.json was changed", proof.FaultAnchor, "archiveSha256", func(l *prooftest.Line, o map[string][]byte) {
			o[archive.RootKey] = append(o[archive.RootKey], '\n')
		}},
		{"no note", proof.FaultAnchor, "no text of a note", func(l *prooftest.Line, o map[string][]byte) { o[l.AnchorKey(2)] = o[l.AnchorKey(2)][1:] }},
		{"an empty one", proof.FaultAnchor, "not a note", func(l *prooftest.Line, o map[string][]byte) { o[l.AnchorKey(2)] = nil }},
		{"a note of another kind", proof.FaultAnchor, "another kind", func(l *prooftest.Line, o map[string][]byte) {
			o[l.AnchorKey(2)] = []byte(strings.Replace(string(o[l.AnchorKey(2)]), "anchor v1", "catalog v1", 1))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, l := anchored()
			objects := maps.Clone(a.Objects())
			c.do(l, objects)
			wantFault(t, verify(t, objects), c.kind, c.words)
		})
	}
}

// An anchor that agrees with itself is held against the line and against the
// anchor before it.
func TestAnchorsSayWhatIsSo(t *testing.T) {
	type doc = map[string]any
	head := func(tenant string, size int, head, root any) doc {
		return doc{"tenant": tenant, "scheme": "ledgerlake-v1", "epoch": 0, "size": size, "head": head, "root": root, "frontier": []any{root}}
	}
	for _, c := range []struct {
		name   string
		kind   proof.FaultKind
		words  string
		anchor int
		change func(d doc, l *prooftest.Line)
	}{
		{"something was added", proof.FaultAnchor, "previous is not the hash of the text of anchor 0", 0, func(d doc, _ *prooftest.Line) { d["later"] = 1 }},
		{"the first one has one before it", proof.FaultAnchor, "previous is null in number 0", 0, func(d doc, _ *prooftest.Line) { d["previous"] = chain.Hash{} }},
		{"it is full out of turn", proof.FaultAnchor, "says full: true", 2, func(d doc, _ *prooftest.Line) { d["full"] = true }},
		{"its ordinal is none", proof.FaultAnchor, "ordinal is -2", 2, func(d doc, _ *prooftest.Line) { d["ordinal"] = -2 }},
		{"it ends before the one before", proof.FaultAnchor, "ends at segment 1, anchor 1 at 3", 2, func(d doc, _ *prooftest.Line) { d["ordinal"] = 1 }},
		{"it lists a segment of the one before", proof.FaultAnchor, "which anchor 1 covers", 2, func(d doc, l *prooftest.Line) {
			d["segments"] = []any{l.Anchors[1].Doc["segments"].([]any)[1]}
		}},
		{"time goes back", proof.FaultAnchor, "time is before", 2, func(d doc, _ *prooftest.Line) { d["time"] = "2020-01-01T00:00:00.000000Z" }},
		{"a row was archived long after it", proof.FaultTime, "more than 5 minutes", 0, func(d doc, _ *prooftest.Line) { d["time"] = "2020-01-01T00:00:00.000000Z" }},
		{"a checkpoint of another tree", proof.FaultAnchor, "checkpoint is not that", 2, func(d doc, _ *prooftest.Line) {
			d["checkpoints"] = []any{doc{"tenant": "acme", "note": "x\n1\nAAAA\n\n"}}
		}},
		{"a head of a log that is not there", proof.FaultAnchor, "lists a log that has no rows here", 2, func(d doc, _ *prooftest.Line) {
			d["heads"] = []any{head("ghost", 1, chain.Hash{}, chain.Hash{})}
		}},
		{"a head that did not change", proof.FaultAnchor, "tenant a/b, seq 1: the anchor lists a head that did not change", 1, func(d doc, l *prooftest.Line) {
			log := l.Logs["a/b"]
			d["heads"] = append([]any{head("a/b", 1, log.Head, log.Tree.Root())}, d["heads"].([]any)...)
		}},
		{"another tree of the right size and head", proof.FaultAnchor, "not those of the log's tree", 1, func(d doc, l *prooftest.Line) {
			d["heads"].([]any)[1] = head("東京", 1, l.Logs["東京"].Head, chain.Hash{})
		}},
		{"a root that is not that of its frontier", proof.FaultAnchor, "root is not that of its frontier", 1, func(d doc, l *prooftest.Line) {
			d["heads"].([]any)[1].(doc)["root"] = chain.Hash{}
		}},
		{"heads out of order", proof.FaultAnchor, "not in the order of their tenants", 1, func(d doc, _ *prooftest.Line) {
			h := d["heads"].([]any)
			h[0], h[1] = h[1], h[0]
		}},
		{"segments out of order", proof.FaultAnchor, "segments are not in order", 1, func(d doc, _ *prooftest.Line) {
			s := d["segments"].([]any)
			s[0], s[1] = s[1], s[0]
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, l := anchored()
			c.change(l.Anchors[c.anchor].Doc, l)
			l.Anchors[c.anchor].Encode()
			wantFault(t, verify(t, a.Objects()), c.kind, c.words)
		})
	}
}
