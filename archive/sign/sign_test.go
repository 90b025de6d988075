package sign

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// vectors are what chain/testdata pins of notes.
func vectors(t *testing.T) (v struct {
	Name           string `json:"name"`
	Seed           string `json:"seed"`
	VKey           string `json:"vkey"`
	AnchorText     string `json:"anchor_text"`
	AnchorNote     string `json:"anchor_note"`
	CheckpointText string `json:"checkpoint_text"`
	CheckpointNote string `json:"checkpoint_note"`
},
) {
	t.Helper()
	body, err := os.ReadFile("../../chain/testdata/ledgerlake-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	all := struct{ Notes any }{Notes: &v}
	if err := json.Unmarshal(body, &all); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestNotesOfTheVectors(t *testing.T) {
	v := vectors(t)
	var ring Ring
	if err := ring.Add(v.VKey, Anchor, "given"); err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{v.AnchorNote, v.CheckpointNote} {
		n, err := Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := ring.Check(n, Anchor, time.Time{}); got.State != Good || got.By[0] != v.VKey {
			t.Errorf("%+v", got)
		}
		if got := ring.Check(n, Catalog, time.Time{}); got.State != Unknown {
			t.Errorf("for another role: %+v", got)
		}
		for i := range len(n.Text) {
			bad := *n
			bad.Text = n.Text[:i] + string(n.Text[i]^1) + n.Text[i+1:]
			if got := ring.Check(&bad, Anchor, time.Time{}); got.State != Bad {
				t.Fatalf("byte %d flipped: %+v", i, got)
			}
		}
	}
}

func TestKeysSignForEachOther(t *testing.T) {
	skey, vkey, err := Generate(rand.Reader, "example.org/a")
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSigner(skey + "\n")
	if err != nil || s.VKey() != vkey {
		t.Fatalf("%v: %s, want %s", err, s.VKey(), vkey)
	}
	body, err := Sign("x\n", s)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(vkey)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := note.Open(body, note.VerifierList(verifier)); err != nil {
		t.Errorf("the other implementation: %v", err)
	}
	if body, err := Sign("x\n"); err != nil || string(body) != "x\n\n" {
		t.Errorf("unsigned: %q, %v", body, err)
	}
}

func newSigner(t *testing.T, name string) *Signer {
	t.Helper()
	skey, _, err := Generate(rand.Reader, name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSigner(skey)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A key is a function of its name and of 32 random bytes: the vectors have one.
func TestGenerateIsPinned(t *testing.T) {
	v := vectors(t)
	seed, err := hex.DecodeString(v.Seed)
	if err != nil {
		t.Fatal(err)
	}
	skey, vkey, err := Generate(bytes.NewReader(seed), v.Name)
	if err != nil || vkey != v.VKey {
		t.Fatalf("%s, %v", vkey, err)
	}
	s, err := NewSigner(skey)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{v.AnchorText: v.AnchorNote, v.CheckpointText: v.CheckpointNote} {
		if got, err := Sign(text, s); err != nil || string(got) != want {
			t.Errorf("%q, want %q: %v", got, want, err)
		}
	}
}

func TestNamesOfKeys(t *testing.T) {
	for _, bad := range []string{"", "a b", "a+b", "a\n", "a\u00a0", "a\x00", "\xff"} {
		if _, _, err := Generate(rand.Reader, bad); !errors.Is(err, ErrKey) {
			t.Errorf("%q is a name: %v", bad, err)
		}
	}
}

// What is no key is refused without a word of it: it may be most of one.
func TestSignersRefuseWithoutSaying(t *testing.T) {
	skey, vkey, err := Generate(rand.Reader, "a")
	if err != nil {
		t.Fatal(err)
	}
	secret := skey[len(skey)-20:]
	for _, bad := range []string{"", vkey, skey[:len(skey)-1], skey + "A", "x" + skey, skey[:len("PRIVATE+KEY+a+")] + "0" + skey[len("PRIVATE+KEY+a+0"):] + "B"} {
		if _, err := NewSigner(bad); !errors.Is(err, ErrKey) || strings.Contains(err.Error(), secret) {
			t.Errorf("%v", err)
		}
	}
	s, err := NewSigner(skey)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(format, s); got != vkey {
			t.Errorf("%s prints %s", format, got)
		}
	}
}

func TestTextsAreWhole(t *testing.T) {
	for _, bad := range []string{"", "x", "x\ty\n", "\xff\n"} {
		if body, err := Sign(bad); err == nil {
			t.Errorf("unsigned: %q", body)
		}
		if body, err := Sign(bad, newSigner(t, "a")); err == nil {
			t.Errorf("%q", body)
		}
	}
}
