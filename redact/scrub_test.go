package redact_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/redact"
)

const everything = `
name: test
rules:
  - rule: ssn-us
  - rule: luhn
  - rule: us-dl
    states: [CA, FL, NY, TX, WA]
  - rule: keyed-regex
    name: email
    key: .*e-?mail|content
    pattern: '[^@\s"\\]+@[^@\s"\\]+'
  - rule: keyed-regex
    name: secret
    key: password|x\.y
    pattern: '(?s).+'
`

func parse(t testing.TB, text string) *redact.Policy {
	t.Helper()
	p, err := redact.ParsePolicy([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// scrub returns what becomes of the context of a record, and requires what holds
// for all of them: JSON stays JSON, the slot is not changed in place, and to
// scrub again changes nothing.
func scrub(t testing.TB, p *redact.Policy, context string) string {
	t.Helper()
	r := audit.Record{TenantID: audit.Str("acme"), Kind: audit.Str(audit.KindDecision), RedactionPolicy: audit.Str(audit.PolicyNone)}
	in := []byte(context)
	r.Slots[audit.SlotContext] = in
	if err := p.Scrub(&r); err != nil {
		t.Fatalf("%s: %v", context, err)
	}
	out := string(r.Slots[audit.SlotContext])
	switch {
	case string(in) != context:
		t.Fatalf("%s was changed in place", context)
	case r.RedactionPolicy.S != p.ID():
		t.Fatalf("redaction_policy is %v", r.RedactionPolicy)
	case json.Valid(in) != json.Valid([]byte(out)):
		t.Fatalf("%s\nbecame no JSON: %s", context, out)
	}
	if err := p.Scrub(&r); err != nil || string(r.Slots[audit.SlotContext]) != out {
		t.Fatalf("%s\nbecame %s\nand then %s, %v", context, out, r.Slots[audit.SlotContext], err)
	}
	return out
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// What each rule finds, in a text of its own. «» is around what goes.
func TestRulesFind(t *testing.T) {
	p := parse(t, everything)
	for rule, texts := range map[string][]string{
		"ssn-us": {
			"«123-45-6789»", "it is «123-45-6789».", "SSN«123-45-6789»", "ssn=«123-45-6789», born 1970-01-02", "(«123-45-6789»)",
			"«123 45 6789»", "«123 - 45 - 6789»", "SSN: «123456789»", "his social security number is «123456789»", "«123456789» (SSN)", "ss# «123456789»",
			"«１２３-４５-６７８９»", "«123–45–6789»", "«123‑45‑6789»", "«123−45−6789»", "«123\u00a045\u20096789»", "«1\u200b23-45-67\u00ad89»", "«123-\u206045-6789»",
			"«١٢٣-٤٥-٦٧٨٩»", "«𝟏𝟐𝟑-𝟒𝟓-𝟔𝟕𝟖𝟗»", "«①②③-④⑤-⑥⑦⑧⑨»", "two: «123-45-6789», «234-56-7890»", "é «123-45-6789» é", "«123\t45\t6789»", "社保«123-45-6789»号",
			"-«123-45-6789»-", "«665-01-0001»", "«899-99-9999»",
		},
		"luhn": {
			"«4111111111111111»", "card «4111 1111 1111 1111» ok", "«4111-1111-1111-1111»", "«5555555555554444»", "«2223003122003222»", "«378282246310005»", "«3782 822463 10005»",
			"«30569309025904»", "«3056 930902 5904»", "«6011111111111117»", "«3530111333300000»", "«6200000000000005»", "«４１１１１１１１１１１１１１１１»", "«4111\u200b1111\u200b1111\u200b1111»",
			"a «4111111111111111», b «5555555555554444»", "12 «4111 1111 1111 1111» 12/25", "visa «4222222222222»", "«4111—1111—1111—1111»",
		},
		"us-dl": {
			"driver's license A1234567"[:17] + "«A1234567»", "DL «D1234567»", "dl# «A123-456-78-901-0»", "Driver License: «123456789»", "licence no. «12345678»", "«12345678» (driving licence)",
			"DLN «WDLABCD456DG»", "driver's license «Ａ1234567»",
		},
	} {
		for _, text := range texts {
			in := strings.NewReplacer("«", "", "»", "").Replace(text)
			want := ""
			for rest := text; ; {
				before, after, found := strings.Cut(rest, "«")
				want += before
				if !found {
					break
				}
				_, rest, _ = strings.Cut(after, "»")
				want += "[redacted:" + rule + "]"
			}
			if got := scrub(t, p, `{"note":`+quote(in)+`}`); got != `{"note":`+quote(want)+`}` {
				t.Errorf("%s: %s\nbecame %s", rule, text, got)
			}
		}
	}
}

// What looks like it and is not.
func TestRulesLeaveAlone(t *testing.T) {
	p := parse(t, everything)
	for _, text := range []string{
		"", "123456789", "000-12-3456", "666-12-3456", "900-12-3456", "123-00-4567", "123-45-0000", "1123-45-6789", "123-45-67890", "1-123-45-6789", "123-45-6789-0", "123-456-7890",
		"123-45 6789", "200 123 45 6789", "123 45 6789 12", "2026-05-15T10:00:00Z", "+1 (123) 456-7890", "SSN 000000000", "ssn " + strings.Repeat("x", 60) + " 123456789", "assn1234567890", "123.45.6789",
		"4111111111111112", "1111111111111117", "41111111111111111", "x4111111111111111", "4111111111111111x", "0.4111111111111111", "4222222222222", "9111111111111111", "4111 1111 1111 1111 1 a"[:12],
		"123e4567-e89b-12d3-a456-426614174000", "12345678-1234-4123-8901-123456789012", "01KBCDEFGHJKMNPQRSTVWXYZ10", "1780000000123", "1780000000123456", "1780000000123456789",
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "A1234567", "12345678", "software license ABCDEFGH", "licensed 12345678", "driver license", "driver's license: none", "[redacted:ssn-us]", "[redacted:x~2]",
		"bob@example.com", "a\\b\"c\n\u2028", "日本語のテキスト", "\U0001f600",
	} {
		in := `{"note":` + quote(text) + `}`
		if got := scrub(t, p, in); got != in {
			t.Errorf("%s\nbecame %s", in, got)
		}
	}
}

// What stands around it: names, paths, arrays, escapes. All that is not found
// keeps its bytes.
func TestScrubInJSON(t *testing.T) {
	p := parse(t, everything)
	for in, want := range map[string]string{
		`{"ssn":"123456789","id":"123456789"}`:                                            `{"ssn":"[redacted:ssn-us]","id":"123456789"}`,
		`{"n":123456789,"ssn":123456789,"c":4111111111111111}`:                            `{"n":123456789,"ssn":123456789,"c":4111111111111111}`,
		` [ "a\u0041\/\"" , "\u00ff 123\u002d45\u002d6789\u0020\n" ] `:                    ` [ "a\u0041\/\"" , "\u00ff [redacted:ssn-us]\u0020\n" ] `,
		`{"Email":"bob@example.com","x":["a@b.c"],"E-MAIL":["a@b.c ",{"k":"d@e"},"f@g"]}`: `{"Email":"[redacted:email]","x":["a@b.c"],"E-MAIL":["[redacted:email] ",{"k":"d@e"},"[redacted:email]"]}`,
		`{"\u0065mail":"bob@example.com"}`:                                                `{"\u0065mail":"[redacted:email]"}`,
		`{"password":"","a":{"password":"x"},"passwords":"x"}`:                            `{"password":"","a":{"password":"[redacted:secret]"},"passwords":"x"}`,
		`{"password":"123-45-6789"}`:                                                      `{"password":"[redacted:ssn-us]"}`,
		`{"password":"my 123-45-6789"}`:                                                   `{"password":"[redacted:ssn-us]"}`,
		`{"123-45-6789":1}`:                                                               `{"[redacted:ssn-us]":1}`,
		`{"123-45-6789":1,"a":{"123-45-6789":3},"234-56-7890":2}`:                         `{"[redacted:ssn-us]":1,"a":{"[redacted:ssn-us]":3},"[redacted:ssn-us~2]":2}`,
		`{"[redacted:ssn-us]":0,"123-45-6789":1,"[redacted:ssn-us~2]":2}`:                 `{"[redacted:ssn-us]":0,"[redacted:ssn-us~3]":1,"[redacted:ssn-us~2]":2}`,
		`{"a":"123-45-[redacted:x]6789","b":"123-45-6789[redacted:x]123-45-6789"}`:        `{"a":"123-45-[redacted:x]6789","b":"[redacted:ssn-us][redacted:x][redacted:ssn-us]"}`,
		`"123-45-6789"`: `"[redacted:ssn-us]"`,
		`{}`:            `{}`,
		`[]`:            `[]`,
		`null`:          `null`,
	} {
		if got := scrub(t, p, in); got != want {
			t.Errorf("%s\nbecame %s\nwant   %s", in, got, want)
		}
	}
}

// In ext and prompts the names of the outermost object are paths.
func TestPathsEndInNames(t *testing.T) {
	p := parse(t, everything)
	for _, s := range []audit.Slot{audit.SlotExt, audit.SlotPrompts} {
		r := audit.Record{Kind: audit.Str(audit.KindCall), RedactionPolicy: audit.Str(audit.PolicyNone)}
		r.Slots[s] = []byte(`{"principal.email":"a@b.c","email.x":"a@b.c","calls.0.messages":[{"content":"mail a@b.c"}],"$headers":[["h","123-45-6789"]]}`)
		if err := p.Scrub(&r); err != nil {
			t.Fatal(err)
		}
		want := `{"principal.email":"[redacted:email]","email.x":"a@b.c","calls.0.messages":[{"content":"mail [redacted:email]"}],"$headers":[["h","[redacted:ssn-us]"]]}`
		if got := string(r.Slots[s]); got != want {
			t.Errorf("%s became %s", s, got)
		}
	}
}

// Columns stay, but for those that are derived from a slot.
func TestColumnsStay(t *testing.T) {
	p := parse(t, everything)
	r := audit.Record{RedactionPolicy: audit.Str(audit.PolicyNone), Kind: audit.Str(audit.KindCall), UserID: audit.Str("123-45-6789")}
	for i := range audit.Header {
		if c := &audit.Header[i]; c.Text != nil && c.Name != "kind" {
			*c.Text(&r) = audit.Str("123-45-6789")
		}
	}
	r.Slots[audit.SlotDecision] = []byte(`{"requestedModel":"123-45-6789","rungOrdinal":1}`)
	r.Derived = audit.Derive(r.Slots[audit.SlotDecision])
	want := r
	want.RedactionPolicy = audit.Str(p.ID())
	want.Slots[audit.SlotDecision] = []byte(`{"requestedModel":"[redacted:ssn-us]","rungOrdinal":1}`)
	want.RequestedModel = audit.Str("[redacted:ssn-us]")
	if err := p.Scrub(&r); err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("%v\ngot  %+v\nwant %+v", err, r, want)
	}
}

// rejected returns the row of a value that is refused.
func rejected(value string, headers ...audit.MessageHeader) *audit.Record {
	var d audit.Decoder
	r := &audit.Record{}
	if d.Decode(r, &audit.Message{Topic: "t", Key: []byte("123-45-6789"), Value: []byte(value), Headers: headers}) == nil {
		panic("not refused: " + value)
	}
	return r
}

// The bytes of a reject are scrubbed whatever they are, and context tells their
// size and hash as they are then: what went could be guessed by the old ones.
func TestRejectsAreScrubbed(t *testing.T) {
	p := parse(t, everything)
	for in, want := range map[string]string{
		`{"a":"123-45-6789","a":4111111111111111}`:    `{"a":"[redacted:ssn-us]","a":4111111111111111}`,
		`{"n":4111111111111111,}`:                     `{"n":[redacted:luhn],}`,
		`no JSON 123-45-6789`:                         `no JSON [redacted:ssn-us]`,
		`{"email":"a@b.c","b":`:                       `{"email":"[redacted:email]","b":`,
		"\xff\xfe ssn 123456789 \x00":                 "\xff\xfe ssn [redacted:ssn-us] \x00",
		`{"a":"\ud800 123\u002d45-6789"}`:             `{"a":"\ud800 [redacted:ssn-us]"}`,
		"\x00\x00\x00\x00\x07{\"a\":\"123-45-6789\"}": "\x00\x00\x00\x00\x07{\"a\":\"[redacted:ssn-us]\"}",
		`nothing`: `nothing`,
	} {
		r := rejected(in, audit.MessageHeader{Name: "h", Value: []byte("123-45-6789")})
		for range 2 {
			if err := p.Scrub(r); err != nil {
				t.Fatal(err)
			}
			if got := string(r.Slots[audit.SlotRaw]); got != want {
				t.Errorf("%q\nbecame %q", in, got)
			}
			var context struct {
				Reason, SHA256, Key string
				Size                int
				Headers             [][]string
			}
			if err := json.Unmarshal(r.Slots[audit.SlotContext], &context); err != nil {
				t.Fatal(err)
			}
			sum := fmt.Sprintf("%x", sha256.Sum256([]byte(want)))
			if context.Size != len(want) || context.SHA256 != sum || context.Key != "[redacted:ssn-us]" || context.Headers[0][1] != "[redacted:ssn-us]" || context.Reason == "" {
				t.Errorf("%q: context %s", in, r.Slots[audit.SlotContext])
			}
			if r.RedactionPolicy.Valid {
				t.Errorf("%q: redaction_policy is set", in)
			}
		}
	}
}

// Signed bytes, and rows that nobody sent, stay.
func TestOthersAreLeftAlone(t *testing.T) {
	p := parse(t, everything)
	for _, kind := range []string{audit.KindGap, "redaction"} {
		r := audit.Record{Kind: audit.Str(kind)}
		r.Slots[audit.SlotContext] = []byte(`{"reason":"123-45-6789"}`)
		want := r
		if err := p.Scrub(&r); err != nil || !reflect.DeepEqual(r, want) {
			t.Errorf("%s: %v, %+v", kind, err, r)
		}
	}
	r := audit.Record{Kind: audit.Str(audit.KindCall), RedactionPolicy: audit.Str(audit.PolicyNone)}
	want := r
	if err := (*redact.Policy)(nil).Scrub(&r); err != nil || !reflect.DeepEqual(r, want) {
		t.Errorf("no policy: %v, %+v", err, r)
	}
}

// Where marks would make a slot too large, none of it is to be stored.
func TestScrubFailsClosed(t *testing.T) {
	p := parse(t, "name: x\nrules:\n- {rule: keyed-regex, name: a-name-of-many-characters, key: k, pattern: x}\n")
	r := audit.Record{Kind: audit.Str(audit.KindCall), RedactionPolicy: audit.Str(audit.PolicyNone)}
	r.Slots[audit.SlotExt] = []byte(`{"k":[` + strings.Repeat(`"x",`, 1<<20) + `"x"]}`)
	if err := p.Scrub(&r); err == nil || !strings.Contains(err.Error(), "16 MiB") {
		t.Errorf("scrubbed to %d bytes: %v", len(r.Slots[audit.SlotExt]), err)
	}
}

// A pattern whose every look could be at all of a text makes a text go as a
// whole before that adds up.
func TestKeyedRulesHaveABudget(t *testing.T) {
	p := parse(t, "name: x\nrules:\n- {rule: keyed-regex, name: n, key: k, pattern: 'a(.*z)?'}\n")
	got := scrub(t, p, `{"k":"`+strings.Repeat("a", 1<<20)+`","b":1}`)
	if got != `{"k":"[redacted:n]","b":1}` {
		t.Errorf("%d bytes: %.80s", len(got), got)
	}
	many := `{"k":"` + strings.Repeat("b", 60_000)
	want := many + strings.Repeat(" [redacted:n]", 100) + `"}`
	if got := scrub(t, p, many+strings.Repeat(" a", 100)+`"}`); got != want {
		t.Errorf("%d bytes, want %d", len(got), len(want))
	}
	if got := scrub(t, p, `{"k":"a a a"}`); got != `{"k":"[redacted:n] [redacted:n] [redacted:n]"}` {
		t.Error(got)
	}
}

// Any number of names that become equal is numbered in time linear in them.
func TestManyNamesBecomeEqual(t *testing.T) {
	p := parse(t, everything)
	var in, want strings.Builder
	in.WriteString(`{"[redacted:ssn-us~3]":0`)
	want.WriteString(`{"[redacted:ssn-us~3]":0`)
	for i := range 50_000 {
		fmt.Fprintf(&in, `,"%03d-45-6%03d":%d`, 100+i%500, i/500, i)
		number := ""
		if n := i + 1; n > 2 {
			number = fmt.Sprint("~", n+1)
		} else if n == 2 {
			number = "~2"
		}
		fmt.Fprintf(&want, `,"[redacted:ssn-us%s]":%d`, number, i)
	}
	in.WriteString("}")
	want.WriteString("}")
	if got := scrub(t, p, in.String()); got != want.String() {
		t.Errorf("%.200s\nwant %.200s", got, want.String())
	}
}

// A character that stands for several goes as a whole, whichever is found.
func TestCharactersGoWhole(t *testing.T) {
	for pattern, want := range map[string]string{
		"1": "[redacted:n]a", "0": "[redacted:n]a", "10": "[redacted:n]a", "0a": "[redacted:n]", "1|0|a": "[redacted:n][redacted:n]",
	} {
		p := parse(t, "name: x\nrules:\n- {rule: keyed-regex, name: n, key: k, pattern: '"+pattern+"'}\n")
		for _, ten := range []string{"⑩", `\u2469`} {
			if got := scrub(t, p, `{"k":"`+ten+`a"}`); got != `{"k":"`+want+`"}` {
				t.Errorf("%s in %s: %s", pattern, ten, got)
			}
		}
	}
}

// A tenant may have rules of its own. One policy has one id all the same.
func TestTenantsHaveRules(t *testing.T) {
	p := parse(t, "name: x\nrules: [{rule: ssn-us}]\ntenants: {beta: [], gamma: [{rule: luhn}]}\n")
	for tenant, want := range map[string]string{
		"acme": `["[redacted:ssn-us]","4111111111111111"]`, "beta": `["123-45-6789","4111111111111111"]`, "gamma": `["123-45-6789","[redacted:luhn]"]`,
	} {
		r := audit.Record{TenantID: audit.Str(tenant), Kind: audit.Str(audit.KindCall), RedactionPolicy: audit.Str(audit.PolicyNone)}
		r.Slots[audit.SlotPluginPayloads] = []byte(`["123-45-6789","4111111111111111"]`)
		if err := p.Scrub(&r); err != nil || string(r.Slots[audit.SlotPluginPayloads]) != want || r.RedactionPolicy.S != p.ID() {
			t.Errorf("%s: %s, %v", tenant, r.Slots[audit.SlotPluginPayloads], err)
		}
	}
}

func FuzzScrub(f *testing.F) {
	for _, s := range []string{
		`{"note":"123-45-6789 4111 1111 1111 1111"}`, `{"email":"a@b.c","123-45-6789":{"password":["x",1]}}`, `{"a":"\u0031\uff12３-45-6789"}`,
		`[redacted:ssn-us]123-45-6789`, `"ssn 123456789[redacted:`, "\x00\x00\x00\x00\x01[\"dl A1234567\"]",
	} {
		f.Add([]byte(s))
	}
	p := parse(f, everything)
	f.Fuzz(func(t *testing.T, in []byte) {
		if len(in) > 1<<16 {
			return
		}
		if json.Valid(in) {
			stored := scrub(t, p, string(in))
			if !redact.Same(recordOf(stored, ""), recordOf(string(in), "")) {
				t.Fatalf("%q, scrubbed to %q, is another", in, stored)
			}
		}
		r := rejected(string(bytes.Join([][]byte{[]byte(`[`), in}, nil)))
		if err := p.Scrub(r); err != nil {
			t.Fatal(err)
		}
		before := *r
		if err := p.Scrub(r); err != nil || !reflect.DeepEqual(*r, before) {
			t.Fatalf("%q\nbecame %q\nand then %q, %v", in, before.Slots[audit.SlotRaw], r.Slots[audit.SlotRaw], err)
		}
	})
}
