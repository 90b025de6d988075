package proof_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// notes is a place that has these notes.
func notes(bodies ...[]byte) proof.Place {
	return proof.Place{Name: "elsewhere", Notes: func(context.Context) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) {
			for _, b := range bodies {
				if !yield(b, nil) {
					return
				}
			}
		}
	}}
}

// backup returns the archive of signedArchive as it was after one anchor of each
// line, and the line's newest anchors as they went elsewhere.
func backup() (old map[string][]byte, newest [][]byte) {
	a, one, two := signedBy(keyA)
	old = a.Objects()
	for _, l := range []*prooftest.Line{one, two} {
		delete(old, l.Key(1))
		delete(old, l.AnchorKey(1))
		newest = append(newest, l.Anchors[1].Body)
	}
	return old, newest
}

// An archive that was put back to an older state is consistent and signed; only
// a head from elsewhere shows it.
func TestAnArchiveThatWentBackInTimeIsFoundByAnIndependentHead(t *testing.T) {
	old, newest := backup()
	keys := ring(t, keyA)
	sure(t, verifyWith(t, old, proof.Options{Keys: keys}), 0, proof.TierT1)
	r := verifyWith(t, old, proof.Options{Keys: keys, ExpectFrom: []proof.Place{notes(newest...)}})
	sure(t, r, 1, proof.TierNone, "the line's anchors end before 1; elsewhere has anchor 1", "tenant acme, seq 1: the log ends at 1 row; elsewhere has a head of 2")
	a, _, _ := signedBy(keyA)
	r = verifyWith(t, a.Objects(), proof.Options{Keys: keys, ExpectFrom: []proof.Place{notes(newest...)}})
	sure(t, r, 0, proof.TierT2)
	if l := r.Lines[0]; l.Independent.Number != 1 || l.Logs[0].Independent != 2 || l.Logs[0].Tier != proof.TierT2 {
		t.Errorf("line %+v", l)
	}
}

// What places are worth: an older head is a prefix, one that no good key signed
// is none, and one that is missing is missed.
func TestPlaces(t *testing.T) {
	a, one, two := signedBy(keyA)
	other, otherOne, _ := signedBy(keyA)
	other.ID = "01KBCDEFGHJKMNPQRSTVWXYZ99"
	fork, forkOne, _ := func() (*prooftest.Archive, *prooftest.Line, *prooftest.Line) {
		f := prooftest.New()
		f.Signers = []*sign.Signer{keyA}
		l := f.Line("audit.calls", 0)
		l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("globex") })
		l.Anchor()
		l.Segment(func(b *prooftest.Batch) { b.Call("globex"); b.Call("acme") })
		l.Anchor()
		return f, l, nil
	}()
	_ = fork
	foreign := strings.Replace(string(otherOne.Anchors[1].Body), prooftest.ID, other.ID, 1)
	gone := strings.Replace(string(one.Anchors[0].Body), `"partition":0`, `"partition":7`, 1)
	text, _, _ := strings.Cut(gone, "\n\n")
	resigned, err := sign.Sign(text+"\n", keyA)
	if err != nil {
		t.Fatal(err)
	}
	foreignText, _, _ := strings.Cut(foreign, "\n\n")
	elsewhere, err := sign.Sign(foreignText+"\n", keyA)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		notes [][]byte
		exit  int
		tier  string
		words string
	}{
		{"the newest", [][]byte{one.Anchors[0].Body, one.Anchors[1].Body, two.Anchors[1].Body, two.Anchors[0].Body}, 0, proof.TierT2, ""},
		{"older ones", [][]byte{one.Anchors[0].Body, two.Anchors[0].Body}, 0, proof.TierT2, ""},
		{"none of one line", [][]byte{one.Anchors[1].Body}, 3, proof.TierT1, "elsewhere has no head of audit.calls/1 by a good key"},
		{"none", nil, 3, proof.TierT1, "elsewhere has no head of audit.calls/0"},
		{"another history", [][]byte{forkOne.Anchors[1].Body, two.Anchors[1].Body}, 1, proof.TierNone, "elsewhere has another anchor 1 of the line"},
		{"unsigned", [][]byte{[]byte(text + "\n\n"), two.Anchors[1].Body}, 3, proof.TierT1, "1 note passed over"},
		{"of another archive", [][]byte{[]byte(foreign), one.Anchors[1].Body, two.Anchors[1].Body}, 0, proof.TierT2, "1 note passed over"},
		{"of another archive of the same lines, by the same key", [][]byte{elsewhere, one.Anchors[1].Body, two.Anchors[1].Body}, 3, proof.TierT2, "may have been put in its place"},
		{"forged", [][]byte{[]byte(gone), one.Anchors[1].Body, two.Anchors[1].Body}, 0, proof.TierT2, "1 note passed over"},
		{"no note", [][]byte{[]byte("x"), nil, one.Anchors[1].Body, two.Anchors[1].Body}, 0, proof.TierT2, "2 notes passed over"},
		{"a line that is gone", [][]byte{resigned, one.Anchors[1].Body, two.Anchors[1].Body}, 1, proof.TierNone, "anchor 0 of audit.calls/7, and there is no such line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sure(t, verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyA), ExpectFrom: []proof.Place{notes(c.notes...)}}), c.exit, c.tier, c.words)
		})
	}
}

// A log that began behind the newest anchor of a place is as long as that one
// says: it has none of its rows.
func TestALogThatBeganLater(t *testing.T) {
	a, one, two := signedBy(keyA)
	one.Segment(func(b *prooftest.Batch) { b.Call("later") })
	place := notes(one.Anchors[1].Body, two.Anchors[1].Body)
	one.Anchor()
	r := verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyA), ExpectFrom: []proof.Place{place}})
	sure(t, r, 0, proof.TierT2)
	if l := r.Lines[0].Logs[2]; l.Tenant != "later" || l.Independent != 0 || l.Tier != proof.TierT2 {
		t.Errorf("log %+v", l)
	}
}

// A checkpoint by a key that is certified is a head, whatever its end.
func TestACheckpointByACertifiedKey(t *testing.T) {
	a, one, two := signedBy(keyB)
	a.Certify(keyB, keyA)
	point := one.Anchors[1].Doc["checkpoints"].([]any)[0].(map[string]any)["note"].(string)
	o := proof.Options{Keys: ring(t, keyA), ExpectFrom: []proof.Place{notes([]byte(point), two.Anchors[1].Body)}}
	r := verifyWith(t, a.Objects(), o)
	sure(t, r, 0, proof.TierT1)
	if l := r.Lines[0].Logs; l[0].Independent != 2 || l[1].Independent != 0 {
		t.Errorf("logs %+v", l)
	}
}

// Without a key a place counts only where nobody else writes to it.
func TestPlacesWithoutAKey(t *testing.T) {
	old, newest := backup()
	place := notes(newest...)
	sure(t, verifyWith(t, old, proof.Options{Unsigned: true, ExpectFrom: []proof.Place{place}}), 3, proof.TierT0, "no head of audit.calls/0")
	place.Trusted = true
	sure(t, verifyWith(t, old, proof.Options{Unsigned: true, ExpectFrom: []proof.Place{place}}), 1, proof.TierNone, "newest part of the archive is missing")
}

// A place that cannot be read is no verdict.
func TestAPlaceThatCannotBeRead(t *testing.T) {
	a, _, _ := signedBy(keyA)
	away := errors.New("away")
	place := proof.Place{Name: "kafka", Notes: func(context.Context) iter.Seq2[[]byte, error] {
		return func(yield func([]byte, error) bool) { yield(nil, away) }
	}}
	_, err := proof.Verify(context.Background(), prooftest.Bucket(a.Objects()), proof.Options{Keys: ring(t, keyA), ExpectFrom: []proof.Place{place}})
	if !errors.Is(err, away) || !strings.Contains(err.Error(), "kafka: away") {
		t.Errorf("%v", err)
	}
}

// A head is compared at exactly its size, whatever segments it lies in.
func TestExpectedHeads(t *testing.T) {
	a := prooftest.New()
	a.Signers = []*sign.Signer{keyA}
	l := a.Line("audit.calls", 0)
	var heads, roots []chain.Hash
	for range 3 {
		l.Segment(func(b *prooftest.Batch) {
			for range 2 {
				b.Call("acme")
				heads, roots = append(heads, l.Logs["acme"].Head), append(roots, l.Logs["acme"].Tree.Root())
			}
		})
	}
	l.Anchor()
	at := func(size int64, head, root *chain.Hash) proof.Expected {
		return proof.Expected{Source: "my notes", Topic: "audit.calls", Tenant: "acme", Size: size, Head: head, Root: root}
	}
	for i := range heads {
		sure(t, verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyA), Expect: []proof.Expected{at(int64(i+1), &heads[i], &roots[i])}}), 0, proof.TierT2)
		wrong := sum([]byte("x"))
		for _, e := range []proof.Expected{at(int64(i+1), &wrong, nil), at(int64(i+1), nil, &wrong)} {
			sure(t, verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyA), Expect: []proof.Expected{e}}), 1, proof.TierNone, fmt.Sprintf("seq %d: ", i), "my notes has", "a row up to there was changed")
		}
	}
	elsewhere := at(1, &heads[0], nil)
	for _, c := range []struct {
		change func(e *proof.Expected)
		exit   int
		words  string
	}{
		{func(e *proof.Expected) { e.Size = 0 }, 0, ""},
		{func(e *proof.Expected) { e.Size = 7 }, 1, "tenant acme, seq 6: the log ends at 6 rows; my notes has a head of 7"},
		{func(e *proof.Expected) { e.Tenant = "globex" }, 1, "tenant globex, seq 0: the log ends at 0 rows"},
		{func(e *proof.Expected) { e.Topic = "other" }, 1, "there is no such line"},
		{func(e *proof.Expected) { e.Partition = 3 }, 1, "there is no such line"},
		{func(e *proof.Expected) { e.ArchiveID = "01KBCDEFGHJKMNPQRSTVWXYZ99" }, 1, "has a head of archive"},
	} {
		e := elsewhere
		c.change(&e)
		r := verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyA), Expect: []proof.Expected{e}})
		sure(t, r, c.exit, r.Tier, c.words)
	}
	r := verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyA), Tenant: "nobody", Expect: []proof.Expected{elsewhere}})
	sure(t, r, 3, r.Tier, "the tenant was not asked for")
}

// A checkpoint from elsewhere is a head; cosigned by a witness that was given,
// it is more. So is one that stands in an anchor.
func TestWitnesses(t *testing.T) {
	a, one, _ := signedBy(keyA)
	witness, cosign := newWitness(t, "example/witness")
	point := func(l *prooftest.Line, tenant string, by bool) []byte {
		log := l.Logs[tenant]
		text := chain.CheckpointText(chain.CheckpointOrigin(chain.Log{ArchiveID: a.ID, Tenant: tenant, Topic: l.Topic, TopicID: l.TopicID, Partition: l.Partition}), log.Tree.Size, log.Tree.Root())
		body, err := sign.Sign(text, keyA)
		if err != nil {
			t.Fatal(err)
		}
		if by {
			body = append(body, cosign(text)...)
		}
		return body
	}
	lines := []*prooftest.Line{one, a.Line("audit.calls", 0)}[:1]
	all := func(by bool) (bodies [][]byte) {
		for _, l := range lines {
			for tenant := range l.Logs {
				bodies = append(bodies, point(l, tenant, by))
			}
		}
		return bodies
	}
	objects := a.Objects()
	maps.DeleteFunc(objects, func(key string, _ []byte) bool { return strings.Contains(key, "/00001/") })
	o := proof.Options{Keys: ring(t, keyA), Witnesses: []*sign.Witness{witness}, ExpectFrom: []proof.Place{notes(all(true)...)}}
	r := verifyWith(t, objects, o)
	sure(t, r, 0, proof.TierT3)
	if w := r.Lines[0].Logs[0].Witnessed; len(w) != 1 || w[0].Witness != "example/witness" || w[0].Size != 2 || w[0].Time.Unix() != 1_780_000_000 {
		t.Errorf("witnessed %+v", w)
	}
	o.ExpectFrom = []proof.Place{notes(all(false)...)}
	sure(t, verifyWith(t, objects, o), 3, proof.TierT2, "no checkpoint with a cosignature by a given witness of 2 logs: acme in audit.calls/0, globex in audit.calls/0")
	o.Witnesses = nil
	sure(t, verifyWith(t, objects, o), 0, proof.TierT2)

	// In an anchor: there a checkpoint proves no more than T1 without a head from elsewhere.
	for _, p := range one.Anchors[1].Doc["checkpoints"].([]any) {
		n := p.(map[string]any)
		text, _, _ := strings.Cut(n["note"].(string), "\n\n")
		n["note"] = n["note"].(string) + string(cosign(text+"\n"))
	}
	one.Anchors[1].Encode()
	objects[one.AnchorKey(1)] = one.Anchors[1].Body
	r = verifyWith(t, objects, proof.Options{Keys: ring(t, keyA), Witnesses: []*sign.Witness{witness}})
	sure(t, r, 0, proof.TierT1)
	if !slices.ContainsFunc(r.Lines[0].Logs, func(l proof.LogReport) bool { return len(l.Witnessed) == 1 }) {
		t.Errorf("logs %+v", r.Lines[0].Logs)
	}
}

// newWitness returns a witness, and what it adds to a checkpoint.
func newWitness(t *testing.T, name string) (*sign.Witness, func(text string) []byte) {
	t.Helper()
	seed := sha256.Sum256([]byte(name))
	key := ed25519.NewKeyFromSeed(seed[:])
	data := append([]byte{4}, key.Public().(ed25519.PublicKey)...)
	hash := sha256.Sum256(append([]byte(name+"\n"), data...))
	w, err := sign.ParseWitness(fmt.Sprintf("%s+%x+%s", name, hash[:4], base64.StdEncoding.EncodeToString(data)))
	if err != nil {
		t.Fatal(err)
	}
	const at = 1_780_000_000
	return w, func(text string) []byte {
		sig := ed25519.Sign(key, fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", at, text))
		line := slices.Concat(hash[:4], binary.BigEndian.AppendUint64(nil, at), sig)
		return fmt.Appendf(nil, "— %s %s\n", name, base64.StdEncoding.EncodeToString(line))
	}
}

// Heads are compared across chain resets and in data files as well.
func TestExpectedHeadsOfACompactedLine(t *testing.T) {
	before := newHistory()
	keys := ring(t, keyA)
	var all []proof.Expected
	for _, s := range before.calls.Segments {
		for i := range s.Rows {
			if row := &s.Rows[i]; row.TenantID.S == "acme" && s.Meta.Ordinal != 4 {
				all = append(all, proof.Expected{Source: "mine", Topic: "audit.calls", Tenant: "acme", Size: row.Seq.N + 1, Head: &row.RowHash})
			}
		}
	}
	for _, watermark := range []int64{0, 6} {
		h := newHistory()
		if watermark > 0 {
			h.calls.Compact(prooftest.Compaction{Watermark: watermark, FileRows: 2})
		}
		for _, e := range all {
			r := verifyWith(t, h.Objects(), proof.Options{Keys: keys, Expect: []proof.Expected{e}})
			if r.ExitCode() != 4 || !slices.ContainsFunc(r.Lines[0].Logs, func(l proof.LogReport) bool { return l.Tenant == "acme" && l.Independent == e.Size }) {
				t.Errorf("watermark %d, size %d: exit %d, %v, less %q", watermark, e.Size, r.ExitCode(), r.Faults, r.Less)
			}
			wrong := sum([]byte("x"))
			e.Head = &wrong
			sure(t, verifyWith(t, h.Objects(), proof.Options{Keys: keys, Expect: []proof.Expected{e}}), 1, proof.TierNone, fmt.Sprintf("seq %d", e.Size-1), "was changed")
		}
	}
}
