package archive_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
)

// keyOf returns a signer whose key is made of one byte.
func keyOf(t *testing.T, name string, b byte) *sign.Signer {
	t.Helper()
	skey, _, err := sign.Generate(bytes.NewReader(bytes.Repeat([]byte{b}, 64)), name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := sign.NewSigner(skey)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A catalog counts where a good key has signed it, or one that a good key
// certifies by a note in the bucket; and any does where no key is known.
func TestCatalogsSignedBy(t *testing.T) {
	good, stranger, certified := keyOf(t, "good", 1), keyOf(t, "stranger", 2), keyOf(t, "certified", 3)
	m := archive.NewMemory()
	at := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	body, err := sign.Sign(sign.KeyNoteText(archiveID, certified.VKey(), at.Add(time.Hour)), good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Create(t.Context(), sign.KeyNoteKey(certified.VKey()), body); err != nil {
		t.Fatal(err)
	}
	ring := &sign.Ring{}
	if err := ring.Add(good.VKey(), sign.AllRoles, "test"); err != nil {
		t.Fatal(err)
	}
	forged := func() *sign.Note {
		n := noteBy(t, good)
		n.Text = "other\n"
		return n
	}
	for name, tc := range map[string]struct {
		ring *sign.Ring
		note *sign.Note
		at   time.Time
		ok   bool
	}{
		"a good key":                  {ring, noteBy(t, good), at, true},
		"a certified key":             {ring, noteBy(t, certified), at, true},
		"a certified key, later":      {ring, noteBy(t, certified), at.Add(2 * time.Hour), false},
		"a good key and a stranger":   {ring, noteBy(t, stranger, good), at, true},
		"a stranger":                  {ring, noteBy(t, stranger), at, false},
		"nobody":                      {ring, noteBy(t), at, false},
		"a forgery":                   {ring, forged(), at, false},
		"nobody, and no key is known": {nil, noteBy(t), at, true},
		"somebody, and none is known": {&sign.Ring{}, noteBy(t, stranger), at, true},
	} {
		err := archive.CatalogsSignedBy(m, tc.ring.Clone(), archiveID)(t.Context(), tc.note, tc.at)
		if tc.ok != (err == nil) || err != nil && !errors.Is(err, archive.ErrCatalog) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func noteBy(t *testing.T, signers ...*sign.Signer) *sign.Note {
	t.Helper()
	n := &sign.Note{Text: "text\n"}
	for _, s := range signers {
		body, err := sign.Sign(n.Text, s)
		if err != nil {
			t.Fatal(err)
		}
		one, err := sign.Parse(body)
		if err != nil {
			t.Fatal(err)
		}
		n.Signatures = append(n.Signatures, one.Signatures...)
	}
	return n
}
