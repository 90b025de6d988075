package jsondoc

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
		err := Read([]byte(c.text), Field{Name: "a", Read: func(d *Document) { d.Integer() }})
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
	err := Read([]byte(text),
		Field{Name: "n", Read: func(d *Document) { n = d.Integer() }},
		Field{Name: "s", Read: func(d *Document) { s = d.Str() }},
		Field{Name: "no", Read: func(d *Document) { isNull = !d.NullStr().Valid }},
		Field{Name: "t", Read: func(d *Document) { yes = d.Boolean() }},
		Field{Name: "f", Read: func(d *Document) { no = !d.Boolean() }},
		Field{Name: "absent", Optional: true, Read: func(d *Document) { t.Error("read what is not there") }},
		Field{Name: "list", Read: func(d *Document) { d.Array(func(d *Document) { list = append(list, d.Integer()) }) }})
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
	if err := Read([]byte(text+"}"), Field{Name: "a", Read: (*Document).Skip}); err != nil {
		t.Error(err)
	}
	if err := Read([]byte(text+`,"xyy":0}`), Field{Name: "a", Read: (*Document).Skip}); err == nil {
		t.Error("a twin among many is passed over")
	}
}

// What Read accepts is JSON, and says the same to encoding/json.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"a":-1,"b":["x",null,true,1.5e9,{"c":"\u00e9\ud83d\ude00"}]}`, `{"a":1,"a":2}`, `{"a":0}x`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var n int64
		if Read(text, Field{Name: "a", Read: func(d *Document) { n = d.Integer() }}) != nil {
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
