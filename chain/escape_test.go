package chain

import (
	"regexp"
	"strings"
	"testing"
)

// A name that is escaped can stand in a key, a path, a Hive partition and a
// checkpoint's origin; it is never empty unless the name is, never "." or "..".
func TestEscapedNamesAreHarmless(t *testing.T) {
	harmless := regexp.MustCompile(`^[A-Za-z0-9_~-][A-Za-z0-9_.~-]*$`)
	for c := range 256 {
		for _, name := range []string{string([]byte{byte(c)}), "a" + string([]byte{byte(c)}), strings.Repeat(string([]byte{byte(c)}), 300)} {
			if escaped := Escape(name); !harmless.MatchString(escaped) || len(escaped) > escapedMax {
				t.Errorf("%q escapes as %q", name, escaped)
			}
		}
	}
	if Escape("") != "" {
		t.Error("the empty name")
	}
}

// The limit is 120 bytes after escaping. A longer name is cut at 80, or before
// an escape that would not fit whole.
func TestLongNamesAreCutBetweenEscapes(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	for _, c := range []struct {
		name string
		head string // what is left before "~~"; "" = as it is
	}{
		{x(120), ""},
		{x(117) + "/", ""},
		{x(121), x(80)},
		{x(118) + "/", x(80)},
		{x(77) + strings.Repeat("/", 30), x(77) + "~2F"},
		{x(78) + strings.Repeat("/", 30), x(78)},
		{x(79) + strings.Repeat("/", 30), x(79)},
		{x(80) + strings.Repeat("/", 30), x(80)},
		{"." + x(200), "~2E" + x(77)},
		{strings.Repeat("/", 41), strings.Repeat("~2F", 26)},
		{strings.Repeat("/", 40), ""},
	} {
		head, hash, cut := strings.Cut(Escape(c.name), "~~")
		if cut != (c.head != "") || cut && (head != c.head || len(hash) != 32) {
			t.Errorf("%q escapes as %q", c.name, Escape(c.name))
		}
	}
}

// Long names that agree in their first 80 bytes stay apart.
func TestLongNamesStayApart(t *testing.T) {
	same := strings.Repeat("x", 200)
	if Escape(same+"a") == Escape(same+"b") {
		t.Error("two names, one key")
	}
}

// Unescape gives back every name that can be read back, and refuses what Escape
// does not write: a second spelling of a name would be a second key for it.
func TestUnescapeRefusesOtherSpellings(t *testing.T) {
	for _, name := range []string{"", "acme", "..", "a/b", "~", "東京", "\x00\xff", strings.Repeat("x", 120)} {
		if got, ok := Unescape(Escape(name)); !ok || got != name {
			t.Errorf("%q comes back as %q, %v", name, got, ok)
		}
	}
	for _, escaped := range []string{
		"~", "~2", "~2f", "~zz", "~41", "a/b", "a b", ".", ".a", "~2E~2E", "a~2E", "~~", "東京",
		strings.Repeat("x", 121), strings.Repeat("~2F", 41), Escape(strings.Repeat("x", 121)),
	} {
		if name, ok := Unescape(escaped); ok {
			t.Errorf("%q is read as %q", escaped, name)
		}
	}
}

func FuzzUnescape(f *testing.F) {
	for _, s := range []string{"acme", "~2E.", "a~2Fb", "~~", "a~7e", strings.Repeat("~2F", 41)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if name, ok := Unescape(s); ok && Escape(name) != s {
			t.Errorf("%q is read as %q, which is %q", s, name, Escape(name))
		}
		if escaped := Escape(s); len(escaped) < escapedHead {
			if name, ok := Unescape(escaped); !ok || name != s {
				t.Errorf("%q escapes as %q and comes back as %q", s, escaped, name)
			}
		}
	})
}
