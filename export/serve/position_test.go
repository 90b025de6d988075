package serve

import "testing"

// What a position is written as is what it is read as; what is not understood is
// refused.
func FuzzParsePosition(f *testing.F) {
	f.Add("-")
	f.Add("ROKCF4T4QugFVvRKf7dfjA:0:26")
	f.Add("ROKCF4T4QugFVvRKf7dfjA:0:26:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA,b:1:2")
	f.Fuzz(func(t *testing.T, text string) {
		p, ok := parsePosition(text)
		if !ok {
			return
		}
		again, ok := parsePosition(p.String())
		if !ok || again.String() != p.String() || len(again) != len(p) {
			t.Errorf("%q is %q, and that %q", text, p, again)
		}
	})
}
