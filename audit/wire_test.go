package audit

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "renew docs/wire-columns.md and the golden files")

// golden compares got with a file, and with -update renews the file instead.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is not what the code says; go test ./audit -update renews it\ngot:\n%s", path, got)
	}
}

// The column set is a contract: names, types, order and slots do not change.
// If this test fails, archives that exist can no longer be read or verified.
func TestColumnSet(t *testing.T) {
	types := []string{String: "STRING", Int32: "INT32", Int64: "INT64", Time: "TIME"}
	var b strings.Builder
	for i, c := range Header {
		required := ""
		if c.Required {
			required = " required"
		}
		fmt.Fprintf(&b, "header %2d %s %s%s\n", i+1, c.Name, types[c.Type], required)
	}
	for s := range NumSlots {
		kind := "JSON"
		if s == SlotRaw {
			kind = "BINARY"
		}
		fmt.Fprintf(&b, "slot   %2d %s %s\n", int(s)+1, s, kind)
	}
	golden(t, "testdata/columns.golden", b.String())
}

// Each accessor of Header leads to a field of its own.
func TestHeaderFields(t *testing.T) {
	var r Record
	seen := map[any]string{}
	for _, c := range Header {
		var field any
		switch {
		case (c.Text == nil) == (c.Int == nil), (c.Type == String) != (c.Text != nil):
			t.Errorf("%s: wants exactly one accessor, of its type", c.Name)
			continue
		case c.Text != nil:
			field = c.Text(&r)
		default:
			field = c.Int(&r)
		}
		if other := seen[field]; other != "" {
			t.Errorf("%s and %s share a field", c.Name, other)
		}
		seen[field] = c.Name
	}
}

// Every slot has the name that ParseSlot reads, and no other name is one.
func TestSlotNames(t *testing.T) {
	for s := range NumSlots {
		if got, ok := ParseSlot(s.String()); !ok || got != s {
			t.Errorf("ParseSlot(%q) = %v, %v", s, got, ok)
		}
	}
	for _, name := range []string{"", "Decision", "user_id", "raw "} {
		if _, ok := ParseSlot(name); ok {
			t.Errorf("ParseSlot(%q) found a slot", name)
		}
	}
}

// The tables of the wire fit what uses them: columns exist and have a field of
// the type that the conversion makes, paths have at most two names and lead to
// one thing, and there are ports for all of them.
func TestShapes(t *testing.T) {
	for _, s := range shapes {
		paths := map[string]bool{}
		ports := 0
		for _, c := range s.columns {
			if c.column != "user_id" && columnIndex(c.column) < 0 {
				t.Errorf("%s: no column %s", s.title, c.column)
			}
			if number := slices.Contains([]conversion{asInt32, asInt64, asOrdinal, asMillis, asTime, asTimeOrMillis, asCallSum}, c.as); number != (c.int != nil) {
				t.Errorf("%s: %s has no field for what conversion %d makes", s.title, c.column, c.as)
			}
			for _, path := range c.paths {
				if paths[path] {
					t.Errorf("%s: two columns come by %s", s.title, path)
				}
				paths[path] = true
				ports++
			}
		}
		if ports > maxPorts {
			t.Errorf("%s: %d ports, room for %d", s.title, ports, maxPorts)
		}
		for _, slot := range s.slots {
			if paths[slot.path] {
				t.Errorf("%s: %s is a slot and a column", s.title, slot.path)
			}
		}
	}
}

// Every slot of docs/format.md up to plugin_payloads is one of a call, in
// order.
func TestCallSlots(t *testing.T) {
	for i, s := range callShape.slots {
		if s.slot != Slot(i) {
			t.Errorf("slot %d of a call is %s", i, s.slot)
		}
	}
	if n := len(callShape.slots); Slot(n) != SlotContext {
		t.Errorf("a call has %d slots of its own, want %d", n, SlotContext)
	}
}

var conversionTexts = []string{
	asText:         "string",
	asInt32:        "number, integral, 32 bits",
	asInt64:        "number, integral, 64 bits",
	asOrdinal:      "number, integral, 64 bits, not negative",
	asMillis:       "number of milliseconds × 1000, rounded toward zero",
	asTime:         "string, RFC 3339",
	asTimeOrMillis: "string, RFC 3339; or number of milliseconds since 1970, integral",
	asRecordID:     "string, a ULID",
	asTenant:       "string, a tenant id; must agree with the header `tenant`",
	asKind:         "string, a kind; the header `ledgerlake-kind` goes before it",
	asActor:        "string, one of user, guest, scheduled, system; else the member stays in `context`",
	asVerdict:      "string; else the member stays in `context`",
	asFirstCall:    "string of the first call; the member stays in `context` as well",
	asCallSum:      "sum over all calls, null if one has none; the members stay in `context` as well",
}

// docs/wire-columns.md is what the tables say.
func TestWireColumnsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString(wirePageHead)
	writeKinds(&b)
	for _, s := range shapes {
		writeShape(&b, s)
	}
	b.WriteString(wirePageTail)
	golden(t, "../docs/wire-columns.md", b.String())
}

const wirePageHead = `# From the wire to columns

Which member of a record becomes which column. This page is made from the tables that the decoder itself uses, by ` + "`go test ./audit -update`" + `; a test fails where they differ.
What the columns mean, and what becomes of members that have none, is in [format.md](format.md).

- A path is member names joined by ` + "`.`" + `; ` + "`[]`" + ` stands for every element of an array. Names match exactly, after their escapes are resolved.
- Where several paths are given, the first that is there wins. Others that say the same are named in ` + "`$alias`" + ` of ` + "`ext`" + `; others that do not stay in ` + "`ext`" + ` under their path.
- A member that is null counts as absent.
- A member of the wrong type makes the record a reject: wrong_type. A number must be exactly integral where the table says so (1e2 and 812.0 are).
- What a column cannot say in full is kept in ` + "`ext`" + ` beside it: a time not written as YYYY-MM-DDTHH:MM:SS.mmmZ, a latency finer than a microsecond, a record id in lower case, a kind in its other spelling.
- A string that contains the record's user id (of 6 bytes or more), or is longer than 256 bytes, stays out of the columns marked † and goes to ` + "`ext`" + ` under the first path.
`

const wirePageTail = `
## Around the value

| what | becomes |
|---|---|
| header ` + "`tenant`" + ` | tenant_id; must agree with the members |
| header ` + "`ledgerlake-kind`" + ` | kind |
| header ` + "`ledgerlake-retain-prompts`" + ` | ` + "`true`" + ` keeps the prompts of this record, anything else does not; without it the tenant's setting decides |
| other headers | ` + "`$headers`" + ` in ` + "`ext`" + `, in order |
| key | ` + "`$key`" + ` in ` + "`ext`" + `, unless it equals the tenant; the tenant itself where the setting key-is-tenant says so and nothing else names one |
| Confluent's framing (a zero byte and 4 bytes) | ` + "`$schemaId`" + ` in ` + "`ext`" + ` |
| value that is no good | kind rejected: ` + "`raw`" + `, and ` + "`context`" + ` with the reason |
`

func writeKinds(b *strings.Builder) {
	b.WriteString("\n## Kinds\n\n| kind | also written | shape |\n|---|---|---|\n")
	for _, s := range shapes {
		for _, kind := range s.kinds {
			var spellings []string
			for spelling, k := range kindSpellings {
				if k == kind {
					spellings = append(spellings, "`"+spelling+"`")
				}
			}
			slices.Sort(spellings)
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", kind, strings.Join(spellings, ", "), s.title)
		}
	}
	b.WriteString("\nWithout the header and without a member `kind` of a known spelling, a record on a data topic is a `call`; one on the control topic is a reject.\n")
}

func writeShape(b *strings.Builder, s *shape) {
	fmt.Fprintf(b, "\n## %s\n\n| column | comes by | as | required |\n|---|---|---|---|\n", s.title)
	for _, c := range s.columns {
		mark, required := "", ""
		if c.echo {
			mark = " †"
		}
		if c.required {
			required = "yes"
		}
		fmt.Fprintf(b, "| %s%s | %s | %s | %s |\n", c.column, mark, ticked(c.paths, ", else "), conversionTexts[c.as], required)
	}
	if len(s.slots) > 0 {
		b.WriteString("\n| slot | holds | type |\n|---|---|---|\n")
	}
	for _, slot := range s.slots {
		kind := "object"
		if slot.slot == SlotPluginPayloads {
			kind = "array"
		}
		fmt.Fprintf(b, "| %s | `%s` | %s |\n", slot.slot, slot.path, kind)
	}
	b.WriteString("\n" + restText(s) + "\n")
}

func restText(s *shape) string {
	switch {
	case s.whole:
		return "The whole value is `context`, as it came. `tenantId` must be in it."
	case s.rest == SlotExt:
		return "All other members go to `ext`, under their paths; " + ticked(s.groups, ", ") + " are taken apart, member by member."
	case len(s.kept) > 0:
		return "All other members go to `context`; " + ticked(s.kept, ", ") + " stay there whole, " + ticked(s.groups, ", ") + " without what columns took."
	}
	return "All other members go to `context`; " + ticked(s.groups, ", ") + " without what columns took."
}

func ticked(names []string, separator string) string {
	ticked := make([]string, len(names))
	for i, name := range names {
		ticked[i] = "`" + name + "`"
	}
	return strings.Join(ticked, separator)
}

// A string that names the user stands in none of the columns that cannot be
// erased, by whatever path it came, in whatever shape, written with escapes or
// not; and it is kept in a slot. finish_reason of a record of ERASE-ME-7f3a, say.
func TestWhatNamesTheUserStandsInNoColumn(t *testing.T) {
	const user = "ERASE-ME-7f3a"
	tried := 0
	for _, s := range []struct {
		shape *shape
		bare  string
	}{{callShape, bareCall}, {decisionShape, bareDecision}, {entryShape, bareEntry}, {administrativeShape, bareEntry}} {
		for _, c := range s.shape.columns {
			if !c.echo {
				continue
			}
			for _, path := range c.paths {
				for _, text := range []string{user, "of " + user + "!", `\u0045RASE-ME-7f3\u0061`} {
					tried++
					r := accept(t, &Decoder{}, message(with(s.bare, `"userId":"`+user+`",`+memberAt(path, text)), header(HeaderKind, s.shape.kinds[0])))
					for i := range Header {
						if h := &Header[i]; h.Text != nil && strings.Contains(h.Text(r).S, user) {
							t.Errorf("%s of %s by %s: it stands in %s", c.column, s.shape.title, path, h.Name)
						}
					}
					if kept := string(r.Slots[SlotExt]) + string(r.Slots[SlotContext]); !strings.Contains(kept, text) {
						t.Errorf("%s of %s by %s is lost: %s", c.column, s.shape.title, path, kept)
					}
				}
			}
		}
	}
	if tried < 50 {
		t.Errorf("%d paths were tried", tried)
	}
}

// memberAt returns a member whose value stands at a path.
func memberAt(path, text string) string {
	name, rest, nested := strings.Cut(path, ".")
	switch {
	case !nested:
		return `"` + name + `":"` + text + `"`
	case strings.HasPrefix(rest, "0."):
		return `"` + name + `":[{` + memberAt(rest[2:], text) + `}]`
	}
	return `"` + name + `":{` + memberAt(rest, text) + `}`
}
