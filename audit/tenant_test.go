package audit

import (
	"errors"
	"strings"
	"testing"

	"github.com/oklog/ulid/v2"
)

// Ids that could name another folder, or nothing, or one of ours are refused;
// all others are good, however odd they look.
func TestValidTenant(t *testing.T) {
	for _, id := range []string{
		"", ".", "..", "_", "_partition", "_unattributed", "__markers__", "__HIVE_DEFAULT_PARTITION__", strings.Repeat("x", 257), strings.Repeat("東", 86),
		"acme\x00x", "acme\n", "\tacme", "a\x7fb", "a\u0085b", "a\xffb", "\xed\xa0\x80",
	} {
		err := ValidTenant(id)
		if !errors.Is(err, ErrTenant) {
			t.Errorf("%q: %v", id, err)
		}
		if len(id) > 2 && err != nil && strings.Contains(err.Error(), id) {
			t.Errorf("the error shows the id: %v", err)
		}
	}
	for _, id := range []string{
		"acme", "ACME", "a", "...", ".a", "a..b", "a/../globex", "/abs", `a\b`, "globex/", "../../etc", "Serbia/srb%", "x=y", "a b", "a+b", "a%20b",
		"東京", "ü", "u\u0308", "7", "007", "2026-05-15", "true", "NULL", "null", "a_b", "~", "$x", "{}", strings.Repeat("x", 256), "a\u2028b", "a\u202eb",
	} {
		if err := ValidTenant(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// FuzzParseRecordID holds ParseRecordID against another library: the same
// texts are ULIDs, and the canonical form is that library's.
func FuzzParseRecordID(f *testing.F) {
	for _, text := range []string{"01KRNR3ZG00000000000000001", "01krnr3zg00000000000000001", "7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "80000000000000000000000000", "01KRNR3ZG0000000000000000I", ""} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseRecordID(text)
		id, theirs := ulid.ParseStrict(text)
		if (err == nil) != (theirs == nil) {
			t.Fatalf("%q: %v, the other library says %v", text, err, theirs)
		}
		if err == nil && got != id.String() {
			t.Fatalf("%q: %s, want %s", text, got, id)
		}
	})
}

func TestParseRecordID(t *testing.T) {
	for _, text := range []string{
		"", "01KRNR3ZG0000000000000000", "01KRNR3ZG000000000000000011", "81KRNR3ZG00000000000000001", "01KRNR3ZG0000000000000000I", "01KRNR3ZG0000000000000000l",
		"01KRNR3ZG0000000000000000O", "01KRNR3ZG0000000000000000u", "01KRNR3ZG0000000000000000-", " 1KRNR3ZG00000000000000001", "01KRNR3ZG000000000000000é",
	} {
		if id, err := ParseRecordID(text); !errors.Is(err, ErrRecordID) || id != "" {
			t.Errorf("%q: %q, %v", text, id, err)
		}
	}
	if id, err := ParseRecordID("01krnr3zg0000000000000abcd"); id != "01KRNR3ZG0000000000000ABCD" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}
