package sign

import (
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestKeyNotesCertify(t *testing.T) {
	end := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	long, short, other := newSigner(t, "long"), newSigner(t, "short"), newSigner(t, "other")
	certificate := func(by *Signer, id string) []byte {
		body, err := Sign(KeyNoteText(id, short.VKey(), end), by)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	var ring Ring
	if err := ring.Add(long.VKey(), AllRoles, "given"); err != nil {
		t.Fatal(err)
	}
	for _, bad := range [][]byte{certificate(other, "A"), certificate(short, "A"), certificate(long, "B")} {
		if _, err := ring.AddKeyNote(bad, "A"); err == nil {
			t.Errorf("%q certifies", bad)
		}
	}
	if _, err := ring.AddKeyNote(certificate(long, "A"), "A"); err != nil {
		t.Fatal(err)
	}
	body, _ := Sign("text\n", short)
	n, _ := Parse(body)
	for at, want := range map[time.Time]State{end: Good, end.Add(1): Unknown, {}: Unknown} {
		if got := ring.Check(n, Anchor, at); got.State != want {
			t.Errorf("at %v: %+v", at, got)
		}
	}
	if got := ring.Check(n, Control, end); got.State != Unknown {
		t.Errorf("a certified key signs control records: %+v", got)
	}
	// A certified key certifies none.
	next := newSigner(t, "next")
	chained, _ := Sign(KeyNoteText("A", next.VKey(), end), short)
	if _, err := ring.AddKeyNote(chained, "A"); err == nil {
		t.Error("a certified key certifies another")
	}
}

// The certificate of a key that was made to be certified is found by a signature
// of it alone; that of any other key is not.
func TestCertificatesAreFoundBySignatures(t *testing.T) {
	member, err := GenerateMember(rand.Reader, "example.org/kms")
	if err != nil {
		t.Fatal(err)
	}
	n := signed(t, "x\n", member)
	if got := ringOf(t, member).Check(n, Anchor, time.Time{}); got.State != Good {
		t.Errorf("%+v", got)
	}
	s := n.Signatures[0]
	if key, ok := s.KeyNoteKey(); !ok || key != KeyNoteKey(member.VKey()) {
		t.Errorf("%s, %t", key, ok)
	}
	for name, other := range map[string]Signature{
		"another hash":  {s.Name, s.Hash + 1, s.Bytes},
		"another name":  {"x" + s.Name, s.Hash, s.Bytes},
		"half a name":   {s.Name[:len(s.Name)-1], s.Hash, s.Bytes},
		"no such thing": signed(t, "x\n", newSigner(t, "example.org/kms")).Signatures[0],
		"no slash":      signed(t, "x\n", newSigner(t, "a")).Signatures[0],
	} {
		if key, ok := other.KeyNoteKey(); ok {
			t.Errorf("%s: %s", name, key)
		}
	}
	if _, err := GenerateMember(rand.Reader, "a b"); !errors.Is(err, ErrKey) {
		t.Errorf("%v", err)
	}
	if _, err := GenerateMember(strings.NewReader("short"), "a"); err == nil {
		t.Error("a key of 5 bytes")
	}
}

// Nothing certifies a key but the text that a good key signed.
func FuzzAddKeyNote(f *testing.F) {
	skey, _, err := Generate(strings.NewReader(strings.Repeat("a", 32)), "long")
	if err != nil {
		f.Fatal(err)
	}
	long, err := NewSigner(skey)
	if err != nil {
		f.Fatal(err)
	}
	text := KeyNoteText("A", VKey("short", make([]byte, 32)), time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))
	body, err := Sign(text, long)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(body)
	f.Add([]byte(text + "\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		ring := ringOf(t, long)
		_, err := ring.AddKeyNote(body, "A")
		if n, _ := Parse(body); err == nil && n.Text != text {
			t.Errorf("%q certifies", body)
		}
		if got := len(ring.Keys()); (got == 2) != (err == nil) {
			t.Errorf("%d keys, %v", got, err)
		}
	})
}
