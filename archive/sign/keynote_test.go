package sign

import (
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
