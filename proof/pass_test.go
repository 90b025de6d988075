package proof_test

import (
	"context"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// long builds a line of six segments with an anchor after each, of which times
// are an hour apart.
func long(n int) (*prooftest.Archive, *prooftest.Line) {
	a := prooftest.New()
	a.Signers = []*sign.Signer{keyA}
	l := a.Line("audit.calls", 0)
	for i := range n {
		l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("acme"); b.Call("globex") })
		anchor := l.Anchor()
		anchor.Doc["time"] = time.UnixMicro(prooftest.Start).Add(time.Duration(i+1) * time.Hour).UTC().Format(archive.TimeLayout)
		anchor.Encode()
	}
	return a, l
}

// What lies before the rows that were asked for is hashed and held against
// anchors, and not decoded; the report says so.
func TestRanges(t *testing.T) {
	a, l := long(6)
	at := func(hours float64) time.Time {
		return time.UnixMicro(prooftest.Start).Add(time.Duration(hours * float64(time.Hour)))
	}
	for _, c := range []struct {
		name   string
		o      proof.Options
		passed int64 // segments
		from   int64 // of acme
	}{
		{"all", proof.Options{}, 0, 0},
		{"from a seq on", proof.Options{Tenant: "acme", FromSeq: 5}, 2, 4},
		{"from the first row of a segment on", proof.Options{Tenant: "acme", FromSeq: 4}, 2, 4},
		{"from the last row of a segment on", proof.Options{Tenant: "acme", FromSeq: 3}, 1, 2},
		{"from a seq that is not there", proof.Options{Tenant: "acme", FromSeq: 99}, 6, 12},
		{"since a time", proof.Options{Since: at(3.5)}, 3, 6},
		{"just behind an anchor, whose rows may be 5 minutes younger", proof.Options{Since: at(3.05)}, 2, 4},
		{"since before the beginning", proof.Options{Since: at(-1)}, 0, 0},
		{"since later than the end", proof.Options{Since: at(99)}, 6, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.o.Keys = ring(t, keyA)
			r := verifyWith(t, a.Objects(), c.o)
			if c.passed == 6 { // all of them: nothing that was asked for is there
				sure(t, r, 3, proof.TierT1)
			} else {
				sure(t, r, 0, proof.TierT1)
			}
			line := r.Lines[0]
			if line.Passed.Segments != c.passed || line.Passed.Rows != 3*c.passed || line.Logs[0].CheckedFrom != c.from || line.Logs[0].Size != 12 || r.Totals.Rows != 18 {
				t.Errorf("passed %+v, logs %+v, rows %d", line.Passed, line.Logs, r.Totals.Rows)
			}
			if said := len(r.NotProved) > 2; said != (c.passed > 0) {
				t.Errorf("not proved: %q", r.NotProved)
			}
		})
	}
	// What is passed is hashed, and what it says is held against anchors.
	bad := a.Objects()
	flip(bad[l.Key(0)], 999)
	sure(t, verifyWith(t, bad, proof.Options{Keys: ring(t, keyA), Since: at(99)}), 1, proof.TierNone, "its SHA-256 is")
	delete(bad, l.Key(0))
	sure(t, verifyWith(t, bad, proof.Options{Keys: ring(t, keyA), Since: at(99)}), 1, proof.TierNone, "segment 0 is missing")
	if _, err := proof.Verify(context.Background(), prooftest.Bucket(a.Objects()), proof.Options{FromSeq: 1}); err == nil {
		t.Error("a first seq of no tenant is taken")
	}
}

// A changed row that is passed is not seen, where everything was made anew with
// the key: the report does not say that it was.
func TestWhatIsPassedIsNotDecoded(t *testing.T) {
	a, l := long(3)
	l.Segments[0].Rows[0].Status.S = "changed" // and row_hash stays
	l.Segments[0].Encode()
	l.Relink(1)
	l.Reanchor()
	o := proof.Options{Keys: ring(t, keyA)}
	sure(t, verifyWith(t, a.Objects(), o), 1, proof.TierNone, "row_hash is not the hash")
	o.Tenant, o.FromSeq = "acme", 4
	r := verifyWith(t, a.Objects(), o)
	sure(t, r, 0, proof.TierT1)
	if r.Lines[0].Logs[0].CheckedFrom != 4 {
		t.Errorf("%+v", r.Lines[0].Logs)
	}
}

// Of lines that were not asked for nothing is read but the keys in their
// anchors.
func TestLinesThatWereNotAskedFor(t *testing.T) {
	a := prooftest.New()
	a.Signers, a.Keys.Anchor = []*sign.Signer{keyA}, []string{keyB.VKey()}
	one := a.Line("audit.calls", 0)
	one.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	one.Anchor()
	a.Signers, a.Keys.Anchor = []*sign.Signer{keyB}, []string{}
	two := a.Line("audit.calls", 1)
	two.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	two.Anchor()
	objects := a.Objects()
	flip(objects[one.Key(0)], 999)
	partition := int32(1)
	o := proof.Options{Keys: ring(t, keyA), Topic: "audit.calls", Partition: &partition}
	r := verifyWith(t, objects, o)
	sure(t, r, 0, proof.TierT1)
	if len(r.Lines) != 1 || r.Lines[0].Partition != 1 || r.NotProved[0] != "anything of other lines: 1 line was not read" {
		t.Errorf("lines %+v, not proved %q", r.Lines, r.NotProved)
	}
	partition = 7
	sure(t, verifyWith(t, objects, o), 3, proof.TierNone, "no segment of the topic and partition")
}

// A chain reset that is passed is counted all the same, and what follows it
// goes on.
func TestAChainResetIsPassed(t *testing.T) {
	h := newHistory()
	o := proof.Options{Keys: ring(t, keyA), Tenant: "acme", FromSeq: 8}
	r := verifyWith(t, h.Objects(), o)
	sure(t, r, 4, proof.TierT1, "chain reset: ")
	if l := r.Lines[0]; l.Passed.Segments == 0 || l.Logs[0].Epoch != 1 || l.Logs[0].CheckedFrom == 0 || l.Voided != 1 {
		t.Errorf("line %+v", l)
	}
}
