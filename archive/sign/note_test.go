package sign

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
)

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
		{"usojs=\n", "usojs=\n" + "— key/1 cgGQT5usojs=\n"}, // twice
		{"usojs=\n", "usojs=\n" + lines(100)},               // too many
		{"a\nb", "a\tb"},
		{"a\nb", "a\r\nb"},
		{"key/1 ", "key\u00a0 "},
	} {
		bad := strings.Replace(good, c[0], c[1], 1)
		if bad == good {
			t.Fatalf("%q is not in it", c[0])
		}
		if n, err := Parse([]byte(bad)); !errors.Is(err, ErrNote) {
			t.Errorf("%.80q is a note: %+v", bad, n)
		}
	}
}

// lines returns n signature lines, no two of them equal.
func lines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "— key/%d cgGQT5usojs=\n", i+2)
	}
	return b.String()
}

func TestNotesOfManySignatures(t *testing.T) {
	n, err := Parse([]byte("a\n\n" + lines(100)))
	if err != nil || len(n.Signatures) != 100 {
		t.Fatalf("%v", err)
	}
}

// What Parse takes is a note, or an unsigned text, to the other implementation
// too, with the same text and signatures; and is what writing it again gives.
func FuzzParse(f *testing.F) {
	f.Add([]byte("a\nb\n\n— key/1 cgGQT5usojs=\n"))
	f.Add([]byte("a\nb\n\n— key/1 cgGQT5usojs=\n— key/2 cgGQT5usojs=\n"))
	f.Add([]byte("a\n\n— key/1 cgGQT5usojs=\n\nb\n\n"))
	f.Add([]byte("a\n\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		n, err := Parse(body)
		if err != nil {
			return
		}
		if got := n.encode(); string(got) != string(body) {
			t.Fatalf("%q is written %q", body, got)
		}
		if len(n.Signatures) > 0 {
			compareWithOther(t, body, n)
		}
	})
}

func compareWithOther(t *testing.T, body []byte, n *Note) {
	var unverified *note.UnverifiedNoteError
	if _, err := note.Open(body, nil); !errors.As(err, &unverified) {
		t.Fatalf("%q: the other implementation: %v", body, err)
	}
	other := unverified.Note
	if other.Text != n.Text || len(other.UnverifiedSigs) != len(n.Signatures) {
		t.Fatalf("%q: %+v, the other implementation: %+v", body, n, other)
	}
	for i, s := range n.Signatures {
		o := other.UnverifiedSigs[i]
		data, err := base64.StdEncoding.DecodeString(o.Base64)
		if err != nil || o.Name != s.Name || o.Hash != s.Hash || string(data[4:]) != string(s.Bytes) {
			t.Fatalf("%q: signature %d: %+v, %+v", body, i, s, o)
		}
	}
}
