package proof_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// grown builds a line that a verification saw after half of its segments, and
// which went on then.
func grown(t *testing.T, keys *sign.Ring) (a *prooftest.Archive, l *prooftest.Line, saved *proof.Saved) {
	t.Helper()
	a = prooftest.New()
	a.Signers = []*sign.Signer{keyA}
	l = a.Line("audit.calls", 0)
	add := func() {
		l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("東京"); b.Skip(2, archive.GapControl) })
	}
	for range 3 {
		add()
		l.Anchor()
	}
	add() // no anchor covers it then
	l.Segment(func(b *prooftest.Batch) { b.Call("globex"); b.Duplicate("acme", 1) })
	saved = save(t, a.Objects(), proof.Options{Keys: keys})
	l.Anchor()
	add()
	l.Anchor()
	add()
	return a, l, saved
}

var savedAt = time.Date(2026, 5, 28, 12, 0, 0, 0, time.UTC)

// save verifies an archive, and has the state written and read again.
func save(t *testing.T, objects map[string][]byte, o proof.Options) *proof.Saved {
	t.Helper()
	s := verifyWith(t, objects, o).Save(savedAt)
	if s == nil {
		t.Fatal("nothing to save")
	}
	text, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := proof.DecodeSaved(text)
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// A verification that goes on from a saved state reads nothing before it but one
// anchor, and finds what one from the beginning does.
func TestAVerificationGoesOnFromASavedState(t *testing.T) {
	keys := ring(t, keyA)
	a, l, saved := grown(t, keys)
	src := &counting{Memory: prooftest.Bucket(a.Objects())}
	r, err := proof.Verify(context.Background(), src, proof.Options{Keys: keys, Saved: saved})
	if err != nil {
		t.Fatal(err)
	}
	sure(t, r, 0, proof.TierT1, "3 notes: 3 signed")
	for i := range l.Segments {
		if read := slices.Contains(src.keys, l.Key(i)); read != (i >= 3) {
			t.Errorf("segment %d read: %t", i, read)
		}
	}
	for i := range l.Anchors {
		if read := slices.Contains(src.keys, l.AnchorKey(i)); read != (i >= 2) {
			t.Errorf("anchor %d read: %t", i, read)
		}
	}
	whole := verifyWith(t, a.Objects(), proof.Options{Keys: keys})
	if p := r.Lines[0].Saved; p == nil || p.Anchor != 2 || p.Ordinal != 2 || p.Rows != 6 || !p.Time.Equal(savedAt) {
		t.Errorf("saved %+v", p)
	}
	if !reflect.DeepEqual(r.Lines[0].Logs, whole.Lines[0].Logs) || !reflect.DeepEqual(r.Totals, whole.Totals) || r.Lines[0].Signed.Number != 4 {
		t.Errorf("logs %+v\nwant %+v\ntotals %+v\nwant %+v", r.Lines[0].Logs, whole.Lines[0].Logs, r.Totals, whole.Totals)
	}
	if !strings.Contains(strings.Join(r.Proved, "\n"), "6 rows by verifications from 2026-05-28T12:00:00Z to 2026-05-28T12:00:00Z, whose state was given") {
		t.Errorf("proved %q", r.Proved)
	}
	// And on from there, with nothing new.
	again := verifyWith(t, a.Objects(), proof.Options{Keys: keys, Saved: r.Save(savedAt.Add(time.Hour))})
	sure(t, again, 0, proof.TierT1)
	if p := again.Lines[0].Saved; !p.Began.Equal(savedAt) || !p.Time.Equal(savedAt.Add(time.Hour)) {
		t.Errorf("saved %+v", p)
	}
	if again.Lines[0].Saved.Anchor != 4 || !reflect.DeepEqual(again.Lines[0].Logs, whole.Lines[0].Logs) {
		t.Errorf("line %+v", again.Lines[0])
	}
}

// counting remembers what was read.
type counting struct {
	*archive.Memory
	keys []string
}

func (c *counting) Get(ctx context.Context, key string) ([]byte, error) {
	body, err := c.Memory.Get(ctx, key)
	countingMu <- struct{}{}
	c.keys = append(c.keys, key)
	<-countingMu
	return body, err
}

var countingMu = make(chan struct{}, 1)

// What changed since, or is gone, is found, also where it lies before the state.
func TestWhatWasSavedIsStillThere(t *testing.T) {
	keys := ring(t, keyA)
	for _, c := range []struct {
		name, words string
		do          func(o map[string][]byte, a *prooftest.Archive, l *prooftest.Line)
	}{
		{"a segment before it is gone", "2 segments are there", func(o map[string][]byte, _ *prooftest.Archive, l *prooftest.Line) { delete(o, l.Key(1)) }},
		{"an anchor before it is gone", "1 anchor are there before anchor 2", func(o map[string][]byte, _ *prooftest.Archive, l *prooftest.Line) { delete(o, l.AnchorKey(0)) }},
		{"the line is gone", "the line is gone", func(o map[string][]byte, _ *prooftest.Archive, _ *prooftest.Line) {
			maps.DeleteFunc(o, func(k string, _ []byte) bool { return k != archive.RootKey })
			o["key/"+strings.Repeat("0", 64)+".note"] = nil
		}},
		{"the next segment follows another one", "previousSha256 is not the hash that segment 2 had", func(o map[string][]byte, _ *prooftest.Archive, l *prooftest.Line) {
			l.Segments[2].Rows[0].Status.S = "changed"
			l.Restamp()
			for i := range l.Segments {
				o[l.Key(i)] = l.Segments[i].Body
			}
		}},
		{"the anchor is another", "it was changed since the verification of", func(o map[string][]byte, _ *prooftest.Archive, l *prooftest.Line) {
			l.Anchors[2].Doc["later"] = 1
			l.Anchors[2].Encode()
			o[l.AnchorKey(2)] = l.Anchors[2].Body
		}},
		{"all of it was made anew", "it was changed since the verification of", func(o map[string][]byte, _ *prooftest.Archive, l *prooftest.Line) {
			l.Segments[0].Rows[0].Status.S = "changed"
			l.Restamp()
			l.Reanchor()
			for i := range l.Segments {
				o[l.Key(i)] = l.Segments[i].Body
			}
			for i := range l.Anchors {
				o[l.AnchorKey(i)] = l.Anchors[i].Body
			}
		}},
		{"a later segment was changed", "its SHA-256 is", func(o map[string][]byte, _ *prooftest.Archive, l *prooftest.Line) { flip(o[l.Key(3)], 999) }},
		{"the newest part is gone", "its anchors end before 2", func(o map[string][]byte, _ *prooftest.Archive, l *prooftest.Line) {
			for i := 2; i < len(l.Anchors); i++ {
				delete(o, l.AnchorKey(i))
			}
		}},
		{"ledgerlake.json was changed", "was changed since", func(o map[string][]byte, _ *prooftest.Archive, _ *prooftest.Line) {
			o[archive.RootKey] = append(o[archive.RootKey], '\n')
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, l, saved := grown(t, keys)
			objects := a.Objects()
			c.do(objects, a, l)
			sure(t, verifyWith(t, objects, proof.Options{Keys: keys, Saved: saved}), 1, proof.TierNone, c.words)
		})
	}
}

// A head that lies before the state cannot be compared, and that is said.
func TestHeadsBeforeTheState(t *testing.T) {
	keys := ring(t, keyA)
	a, l, saved := grown(t, keys)
	for i, c := range []struct {
		exit  int
		words string
	}{{3, "anchor 0 of audit.calls/0 that elsewhere has was not compared"}, {3, "not compared"}, {0, ""}, {0, ""}, {0, ""}} {
		o := proof.Options{Keys: keys, Saved: saved, ExpectFrom: []proof.Place{notes(l.Anchors[i].Body)}}
		r := verifyWith(t, a.Objects(), o)
		sure(t, r, c.exit, r.Tier, c.words)
		if (r.Tier == proof.TierT2) != (c.exit == 0) {
			t.Errorf("anchor %d: tier %s", i, r.Tier)
		}
	}
	r := verifyWith(t, a.Objects(), proof.Options{Keys: keys, Saved: saved, Expect: []proof.Expected{{
		Source: "mine", Topic: "audit.calls", Tenant: "acme", Size: 1, Root: new(chain.Hash),
	}}})
	sure(t, r, 3, proof.TierT1, "the head of acme at 1 row was not compared")
}

// Keys that anchors before the state introduced are still good, as long as what
// was given then is given.
func TestKeysAreSaved(t *testing.T) {
	a := prooftest.New()
	a.Signers, a.Keys.Anchor = []*sign.Signer{keyA}, []string{keyB.VKey()}
	l := a.Line("audit.calls", 0)
	next := func() {
		l.Segment(func(b *prooftest.Batch) { b.Call("acme") })
		l.Anchor()
	}
	next()
	a.Signers, a.Keys.Anchor = []*sign.Signer{keyB}, []string{}
	next()
	saved := save(t, a.Objects(), proof.Options{Keys: ring(t, keyA)})
	next()
	sure(t, verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyA), Saved: saved}), 0, proof.TierT1)
	sure(t, verifyWith(t, a.Objects(), proof.Options{Keys: ring(t, keyC), Saved: saved}), 3, proof.TierT0, "no anchor by a good key")
}

// Where nothing is proved up to an anchor, nothing is saved.
func TestWhatIsNotSaved(t *testing.T) {
	a, l := anchored()
	bad := a.Objects()
	flip(bad[l.Key(0)], 999)
	bare := prooftest.New()
	bare.Line("audit.calls", 0).Segment(func(b *prooftest.Batch) { b.Call("acme") })
	for name, r := range map[string]*proof.Report{
		"a fault":          verify(t, bad),
		"a part":           verifyWith(t, a.Objects(), proof.Options{Unsigned: true, Tenant: "acme"}),
		"a time":           verifyWith(t, a.Objects(), proof.Options{Unsigned: true, Since: savedAt}),
		"no anchor":        verify(t, bare.Objects()),
		"nothing but root": verify(t, prooftest.New().Objects()),
	} {
		if s := r.Save(savedAt); s != nil {
			t.Errorf("%s: saved %+v", name, s)
		}
	}
}

// A state that is damaged, of another version or of another archive is refused,
// and so is one with a part of the rows.
func TestSavedStatesThatAreRefused(t *testing.T) {
	a, _ := anchored()
	saved := save(t, a.Objects(), proof.Options{Unsigned: true})
	text, err := saved.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		bad := slices.Clone(text)
		bad[i] ^= 1
		if _, err := proof.DecodeSaved(bad); !errors.Is(err, proof.ErrSaved) {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
	for _, bad := range [][]byte{nil, text[:len(text)-1], append(slices.Clone(text), '\n')} {
		if _, err := proof.DecodeSaved(bad); !errors.Is(err, proof.ErrSaved) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	_, err = proof.Verify(context.Background(), prooftest.Bucket(a.Objects()), proof.Options{Saved: saved, Tenant: "acme"})
	if !errors.Is(err, proof.ErrSaved) {
		t.Errorf("with a part: %v", err)
	}
	other := prooftest.NewWithID("01KBCDEFGHJKMNPQRSTVWXYZ99")
	_, err = proof.Verify(context.Background(), prooftest.Bucket(other.Objects()), proof.Options{Saved: saved})
	if !errors.Is(err, proof.ErrSaved) || !strings.Contains(err.Error(), "it is of archive "+prooftest.ID) {
		t.Errorf("of another archive: %v", err)
	}
}

// A line that was compacted since is read from its beginning: what lies there is
// other objects now.
func TestALineThatWasCompactedSinceIsReadAgain(t *testing.T) {
	h := newHistory()
	o := proof.Options{Keys: ring(t, keyA)}
	whole := verifyWith(t, h.Objects(), o)
	o.Saved = save(t, h.Objects(), o)
	h.calls.Compact(prooftest.Compaction{Watermark: 6})
	r := verifyWith(t, h.Objects(), o)
	if r.ExitCode() != whole.ExitCode() || r.Lines[0].Saved != nil || r.Lines[0].DataFiles == 0 {
		t.Errorf("exit %d, want %d: %v; line %+v", r.ExitCode(), whole.ExitCode(), r.Faults, r.Lines[0])
	}
	bad := h.Objects()
	for key := range bad {
		if strings.HasPrefix(key, "data/") {
			flip(bad[key], 999)
			break
		}
	}
	wantExit(t, verifyWith(t, bad, o), 1)
	if s := r.Save(savedAt); s != nil {
		t.Errorf("a compacted line is saved: %+v", s)
	}
}

// A state goes on behind a chain reset, which stays something to look at.
func TestAStateBehindAChainReset(t *testing.T) {
	h := newHistory()
	o := proof.Options{Keys: ring(t, keyA)}
	whole := verifyWith(t, h.Objects(), o)
	o.Saved = save(t, h.Objects(), o)
	r := verifyWith(t, h.Objects(), o)
	sure(t, r, 4, proof.TierT1, "chain reset: 2 logs begun anew", "gap: Kafka had lost 5 offsets")
	if !reflect.DeepEqual(r.Totals, whole.Totals) || !reflect.DeepEqual(r.Lines[0].Logs, whole.Lines[0].Logs) {
		t.Errorf("totals %+v\nwant %+v", r.Totals, whole.Totals)
	}
}
