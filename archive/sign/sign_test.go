package sign

import (
	"crypto/rand"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
)

// vectors are what chain/testdata pins of notes.
func vectors(t *testing.T) (v struct {
	Name           string `json:"name"`
	VKey           string `json:"vkey"`
	AnchorText     string `json:"anchor_text"`
	AnchorNote     string `json:"anchor_note"`
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

func TestNotesHaveOneForm(t *testing.T) {
	const good = "a\nb\n\n— key/1 cgGQT5usojs=\n"
	if n, err := Parse([]byte(good)); err != nil || n.Text != "a\nb\n" || len(n.Signatures) != 1 {
		t.Fatalf("%+v, %v", n, err)
	}
	for _, c := range [][2]string{
		{"a\nb\n\n", "a\nb\n"},
		{"\n\n", "\n"},
		{"usojs=\n", "usojs="},
		{"usojs=\n", "usojt=\n"}, // bits behind the last byte
		{"usojs=\n", "usojs\n"},
		{"usojs=\n", "usojs=\r\n"},
		{"cgGQT5usojs=", "cgGQTw=="},
		{"— ", "- "},
		{"key/1 ", "key/1  "},
		{"key/1 ", "key+1 "},
		{"key/1 ", " "},
		{"a\nb", "a\n\xff"},
		{"usojs=\n", "usojs=\n" + strings.Repeat("— key/1 cgGQT5usojs=\n", 100)},
	} {
		bad := strings.Replace(good, c[0], c[1], 1)
		if n, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%.80q is a note: %+v", bad, n)
		}
	}
}

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

func FuzzParse(f *testing.F) {
	f.Add([]byte("a\nb\n\n— key/1 cgGQT5usojs=\n"))
	f.Add([]byte("a\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := Parse(body)
		if err != nil {
			return
		}
		if got := n.encode(); string(got) != string(body) {
			t.Fatalf("%q is written %q", body, got)
		}
	})
}
