package archive_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

var anchoredLine = archive.Line{Topic: "audit.calls", TopicID: "kTq2VqYJQ0mFvY8v2b3m0A", Partition: 3}

// anchored returns a store with n anchors, each over a row more of tenant a, and
// number 1 over one row of tenant b. by says who signs an anchor, and which key
// it introduces; nil: nobody.
func anchored(t *testing.T, n int64, by func(number int64) (signer, introduces *sign.Signer)) (*archive.Memory, *archive.Root) {
	t.Helper()
	m := archive.NewMemory()
	root := &archive.Root{ArchiveID: archiveID, SHA256: chain.Hash{1}}
	var tree, one chain.Tree
	one.Append(chain.Hash{2})
	var previous *chain.Hash
	for i := range n {
		tree.Append(chain.Hash{byte(i), 3})
		grown := tree.Clone()
		a := &archive.Anchor{
			ArchiveID: root.ArchiveID, ArchiveSHA256: root.SHA256, Topic: anchoredLine.Topic, TopicID: anchoredLine.TopicID, Partition: anchoredLine.Partition,
			Number: i, Ordinal: i, Previous: previous, Time: archive.Time{Time: time.Date(2026, 11, 30, 0, 0, int(i), 0, time.UTC)}, Full: i%archive.FullEvery == 0,
			Heads: []archive.AnchorHead{{Tenant: "a", Scheme: chain.SchemeV1, Size: i + 1, Root: grown.Root(), Frontier: grown.Frontier}},
		}
		if i == 1 || a.Full && i > 0 {
			a.Heads = append(a.Heads, archive.AnchorHead{Tenant: "b", Scheme: chain.SchemeV1, Size: 1, Root: one.Root(), Frontier: one.Frontier})
		}
		var signers []*sign.Signer
		if by != nil {
			signer, introduces := by(i)
			signers = append(signers, signer)
			if introduces != nil {
				a.Keys.Anchor = []string{introduces.VKey()}
			}
		}
		text, err := archive.EncodeAnchor(a)
		if err != nil {
			t.Fatal(err)
		}
		m.Overwrite(archive.AnchorKey(anchoredLine, i), signedBy(t, text, signers...))
		sum := archive.TextHash(text)
		previous = &sum
	}
	return m, root
}

// The newest anchor that counts is found behind those that do not, and by keys
// that anchors introduce.
func TestNewestGoodAnchor(t *testing.T) {
	good, next, stranger := keyOf(t, "good", 1), keyOf(t, "next", 2), keyOf(t, "stranger", 3)
	strangerFrom := func(n int64) func(int64) (*sign.Signer, *sign.Signer) {
		return func(i int64) (*sign.Signer, *sign.Signer) {
			if i >= n {
				return stranger, nil
			}
			return good, nil
		}
	}
	for name, c := range map[string]struct {
		n         int64
		by        func(int64) (*sign.Signer, *sign.Signer)
		keyless   bool
		damage    int64 // number of an anchor that is no note; -1: none
		want      int64 // -1: none
		mostGets  int
		mostTails int
	}{
		"all are good":                      {n: 130, by: strangerFrom(130), damage: -1, want: 129, mostGets: 1, mostTails: 17},
		"nobody is known":                   {n: 3, keyless: true, damage: -1, want: 2, mostGets: 1, mostTails: 5},
		"strangers at the end":              {n: 30, by: strangerFrom(10), damage: -1, want: 9, mostGets: 100, mostTails: 20},
		"strangers bury all":                {n: 130, by: strangerFrom(10), damage: -1, want: -1, mostGets: 400, mostTails: 20},
		"none":                              {n: 0, damage: -1, want: -1, mostTails: 1},
		"none is good":                      {n: 5, by: strangerFrom(0), damage: -1, want: -1, mostGets: 20, mostTails: 6},
		"the newest cannot be read":         {n: 9, by: strangerFrom(9), damage: 8, want: 7, mostGets: 2, mostTails: 8},
		"a key that a good one introduces":  {n: 9, by: func(i int64) (*sign.Signer, *sign.Signer) { return []*sign.Signer{good, next}[i/5], next }, damage: -1, want: 8, mostGets: 50, mostTails: 8},
		"a key that a stranger introduces":  {n: 9, by: func(i int64) (*sign.Signer, *sign.Signer) { return []*sign.Signer{stranger, next}[i/5], next }, damage: -1, want: -1, mostGets: 50, mostTails: 8},
		"nobody is known, and none can be":  {n: 1, keyless: true, damage: 0, want: -1, mostGets: 1, mostTails: 3},
		"a key introduced behind its first": {n: 9, by: func(i int64) (*sign.Signer, *sign.Signer) { return []*sign.Signer{good, next}[i/5], nil }, damage: -1, want: 4, mostGets: 50, mostTails: 8},
	} {
		m, root := anchored(t, c.n, c.by)
		if c.damage >= 0 {
			m.Overwrite(archive.AnchorKey(anchoredLine, c.damage), []byte("nothing"))
		}
		ring := &sign.Ring{}
		if !c.keyless {
			if err := ring.Add(good.VKey(), sign.AllRoles, "test"); err != nil {
				t.Fatal(err)
			}
		}
		src := &counted{Source: m}
		w := &archive.AnchorWatch{}
		a, err := w.Look(t.Context(), src, root, anchoredLine, ring)
		got := int64(-1)
		if a != nil {
			got = a.Number
		}
		if got != c.want || err != nil {
			t.Errorf("%s: anchor %d of %d, %v; want %d", name, got, c.n, err, c.want)
		}
		if src.gets > c.mostGets || src.tails > c.mostTails {
			t.Errorf("%s: %d GETs and %d of a byte", name, src.gets, src.tails)
		}
		// Nothing is new; and one that was found goes on counting once it is gone.
		src.gets, src.tails = 0, 0
		if again, err := w.Look(t.Context(), src, root, anchoredLine, ring); err != nil || again != a || src.gets > 0 || src.tails > 2 {
			t.Errorf("%s: once more %v, %v; %d GETs and %d of a byte", name, again, err, src.gets, src.tails)
		}
		m.Remove(archive.AnchorKey(anchoredLine, c.n-1))
		if again, err := w.Look(t.Context(), src, root, anchoredLine, ring); err != nil || again != a || src.gets > 0 {
			t.Errorf("%s: without the newest %v, %v; %d GETs", name, again, err, src.gets)
		}
	}
}

// All heads are those of the full anchor and of those that follow, and no anchor
// that another one was put in the place of.
func TestAllHeads(t *testing.T) {
	for _, number := range []int64{0, 1, 57, 100, 101, 130} {
		m, root := anchored(t, 131, nil)
		v, err := archive.ReadAnchor(t.Context(), m, root, anchoredLine, number)
		if err != nil {
			t.Fatal(err)
		}
		a := &archive.GoodAnchor{Number: v.Number, Ordinal: v.Ordinal, SHA256: v.SHA256}
		src := &counted{Source: m}
		heads, err := a.Heads(t.Context(), src, root, anchoredLine)
		if err != nil || heads["a"].Size != number+1 || (heads["b"].Size == 1) != (number > 0) || src.gets != int(number%100)+1 {
			t.Errorf("anchor %d: %v, %v; %d GETs", number, heads, err, src.gets)
		}
		wrong := *a
		wrong.SHA256[0] ^= 1
		if _, err := wrong.Heads(t.Context(), m, root, anchoredLine); !errors.Is(err, archive.ErrTrail) {
			t.Errorf("anchor %d is another one: %v", number, err)
		}
		if number%100 == 0 {
			continue
		}
		other, _ := anchored(t, 131, func(i int64) (*sign.Signer, *sign.Signer) { return keyOf(t, "x", 9), keyOf(t, "x", 9) })
		for name, damage := range map[string]func(key string){
			"gone":    m.Remove,
			"no note": func(key string) { m.Overwrite(key, []byte("x")) },
			"another": func(key string) {
				body, err := other.Get(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				m.Overwrite(key, body)
			},
		} {
			key := archive.AnchorKey(anchoredLine, number-1)
			body, err := m.Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			damage(key)
			if _, err := a.Heads(t.Context(), m, root, anchoredLine); !errors.Is(err, archive.ErrTrail) {
				t.Errorf("anchor %d, the one before is %s: %v", number, name, err)
			}
			m.Overwrite(key, body)
		}
	}
}

// An anchor of another line, archive or number is none of the line.
func TestReadAnchor(t *testing.T) {
	m, root := anchored(t, 3, nil)
	elsewhere := anchoredLine
	elsewhere.Partition = 4
	body, err := m.Get(t.Context(), archive.AnchorKey(anchoredLine, 1))
	if err != nil {
		t.Fatal(err)
	}
	m.Overwrite(archive.AnchorKey(elsewhere, 1), body)
	m.Overwrite(archive.AnchorKey(anchoredLine, 7), body)
	for _, c := range []struct {
		line   archive.Line
		root   archive.Root
		number int64
		want   error
	}{
		{anchoredLine, *root, 1, nil},
		{anchoredLine, *root, 5, archive.ErrNotFound},
		{anchoredLine, *root, 7, archive.ErrOtherAnchor},
		{elsewhere, *root, 1, archive.ErrOtherAnchor},
		{anchoredLine, archive.Root{ArchiveID: root.ArchiveID}, 1, archive.ErrOtherAnchor},
		{anchoredLine, archive.Root{ArchiveID: "x", SHA256: root.SHA256}, 1, archive.ErrOtherAnchor},
	} {
		if _, err := archive.ReadAnchor(t.Context(), m, &c.root, c.line, c.number); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", fmt.Sprint(c.line, c.number), err, c.want)
		}
	}
}

func signedBy(t *testing.T, text string, signers ...*sign.Signer) []byte {
	t.Helper()
	var by []note.Signer
	for _, s := range signers {
		by = append(by, s)
	}
	body, err := sign.Sign(text, by...)
	if err != nil {
		t.Fatal(err)
	}
	return body
}
