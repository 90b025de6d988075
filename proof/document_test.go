package proof

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// A document says one thing to every reader, or is refused. Each of these is
// read otherwise by some reader.
func TestDocumentsAreReadStrictly(t *testing.T) {
	for _, c := range []struct{ text, fault string }{
		{`{"a":1,"a":1}`, `member "a" stands twice`},
		{`{"a":1,"\u0061":1}`, `member "a" stands twice`},
		{`{"x":{"y":[{"z":1,"z":2}]},"a":1}`, `x: y: item 0: member "z" stands twice`},
		{`{"A":1}`, `member "a" is missing`},
		{`{}`, `member "a" is missing`},
		{`{"a":1}{}`, "bytes after the document"},
		{`{"a":1} x`, "bytes after the document"},
		{`{"a":1,}`, "where"},
		{`{"a":1`, "ends early"},
		{`{"a" 1}`, "where ':' belongs"},
		{`[1]`, "where '{' belongs"},
		{``, "ends early"},
		{`{"a":1.0}`, "not a plain integer"},
		{`{"a":1e2}`, "not a plain integer"},
		{`{"a":-0}`, "not a plain integer"},
		{`{"a":01}`, "where"},
		{`{"a":+1}`, "not a number"},
		{`{"a":9223372036854775808}`, "not a plain integer"},
		{`{"a":"1"}`, "not a number"},
		{`{"a":null}`, "not a number"},
		{`{"a":true}`, "not a number"},
		{`{"a":1,"b":"` + "\xff" + `"}`, "not valid UTF-8"},
		{`{"a":1,"b":"` + "\x01" + `"}`, "control character"},
		{`{"a":1,"b":"\ud800"}`, "lone surrogate"},
		{`{"a":1,"b":"\udc00\ud800"}`, "lone surrogate"},
		{`{"a":1,"b":"\ud800\u0061"}`, "lone surrogate"},
		{`{"a":1,"b":"\x41"}`, "unknown escape"},
		{`{"a":1,"b":"\u00g0"}`, "four hex digits"},
		{`{"a":1,"b":nul}`, "not a value"},
		{`{"a":1,"b":tru}`, "not a value"},
		{`{"a":1,"b":NaN}`, "not a value"},
		{`{"a":1,"b":.5}`, "not a value"},
		{`{"a":1,"b":5.}`, "not a number"},
		{`{"a":1,"b":5e}`, "not a number"},
		{`{"a":1,"b":'x'}`, "not a value"},
		{`{"a":1,"b":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, "nested deeper"},
		{"\ufeff" + `{"a":1}`, "where '{' belongs"},
	} {
		err := readDocument([]byte(c.text), field{name: "a", read: func(d *document) { d.integer() }})
		if err == nil || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%.60s: %v, want %q", c.text, err, c.fault)
		}
	}
}

// What is right is read, whatever stands around it.
func TestDocumentsAreRead(t *testing.T) {
	const text = " \t\r\n{ \"n\" : -12 , \"s\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00é\", \"no\":null, \"t\":true, \"f\":false,\n" +
		`"list":[1, 2],"later":{"a":[1.5e-9,{"b":null}],"":0}} `
	var n int64
	var s string
	var list []int64
	var yes, no, isNull bool
	err := readDocument([]byte(text),
		field{name: "n", read: func(d *document) { n = d.integer() }},
		field{name: "s", read: func(d *document) { s = d.str() }},
		field{name: "no", read: func(d *document) { isNull = !d.nullStr().Valid }},
		field{name: "t", read: func(d *document) { yes = d.boolean() }},
		field{name: "f", read: func(d *document) { no = !d.boolean() }},
		field{name: "absent", optional: true, read: func(d *document) { t.Error("read what is not there") }},
		field{name: "list", read: func(d *document) { d.array(func(d *document) { list = append(list, d.integer()) }) }})
	if err != nil || n != -12 || s != "\"\\/\b\f\n\r\té😀é" || !isNull || !yes || !no || len(list) != 2 || list[1] != 2 {
		t.Errorf("%v: %d %q %v %v %v %v", err, n, s, isNull, yes, no, list)
	}
}

// An object with many members is checked for twins as one with few is.
func TestManyMembers(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		b.WriteString(`,"` + strings.Repeat("x", i%7) + strings.Repeat("y", i/7) + `":0`)
	}
	text := `{"a":1` + b.String()
	if err := readDocument([]byte(text+"}"), field{name: "a", read: (*document).skip}); err != nil {
		t.Error(err)
	}
	if err := readDocument([]byte(text+`,"xyy":0}`), field{name: "a", read: (*document).skip}); err == nil {
		t.Error("a twin among many is passed over")
	}
}

// What readDocument accepts is JSON, and says the same to encoding/json.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":-1,"b":["x",null,true,1.5e9,{"c":"\u00e9\ud83d\ude00"}]}`, `{"a":1,"a":2}`, `{"a":0}x`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var n int64
		if readDocument(text, field{name: "a", read: func(d *document) { n = d.integer() }}) != nil {
			return
		}
		// A map takes names as they are; a struct takes them in any case.
		var members map[string]json.RawMessage
		if err := json.Unmarshal(text, &members); err != nil {
			t.Fatalf("%q is accepted: %v", text, err)
		}
		if got := string(members["a"]); got != strconv.FormatInt(n, 10) {
			t.Fatalf("%q: %d, encoding/json reads %s", text, n, got)
		}
	})
}

// No metadata, root, anchor or note makes a reader panic.
func FuzzDocuments(f *testing.F) {
	f.Add([]byte(`{"format":"ledgerlake-v1","archiveId":"01KBCDEFGHJKMNPQRSTVWXYZ01","createdAt":"2026-05-28T20:26:40.000000Z","graceSeconds":3600}`))
	f.Add([]byte("ledgerlake anchor v1\n{\"number\":0}\n\n— name cgGQTw==\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_, _ = readRoot(text)
		_, _, _, _, _ = readReset(text)
		_, _ = readReject(text)
		if m, err := readMetadata(text); err == nil {
			checkMetadata(m, func(FaultKind, string) {})
		}
		_ = new(anchor).parse(text)
		if noted, n, err := splitNote(text); err == nil && n == 0 && noted+"\n" != string(text) {
			t.Fatalf("%q is not its text and an empty line", text)
		}
	})
}

// A note is a text, an empty line and signature lines, in the one form that
// writing it again gives.
func TestNotesHaveOneForm(t *testing.T) {
	const good = "a\nb\n\n— key/1 cgGQT5usojs=\n"
	if text, n, err := splitNote([]byte(good)); err != nil || text != "a\nb\n" || n != 1 {
		t.Fatalf("%q, %d, %v", text, n, err)
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
		if text, n, err := splitNote([]byte(bad)); err == nil {
			t.Errorf("%.80q is a note: %q, %d", bad, text, n)
		}
	}
}
