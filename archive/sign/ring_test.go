package sign

import (
	"crypto/ed25519"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// signed returns the note of text by some signers.
func signed(t *testing.T, text string, by ...*Signer) *Note {
	t.Helper()
	body := []byte(text + "\n")
	for i := range by {
		one, err := Sign(text, by[i])
		if err != nil {
			t.Fatal(err)
		}
		body = append(body, one[len(text)+1:]...)
	}
	return parse(t, body)
}

func parse(t *testing.T, body []byte) *Note {
	t.Helper()
	n, err := Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func ringOf(t *testing.T, keys ...*Signer) *Ring {
	t.Helper()
	r := &Ring{}
	for _, k := range keys {
		if err := r.Add(k.VKey(), AllRoles, "given"); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// The golden archives were signed by an independent implementation. Each of
// their notes is good by the key that goes with them, and not with a bit flipped.
func TestGoldenNotesAreGood(t *testing.T) {
	ring := &Ring{}
	if err := ring.Add("ledgerlake.example/anchors+7201904f+AQER5QWMAqxvLwnTYEg0mnBxho4cdMvVKWsHp5ZKY4R9", Anchor|Catalog, "given"); err != nil {
		t.Fatal(err)
	}
	golden := os.DirFS("../../proof/testdata/golden")
	found := 0
	err := fs.WalkDir(golden, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".note") {
			return err
		}
		found++
		body, err := fs.ReadFile(golden, path)
		if err != nil {
			return err
		}
		checkGolden(t, ring, path, body)
		return nil
	})
	if err != nil || found < 8 {
		t.Fatalf("%d notes, %v", found, err)
	}
}

func checkGolden(t *testing.T, ring *Ring, path string, body []byte) {
	role := Anchor
	if strings.Contains(path, "/catalog/") {
		role = Catalog
	}
	if got := ring.Check(parse(t, body), role, time.Time{}); got.State != Good {
		t.Errorf("%s: %+v", path, got)
	}
	for i := range body {
		n, err := Parse(flip(body, 8*i+i%8)) // one bit of each byte
		if err == nil && ring.Check(n, role, time.Time{}).State == Good {
			t.Fatalf("%s: good with byte %d changed", path, i)
		}
	}
}

func TestVerdicts(t *testing.T) {
	a, b, c := newSigner(t, "a"), newSigner(t, "b"), newSigner(t, "c")
	ring := ringOf(t, a, b)
	forged := signed(t, "x\n", a, b)
	forged.Signatures[1].Bytes[0] ^= 1
	for name, test := range map[string]struct {
		note *Note
		want Verdict
	}{
		"no line":                    {signed(t, "x\n"), Verdict{State: Unsigned}},
		"by nobody known":            {signed(t, "x\n", c), Verdict{State: Unknown}},
		"by one":                     {signed(t, "x\n", b), Verdict{Good, []string{b.VKey()}}},
		"by both":                    {signed(t, "x\n", b, a), Verdict{Good, []string{b.VKey(), a.VKey()}}},
		"by one and somebody":        {signed(t, "x\n", c, a), Verdict{Good, []string{a.VKey()}}},
		"by one, other's is no good": {forged, Verdict{State: Bad}},
	} {
		got := ring.Check(test.note, Anchor, time.Time{})
		if got.State != test.want.State || !slices.Equal(got.By, test.want.By) {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
	for name, none := range map[string]*Ring{"nil": nil, "zero": {}} {
		if got := none.Check(signed(t, "x\n", a), Anchor, time.Time{}); got.State != Unknown || !none.Empty() || len(none.Keys()) > 0 || !none.Clone().Empty() {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A signature line names its key by 32 bits. Two good keys under the same ones
// are told apart by the signature.
func TestKeysMayShareAHash(t *testing.T) {
	a, b := newSigner(t, "a"), newSigner(t, "b")
	ring := ringOf(t, b, a)
	for i := range ring.keys { // as if it had been searched for
		ring.keys[i].name, ring.keys[i].hash = "a", a.hash
	}
	if got := ring.Check(signed(t, "x\n", a), Anchor, time.Time{}); got.State != Good || got.By[0] != a.VKey() {
		t.Errorf("%+v", got)
	}
}

func TestRolesOfAKeyAreUnited(t *testing.T) {
	a := newSigner(t, "a")
	var ring Ring
	for _, role := range []Role{Anchor, Catalog} {
		if err := ring.Add(a.VKey(), role, "given"); err != nil {
			t.Fatal(err)
		}
	}
	if got := ring.Keys(); len(got) != 1 || got[0].Roles != Anchor|Catalog || got[0].Name != "a" || got[0].Source != "given" {
		t.Errorf("%+v", got)
	}
	for role, want := range map[Role]State{Anchor: Good, Catalog: Good, Control: Unknown} {
		if got := ring.Check(signed(t, "x\n", a), role, time.Time{}); got.State != want {
			t.Errorf("role %d: %+v", role, got)
		}
	}
}

func TestClonesAreApart(t *testing.T) {
	a, b, c := newSigner(t, "a"), newSigner(t, "b"), newSigner(t, "c")
	ring := ringOf(t, a)
	clone := ring.Clone()
	for r, k := range map[*Ring]*Signer{ring: b, clone: c} {
		if err := r.Add(k.VKey(), AllRoles, "given"); err != nil {
			t.Fatal(err)
		}
	}
	for name, got := range map[string]State{
		"the ring knows what its clone got": ring.Check(signed(t, "x\n", c), Anchor, time.Time{}).State,
		"the clone knows what came later":   clone.Check(signed(t, "x\n", b), Anchor, time.Time{}).State,
	} {
		if got != Unknown {
			t.Error(name)
		}
	}
}

func TestRingsAreShared(t *testing.T) {
	ring := ringOf(t, newSigner(t, "a"))
	n := signed(t, "x\n", newSigner(t, "b"))
	next := newSigner(t, "c")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			_ = ring.Add(next.VKey(), Anchor, "given")
			ring.Check(n, Anchor, time.Time{})
			_ = ring.Keys()
			_ = ring.Clone()
		})
	}
	wg.Wait()
	if got := ring.Keys(); len(got) != 2 {
		t.Errorf("%+v", got)
	}
}

// TestRotation replaces a key without any clock: old signs, and names new in its
// document; both sign; new signs alone. Whoever was given either key follows the
// whole line, when the keys that good notes name become good. Whoever was given
// old does not follow where new was never introduced.
func TestRotation(t *testing.T) {
	old, next, thief := newSigner(t, "2026"), newSigner(t, "2027"), newSigner(t, "thief")
	line := []statement{
		{signed(t, "0\n", old), []*Signer{old}},
		{signed(t, "1\n", old), []*Signer{old, next}}, // next is introduced
		{signed(t, "2\n", old, next), []*Signer{old, next}},
		{signed(t, "3\n", next, old), []*Signer{next}}, // old goes
		{signed(t, "4\n", next), []*Signer{next}},
	}
	for name, test := range map[string]struct {
		given *Ring
		line  []statement
		want  []State
	}{
		"given old":         {ringOf(t, old), line, []State{Good, Good, Good, Good, Good}},
		"given new":         {ringOf(t, next), line, []State{Unknown, Unknown, Good, Good, Good}},
		"given both":        {ringOf(t, old, next), line, []State{Good, Good, Good, Good, Good}},
		"never introduced":  {ringOf(t, old), []statement{line[0], line[4]}, []State{Good, Unknown}},
		"a thief for a key": {ringOf(t, old), []statement{line[0], {signed(t, "1\n", thief), []*Signer{thief}}, {signed(t, "2\n", thief), nil}}, []State{Good, Unknown, Unknown}},
	} {
		if got := follow(t, test.given, test.line); !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}

// A statement is a note, and the keys that it says are good from the next one on.
type statement struct {
	note *Note
	keys []*Signer
}

func follow(t *testing.T, ring *Ring, line []statement) (verdicts []State) {
	t.Helper()
	for _, s := range line {
		v := ring.Check(s.note, Anchor, time.Time{})
		verdicts = append(verdicts, v.State)
		for _, k := range s.keys {
			if v.State != Good {
				break
			}
			if err := ring.Add(k.VKey(), Anchor, "anchor"); err != nil {
				t.Fatal(err)
			}
		}
	}
	return verdicts
}

func TestRingsRefuseWhatIsNoKey(t *testing.T) {
	good := newSigner(t, "a").VKey()
	hash := good[2:10]
	for _, bad := range []string{
		"", "a", "a+b", good[:len(good)-1], good + "=", good + "\n", " " + good, "b" + good[1:], "+" + good[2:],
		strings.Replace(good, hash, "00000000", 1),
		strings.Replace(good, hash, strings.ToUpper("ABCDEF01"), 1),
		"a b" + good[1:],
		encodeVKey("a", 2, make(ed25519.PublicKey, 32)),
		encodeVKey("a", algEd25519, make(ed25519.PublicKey, 31)),
		"PRIVATE+KEY+" + good,
	} {
		var ring Ring
		if err := ring.Add(bad, AllRoles, "given"); !errors.Is(err, ErrKey) || !ring.Empty() {
			t.Errorf("%q is a key: %v", bad, err)
		}
	}
}

// A vkey is written in one way.
func FuzzVKey(f *testing.F) {
	f.Add(encodeVKey("a", algEd25519, make(ed25519.PublicKey, 32)))
	f.Add(encodeVKey("a/b", algCosignature, make(ed25519.PublicKey, 32)))
	f.Fuzz(func(t *testing.T, vkey string) {
		if k, err := parseVKey(vkey); err == nil && encodeVKey(k.name, k.alg, k.key) != vkey {
			t.Errorf("%q is written otherwise", vkey)
		}
	})
}
