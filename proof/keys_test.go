package proof_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// ring returns a ring with the keys of signers.
func ring(t testing.TB, signers ...*sign.Signer) *sign.Ring {
	t.Helper()
	r := &sign.Ring{}
	for _, s := range signers {
		if err := r.Add(s.VKey(), sign.AllRoles, "given"); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

var (
	keyA = prooftest.Signer("example/a")
	keyB = prooftest.Signer("example/b")
	keyC = prooftest.Signer("example/c")
)

// signedArchive builds two lines with two anchors each, signed as a says.
func signedArchive(a *prooftest.Archive) (one, two *prooftest.Line) {
	one, two = a.Line("audit.calls", 0), a.Line("audit.calls", 1)
	for range 2 {
		for _, l := range []*prooftest.Line{one, two} {
			l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex") })
			l.Anchor()
		}
	}
	return one, two
}

func signedBy(signers ...*sign.Signer) (*prooftest.Archive, *prooftest.Line, *prooftest.Line) {
	a := prooftest.New()
	a.Signers = signers
	one, two := signedArchive(a)
	return a, one, two
}

// sure requires an exit code, a tier, and words somewhere in the report.
func sure(t *testing.T, r *proof.Report, exit int, tier string, words ...string) {
	t.Helper()
	if r.ExitCode() != exit || r.Tier != tier {
		t.Errorf("exit %d, tier %s, want %d, %s: faults %v, less %q, looks %q", r.ExitCode(), r.Tier, exit, tier, r.Faults, r.Less, r.Looks)
	}
	said := strings.Join(slices.Concat(r.Less, r.Looks, r.Notes), "\n")
	for _, f := range r.Faults {
		said += "\n" + string(f.Kind) + " " + f.String()
	}
	for _, w := range words {
		if !strings.Contains(said, w) {
			t.Errorf("%q does not say %q", said, w)
		}
	}
}

// What a key is worth that was given or not, to archives that are signed by it
// or not: never yes to nothing.
func TestWithoutAGoodKeyLessIsProved(t *testing.T) {
	signed, _, _ := signedBy(keyA)
	bare, _, _ := signedBy()
	half := prooftest.New()
	one, two := half.Line("audit.calls", 0), half.Line("audit.calls", 1)
	half.Signers = []*sign.Signer{keyA}
	one.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	one.Anchor()
	two.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	for _, c := range []struct {
		name    string
		objects map[string][]byte
		keys    []*sign.Signer
		bare    bool // consistency alone is asked for
		exit    int
		tier    string
		words   string
	}{
		{"the right key", signed.Objects(), []*sign.Signer{keyA}, false, 0, proof.TierT1, "4 notes: 4 signed by a good key"},
		{"the right key and another", signed.Objects(), []*sign.Signer{keyB, keyA}, false, 0, proof.TierT1, ""},
		{"no key", signed.Objects(), nil, false, 3, proof.TierT0, "no key was given"},
		{"no key, and none asked for", signed.Objects(), nil, true, 0, proof.TierT0, "signatures not checked"},
		{"another key", signed.Objects(), []*sign.Signer{keyB}, false, 3, proof.TierT0, "no anchor by a good key in 2 lines: audit.calls/0, audit.calls/1"},
		{"another key, and none asked for", signed.Objects(), []*sign.Signer{keyB}, true, 0, proof.TierT0, "4 signed by none of the keys"},
		{"a key, and nothing is signed", bare.Objects(), []*sign.Signer{keyA}, false, 3, proof.TierT0, "no anchor by a good key in 2 lines"},
		{"no key, and nothing is signed", bare.Objects(), nil, false, 3, proof.TierT0, "no key was given"},
		{"one line is not anchored", half.Objects(), []*sign.Signer{keyA}, false, 3, proof.TierT0, "no anchor by a good key in 1 line: audit.calls/1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sure(t, verifyWith(t, c.objects, proof.Options{Keys: ring(t, c.keys...), Unsigned: c.bare}), c.exit, c.tier, c.words)
		})
	}
}

// Once some note is signed by a good key, the others are not excused.
func TestNotesAmongSignedOnes(t *testing.T) {
	for _, c := range []struct {
		name  string
		exit  int
		words string
		do    func(one, two *prooftest.Line)
	}{
		{"one by another key", 1, "signature", func(_, two *prooftest.Line) { two.Anchors[1].Signers = []*sign.Signer{keyB}; two.Anchors[1].Encode() }},
		{"one without a signature", 3, "1 note without a signature", func(_, two *prooftest.Line) { two.Anchors[1].Signers = nil; two.Anchors[1].Encode() }},
		{"the only good one is in another line", 1, "signed, but by no key that is good for it", func(_, two *prooftest.Line) {
			for _, a := range two.Anchors {
				a.Signers = []*sign.Signer{keyB}
				a.Encode()
			}
		}},
		{"one by both", 0, "", func(_, two *prooftest.Line) {
			two.Anchors[1].Signers = []*sign.Signer{keyB, keyA}
			two.Anchors[1].Encode()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, one, two := signedBy(keyA)
			c.do(one, two)
			tier := map[int]string{0: proof.TierT1, 1: proof.TierNone, 3: proof.TierT1}[c.exit]
			sure(t, verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyA)}), c.exit, tier, c.words)
		})
	}
}

// An anchor that covers no row says nothing of rows; nor does one that covers
// none of the tenant that was asked for.
func TestAnAnchorThatCoversNothing(t *testing.T) {
	a := prooftest.New()
	a.Signers = []*sign.Signer{keyA}
	l := a.Line("audit.calls", 0)
	l.Anchor()
	l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	o := proof.Options{Keys: ring(t, keyA)}
	sure(t, verifyWith(t, a.Objects(), o), 3, proof.TierT0, "no anchor by a good key in 1 line")
	l.Anchor()
	l.Segment(func(b *prooftest.Batch) { b.Call("globex") })
	sure(t, verifyWith(t, a.Objects(), o), 0, proof.TierT1, "1 row of globex not anchored yet")
	o.Tenant = "globex"
	sure(t, verifyWith(t, a.Objects(), o), 3, proof.TierT1, "no anchor by a good key covers a row of tenant globex")
	o.Unsigned = true
	sure(t, verifyWith(t, a.Objects(), o), 0, proof.TierT1)
}

// A line is proved up to its newest anchor by a good key, whatever stands
// behind that one.
func TestALineIsSignedUpToItsNewestGoodAnchor(t *testing.T) {
	a, one, _ := signedBy(keyA)
	a.Signers = nil
	one.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	one.Anchor()
	r := verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyA)})
	sure(t, r, 3, proof.TierT1, "1 note without a signature")
	if l := r.Lines[0]; l.Signed.Number != 1 || l.Signed.Ordinal != 1 || l.Logs[0].Signed != 2 || l.Logs[0].Size != 3 || l.Logs[0].NotAnchored != 0 || l.Signed.By[0] != keyA.VKey() {
		t.Errorf("line %+v, signed %+v", l.Logs, l.Signed)
	}
}

// A good anchor introduces keys, for the whole archive and for keys that
// introduce others, wherever it stands: in another line, and behind them.
func TestAnchorsIntroduceKeys(t *testing.T) {
	build := func() (*prooftest.Archive, *prooftest.Line) {
		a := prooftest.New()
		// The lines' order is not that of the keys.
		for i, c := range []struct {
			by   *sign.Signer
			next *sign.Signer
		}{{keyC, nil}, {keyB, keyC}, {keyA, keyB}} {
			a.Signers, a.Keys.Anchor = []*sign.Signer{c.by}, []string{}
			if c.next != nil {
				a.Keys.Anchor = []string{c.next.VKey()}
			}
			l := a.Line("audit.calls", int32(i))
			l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
			l.Anchor()
		}
		a.Keys.Anchor = []string{}
		a.Signers = []*sign.Signer{keyA}
		return a, a.Line("audit.calls", 3)
	}
	a, _ := build()
	r := verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyA)})
	sure(t, r, 0, proof.TierT1)
	if len(r.Keys) != 3 || r.Keys[0].Source != "given" || r.Keys[1].Source != "anchor 0 of audit.calls/2" || !slices.Equal(r.Keys[1].Roles, []string{"anchor"}) {
		t.Errorf("keys %+v", r.Keys)
	}
	a, l := build()
	l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	l.Anchor()
	sure(t, verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyB)}), 1, proof.TierNone, "by no key that is good for it")
	sure(t, verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyC)}), 1, proof.TierNone)
}

// A key counts for the roles that it was introduced for.
func TestKeysHaveRoles(t *testing.T) {
	a, _, _ := signedBy(keyA)
	a.Keys.Catalog = []string{keyB.VKey()}
	l := a.Line("audit.calls", 2)
	l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	l.Anchor()
	a.Signers, a.Keys.Catalog = []*sign.Signer{keyB}, []string{}
	l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	l.Anchor()
	sure(t, verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyA)}), 1, proof.TierNone, "by no key that is good for it")
}

// A key note makes the key of a process good up to its end, and no other key
// note by that one.
func TestKeyNotes(t *testing.T) {
	end := time.UnixMicro(prooftest.Start).Add(time.Hour)
	for _, c := range []struct {
		name  string
		exit  int
		words string
		do    func(o map[string][]byte)
	}{
		{"as it is", 0, "5 notes: 5 signed by a good key", func(map[string][]byte) {}},
		{"it is missing", 3, "no anchor by a good key", func(o map[string][]byte) { delete(o, sign.KeyNoteKey(keyB.VKey())) }},
		{"it has ended", 1, "by no key that is good for it", func(o map[string][]byte) {
			o[sign.KeyNoteKey(keyB.VKey())] = certify(keyB, prooftest.ID, end.Add(-2*time.Hour), keyA)
		}},
		{"of another archive", 1, "misplaced", func(o map[string][]byte) {
			o[sign.KeyNoteKey(keyB.VKey())] = certify(keyB, "01KBCDEFGHJKMNPQRSTVWXYZ99", end, keyA)
		}},
		{"under another key", 1, "misplaced", func(o map[string][]byte) {
			o[sign.KeyNoteKey(keyC.VKey())] = certify(keyB, prooftest.ID, end, keyA)
		}},
		{"by the key itself", 3, "signed by none of the keys", func(o map[string][]byte) {
			o[sign.KeyNoteKey(keyB.VKey())] = certify(keyB, prooftest.ID, end, keyB)
		}},
		{"by a certified key", 1, "signature", func(o map[string][]byte) {
			o[sign.KeyNoteKey(keyC.VKey())] = certify(keyC, prooftest.ID, end, keyB)
		}},
		{"not signed", 3, "no anchor by a good key", func(o map[string][]byte) {
			o[sign.KeyNoteKey(keyB.VKey())] = certify(keyB, prooftest.ID, end)
		}},
		{"another one is not signed", 3, "1 note without a signature", func(o map[string][]byte) {
			o[sign.KeyNoteKey(keyC.VKey())] = certify(keyC, prooftest.ID, end)
		}},
		{"a flipped bit", 1, "", func(o map[string][]byte) { flip(o[sign.KeyNoteKey(keyB.VKey())], 8*60) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, _, _ := signedBy(keyB)
			objects := a.Objects()
			objects[sign.KeyNoteKey(keyB.VKey())] = certify(keyB, prooftest.ID, end, keyA)
			c.do(objects)
			r := verifyWith(t, objects, proof.Options{Keys: ring(t, keyA)})
			sure(t, r, c.exit, map[int]string{0: proof.TierT1, 1: proof.TierNone, 3: r.Tier}[c.exit], c.words)
		})
	}
}

func certify(key *sign.Signer, archiveID string, notAfter time.Time, by ...*sign.Signer) []byte {
	text := sign.KeyNoteText(archiveID, key.VKey(), notAfter)
	if len(by) == 0 {
		return []byte(text + "\n")
	}
	body, err := sign.Sign(text, by[0])
	if err != nil {
		panic(err)
	}
	return body
}

// A checkpoint is signed by a key that signed its anchor.
func TestCheckpointsAreSigned(t *testing.T) {
	for _, c := range []struct {
		name, words string
		do          func(note string) string
	}{
		{"not signed", "not signed by a key that signed the anchor", func(n string) string { return n[:strings.Index(n, "\n\n")+2] }},
		{"by another key", "not signed by a key that signed the anchor", func(n string) string {
			body, _ := sign.Sign(n[:strings.Index(n, "\n\n")+1], keyB)
			return string(body)
		}},
		{"forged", "in the name of a good key", func(n string) string {
			other, _ := sign.Sign("x\n", keyA)
			return n[:strings.Index(n, "\n\n")+1] + string(other)[2:]
		}},
		{"no note", "not a note", func(n string) string { return n[:10] }},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, one, _ := signedBy(keyA)
			point := one.Anchors[1].Doc["checkpoints"].([]any)[0].(map[string]any)
			point["note"] = c.do(point["note"].(string))
			one.Anchors[1].Encode()
			sure(t, verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyA)}), 1, proof.TierNone, c.words)
		})
	}
}

// The sizes of all heads sum up to the rows of a line, also of logs that were not
// asked for.
func TestHeadsSumUp(t *testing.T) {
	a, one, _ := signedBy(keyA)
	heads := one.Anchors[1].Doc["heads"].([]any)
	one.Anchors[1].Doc["heads"] = heads[:1]
	one.Anchors[1].Encode()
	r := verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyA), Tenant: "acme"})
	sure(t, r, 1, proof.TierNone, "the sizes of all heads sum up to 3, totals has 4 rows")
}

// An independent writer's archive is proved with its key: each object is bound
// by a signature, but the segment that no anchor covers yet.
func TestAnyFlippedBitOfTheGoldenArchiveIsFoundWithItsKey(t *testing.T) {
	want := readGolden(t)
	keys := &sign.Ring{}
	if err := keys.Add(want.VKey, sign.AllRoles, "given"); err != nil {
		t.Fatal(err)
	}
	good := readFolder(t, "testdata/golden/plain")
	r := verifyWith(t, good, proof.Options{Keys: keys})
	sure(t, r, want.Expect["plain"].Exit, proof.TierT1, want.Expect["plain"].Look...)
	const newest = "log/audit.calls/kTq2VqYJQ0mFvY8v2b3m0A/00000/00000000000000000006.parquet"
	step := 9973 // bits: coprime to 8, so that each bit of a byte gets its turn
	if testing.Short() {
		step = 19997
	}
	flips := 0
	for _, key := range slices.Sorted(maps.Keys(good)) {
		every := step
		if !strings.HasPrefix(key, "log/") {
			every = step/20 | 1
		}
		for bit := 0; bit < 8*len(good[key]) && key != newest; bit += every {
			bad := maps.Clone(good)
			bad[key] = slices.Clone(good[key])
			flip(bad[key], bit)
			flips++
			if r := verifyWith(t, bad, proof.Options{Keys: keys}); r.ExitCode() != 1 {
				t.Errorf("bit %d of %s: exit %d", bit, key, r.ExitCode())
			}
		}
	}
	t.Logf("%d flips", flips)
}
