package redact_test

import (
	"math/rand/v2"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/redact"
)

func recordOf(context, ext string) *audit.Record {
	r := &audit.Record{Kind: audit.Str(audit.KindDecision), RedactionPolicy: audit.Str(audit.PolicyNone), Status: audit.Str("ok")}
	r.Slots[audit.SlotContext] = []byte(context)
	if ext != "" {
		r.Slots[audit.SlotExt] = []byte(ext)
	}
	return r
}

// What a policy makes of a record is the same as the record, for whoever does not
// know the policy.
func TestScrubbedIsSame(t *testing.T) {
	p := parse(t, everything)
	for _, in := range []string{
		`{"a":"b"}`, `{"ssn":"123456789"}`, `{"a":"x 123-45-6789 y 4111111111111111","b":1}`, `{"123-45-6789":1,"b":"\"123-45-6789\""}`,
		`{"a":"123-45-6789","b":"123-45-6789"}`, `["a@b.c"]`, `{"content":"a@b.c,d@e.f a@b.c"}`, `"123-45-6789"`,
	} {
		record, stored := recordOf(in, `{"z":"123-45-6789","$headers":[["h","1"]],"recordId":"a"}`), recordOf(in, `{"$key":"k","z":"123-45-6789"}`)
		if err := p.Scrub(stored); err != nil {
			t.Fatal(err)
		}
		if !redact.Same(stored, record) {
			t.Errorf("%s, scrubbed to %s, is another", in, stored.Slots[audit.SlotContext])
		}
	}
}

// All else is a difference.
func TestOthersAreNotSame(t *testing.T) {
	const m = "[redacted:x]"
	for _, c := range [][2]string{
		{`{"a":"b"}`, `{"a":"c"}`},
		{`{"a":"` + m + `"}`, `{"a":""}`},
		{`{"a":"` + m + `"}`, `{"a":"x","b":"y"}`},
		{`{"a":"` + m + `","b":"y"}`, `{"a":"x","c":"1","b":"y"}`},
		{`{"a":"k ` + m + `"}`, `{"a":"x"}`},
		{`{"a":"` + m + ` k"}`, `{"a":"x"}`},
		{`{"a":"` + m + m + `"}`, `{"a":""}`},
		{`{"a":"` + m + `b` + m + `"}`, `{"a":"xb"}`},
		{`{"a":"` + m + `"}`, `{"a":"x"} `},
		{`{"a":"x"}`, `{"a":"` + m + `"}`},
		{m, ``},
	} {
		if redact.Same(recordOf(c[0], ""), recordOf(c[1], "")) {
			t.Errorf("%s is taken for %s", c[0], c[1])
		}
	}
	for i, change := range []func(*audit.Record){
		func(r *audit.Record) { r.Status = audit.Str("error") },
		func(r *audit.Record) { r.UserID = audit.Str("u") },
		func(r *audit.Record) { r.Slots[audit.SlotDecision] = []byte(`{}`) },
		func(r *audit.Record) { r.Slots[audit.SlotExt] = []byte(`{"b":1}`) },
		func(r *audit.Record) { r.Slots[audit.SlotContext] = nil },
	} {
		a, b := recordOf(`{"a":"`+m+`"}`, ""), recordOf(`{"a":"x"}`, "")
		if !redact.Same(a, b) {
			t.Fatal("not the same before the change")
		}
		if change(b); redact.Same(a, b) {
			t.Errorf("change %d is not seen", i)
		}
	}
}

// Marks are placed at random: the text is always found again, and never where one
// character is gone of those that stand between them.
func TestCouldBeAtRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 5))
	for range 20_000 {
		var text, pattern, other []byte
		var kept []int
		for i := range 1 + rng.IntN(12) {
			c := "ab"[rng.IntN(2)]
			if text = append(text, c); rng.IntN(3) == 0 {
				pattern, other = append(pattern, "[redacted:x]"...), append(other, 'z')
				continue
			}
			pattern, other, kept = append(pattern, c), append(other, c), append(kept, i)
		}
		if !redact.Same(recordOf(string(pattern), ""), recordOf(string(text), "")) {
			t.Fatalf("%s is not taken for %s", text, pattern)
		}
		if len(kept) == 0 {
			continue
		}
		other[kept[rng.IntN(len(kept))]] = 'z'
		if redact.Same(recordOf(string(pattern), ""), recordOf(string(other), "")) {
			t.Fatalf("%s is taken for %s", other, pattern)
		}
	}
}
