package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"
)

func scanText(text string) *Reject {
	var s scanner
	return s.scan([]byte(text), 0)
}

// Text that is no JSON is refused with the position of the first byte that
// does not fit, and never shows what stands there.
func TestScanRefusesWhatIsNoJSON(t *testing.T) {
	for _, c := range []struct {
		text string
		at   int
	}{
		{"", 0},
		{"   ", 3},
		{"nul", 0},
		{"nullx", 4},
		{"True", 0},
		{"NaN", 0},
		{`{"a":NaN}`, 5},
		{`{"a":Infinity}`, 5},
		{`{"a":-Infinity}`, 6},
		{`{"a":+1}`, 5},
		{`{"a":.5}`, 5},
		{`{"a":1.}`, 7},
		{`{"a":01}`, 6},
		{`{"a":-}`, 6},
		{`{"a":1e}`, 7},
		{`{"a":1e+}`, 8},
		{`{"a":0x10}`, 6},
		{`{"a":1 2}`, 7},
		{`{"a":1,}`, 7},
		{`{,}`, 1},
		{`{"a"}`, 4},
		{`{"a" 1}`, 5},
		{`{"a":}`, 5},
		{`{a:1}`, 1},
		{`{'a':1}`, 1},
		{`{"a":1`, 6},
		{`{"a":1]`, 6},
		{`[1,]`, 3},
		{`[1 2]`, 3},
		{`[`, 1},
		{`{"a":"b`, 7},
		{`{"a":"b\`, 7},
		{`{"a":"\x41"}`, 6},
		{`{"a":"\u12"}`, 6},
		{`{"a":"\u12G4"}`, 6},
		{"{\"a\":\"b\x00c\"}", 7},
		{"{\"a\":\"b\nc\"}", 7},
		{"{\"a\":\"b\x1f\"}", 7},
		{"{\"a\":1}\x00", 7},
		{`{"a":1}{"a":1}`, 7},
		{`{"a":1} x`, 8},
		{"\xef\xbb\xbf{}", 0},
		{"{\u00a0}", 1},
		{"// c\n{}", 0},
		{"{\"a\":\"\xe6\x9d", 8}, // cut inside a character
		{"{\"a\":1}\xe6\x9d", 7},
		{"\xf0\x9f", 0},
	} {
		reject := scanText(c.text)
		if reject == nil || reject.Reason != ReasonInvalidJSON || !strings.HasPrefix(reject.Detail, fmt.Sprintf("byte %d: ", c.at)) {
			t.Errorf("%q: %v, want invalid_json at byte %d", c.text, reject, c.at)
		}
	}
}

// Good text passes, whatever blanks and numbers it has.
func TestScanAccepts(t *testing.T) {
	for _, text := range []string{
		`null`, ` true `, `false`, `0`, `-0`, `-0.0e-0`, `1E+400`, `123456789012345678901234567890.5e-999999999999`, `""`, `[]`, `{}`,
		" \t\r\n{ \"a\" : [ 1 , 2 ] } ", `{"":1}`, `{"a":{"a":{"a":1}},"b":{"a":1}}`, `[{"a":1},{"a":1}]`,
		`{"a":"\u0000\ud800\udc00\uDBFF\uDFFF \"\\\/\b\f\n\r\t"}`, "{\"a\":\"\u2028\U0001F600\x7f\"}",
		`{"tenantId":1,"TENANTID":2,"tenantid":3}`,
	} {
		if reject := scanText(text); reject != nil {
			t.Errorf("%q: %v", text, reject)
		}
	}
}

// A surrogate without its other half is refused wherever it stands, and so are
// bytes that are not UTF-8; a pair is fine.
func TestScanRefusesBadUnicode(t *testing.T) {
	for _, c := range []struct {
		text string
		at   int
	}{
		{`"\ud800"`, 1},
		{`"\udc00"`, 1},
		{`"\uDC00\uD800"`, 1},
		{`"\udc00\udc00"`, 1},
		{`"\ud800x"`, 1},
		{`"\ud800\n"`, 1},
		{`"\ud800\u0041"`, 1},
		{`"\ud800\ud800\udc00"`, 1},
		{`"ab\ud800\udc00\udc00"`, 15},
		{`{"\ud800":1}`, 2},
		{`{"a":[{"b":"\udfff"}]}`, 12},
		{"\"\xed\xa0\x80\"", 1},
		{"{\"a\":\"a\xff\xfeb\"}", 7},
		{"{\"a\xc0\x80\":1}", 3},
		{"{\"a\":\"\xf4\x90\x80\x80\"}", 6},
		{"{\"tenantId\":\"acme\",\xff", 19},
		{"{]\xff", 2}, // UTF-8 goes before all else
	} {
		reject := scanText(c.text)
		if reject == nil || reject.Reason != ReasonInvalidUnicode || !strings.HasPrefix(reject.Detail, fmt.Sprintf("byte %d: ", c.at)) {
			t.Errorf("%q: %v, want invalid_unicode at byte %d", c.text, reject, c.at)
		}
	}
}

// No object names a member twice: at no depth, in no spelling, near or far, in
// small objects and in large ones. The position is that of the second name.
func TestScanRefusesTwoMembersOfOneName(t *testing.T) {
	many := func(n int, more string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"m%d":0,`, i)
		}
		return "{" + b.String() + more + "}"
	}
	for _, c := range []struct {
		text string
		at   int
	}{
		{`{"a":1,"a":1}`, 7},
		{`{"a":1,"b":2,"a":null}`, 13},
		{`{"":1,"":2}`, 6},
		{`{"a":1,"\u0061":2}`, 7},
		{`{"\u0061":1,"a":2}`, 12},
		{`{"\u0061":1,"\u0061":2}`, 12},
		{`{"\/":1,"/":2}`, 8},
		{`{"\ud83d\ude00":1,"😀":2}`, 18},
		{`{"x":[1,{"y":{"a":1,"b":1,"a":1}}]}`, 26},
		{`[[[{"a":1,"a":1}]]]`, 10},
		{many(15, `"m0":1`), 111},
		{many(16, `"m7":1`), 119},
		{many(3000, `"m2999":1`), len(many(3000, "")) - 1},
		{many(40, `"\u006d0":1`), len(many(40, "")) - 1},
	} {
		reject := scanText(c.text)
		if reject == nil || reject.Reason != ReasonDuplicateKey || !strings.HasPrefix(reject.Detail, fmt.Sprintf("byte %d: ", c.at)) {
			t.Errorf("%.60q: %v, want duplicate_key at byte %d", c.text, reject, c.at)
		}
	}
	for _, n := range []int{0, 1, 15, 16, 17, 31, 32, 33, 3000} {
		if reject := scanText(many(n, `"n":1`)); reject != nil {
			t.Errorf("%d members: %v", n+1, reject)
		}
	}
}

// 64 levels pass and 65 do not, objects and arrays alike.
func TestScanDepth(t *testing.T) {
	arrays := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	objects := func(n int) string { return strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1) }
	mixed := func(n int) string { return strings.Repeat(`[{"a":`, n/2) + "0" + strings.Repeat("}]", n/2) }
	for _, text := range []string{arrays(64), objects(64), mixed(64)} {
		if reject := scanText(text); reject != nil {
			t.Errorf("%.40q…: %v", text, reject)
		}
	}
	for _, text := range []string{arrays(65), objects(65), mixed(66), strings.Repeat("[", 1<<20)} {
		if reject := scanText(text); reject == nil || reject.Reason != ReasonTooDeep {
			t.Errorf("%.40q…: %v, want too_deep", text, reject)
		}
	}
}

// skipPlain looks at eight bytes at a time and must find the same as one that
// looks at each: for every byte at every place, whatever stands around it.
func TestSkipPlain(t *testing.T) {
	for _, filler := range []byte{'a', ' ', '!', 0x7f, 0x80, 0xff} {
		for at := range 20 {
			for c := range 256 {
				text := bytes.Repeat([]byte{filler}, 20)
				text[at] = byte(c)
				want := 20
				if c < 0x20 || c == '"' || c == '\\' {
					want = at
				}
				if got := skipPlain(text, 0); got != want {
					t.Fatalf("%q: stops at %d, want %d", text, got, want)
				}
				text[19] = '"'
				if got := skipPlain(text, 0); want < 19 && got != want || want == 20 && got != 19 {
					t.Fatalf("%q: stops at %d, want %d", text, got, min(want, 19))
				}
			}
		}
	}
}

// The index has the members of the root and of the groups in it, with their
// bytes as they were written and names and strings without escapes.
func TestScanIndex(t *testing.T) {
	var s scanner
	text := `{ "a" : 1.10 , "c\u0061ll" : { "x" : [ 1 , {"no":1} ] , "\u0079" : null } , "d" : [ { "no" : 1 } ] , "slot" : { "no" : 1 } , "e" : "\u00e9\n" }`
	if reject := s.scan([]byte(text), 0); reject != nil {
		t.Fatal(reject)
	}
	var got []string
	for i := range s.top {
		m := &s.top[i]
		line := fmt.Sprintf("%s=%s", s.nameOf(m), s.raw(m))
		if m.typ == typeString {
			line += "=" + s.stringOf(m)
		}
		for j := m.subs.from; j < m.subs.to; j++ {
			line += fmt.Sprintf(" %s=%s", s.nameOf(&s.subs[j]), s.raw(&s.subs[j]))
		}
		got = append(got, line)
	}
	want := []string{"a=1.10", `call={ "x" : [ 1 , {"no":1} ] , "\u0079" : null } x=[ 1 , {"no":1} ] y=null`, `d=[ { "no" : 1 } ]`, `slot={ "no" : 1 }`, "e=\"\\u00e9\\n\"=é\n"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// The position in a framed value counts the frame.
func TestScanCountsTheFrame(t *testing.T) {
	var s scanner
	if reject := s.scan([]byte(`{"a":x}`), 5); reject == nil || reject.Detail != "byte 10: no value begins so" {
		t.Error(reject)
	}
}

// A hostile object of a million members is checked in linear time, and leaves
// no memory behind.
func TestScanOfManyMembersIsLinear(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`{"slot":{`)
	for i := range 1 << 20 {
		fmt.Fprintf(&b, `"%x":0,`, i)
	}
	b.WriteString(`"z":0}}`)
	var s scanner
	if reject := s.scan(b.Bytes(), 0); reject != nil || len(s.top) != 1 || len(s.subs) != 0 {
		t.Errorf("%v, %d members, %d in groups", reject, len(s.top), len(s.subs))
	}
	s.release()
	if s.names != nil || s.table != nil {
		t.Error("a released scanner keeps the memory of a hostile text")
	}
}

// The index is bounded: a root or a group of more members than that is
// refused, and any other object may have as many.
func TestScanBoundsTheIndex(t *testing.T) {
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"%x":0,`, i)
		}
		return "{" + strings.TrimSuffix(b.String(), ",") + "}"
	}
	for text, want := range map[string]bool{
		many(MaxMembers):                            true,
		many(MaxMembers + 1):                        false,
		`{"call":` + many(MaxMembers-1) + `}`:       true,
		`{"call":` + many(MaxMembers) + `}`:         false,
		`{"a":1,"call":` + many(MaxMembers) + `}`:   false,
		`{"slot":` + many(MaxMembers+1) + `}`:       true,
		`{"a":[` + many(MaxMembers+1) + `]}`:        true,
		`{"call":{"x":` + many(MaxMembers+1) + `}}`: true,
		`{"Call":` + many(MaxMembers+1) + `}`:       true,
	} {
		reject := scanText(text)
		if (reject == nil) != want || reject != nil && reject.Reason != ReasonTooLarge {
			t.Errorf("%.30s…: %v", text, reject)
		}
	}
}

// FuzzScan holds the scanner against encoding/json: what it accepts the other
// accepts too, and what the other accepts it refuses only for a reason that the
// other does not know, which is checked on its own.
func FuzzScan(f *testing.F) {
	for _, text := range []string{usualCall, `{"a":[1,-2.5e+7,true,null,"\ud83d\ude00\u0000"],"b":{"a":{}}}`, `{"a":1,"a":2}`, `"\ud800"`, "\xff", "[[[[", `{"\u0061":1,"a":1}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s scanner
		reject := s.scan(text, 0)
		valid := json.Valid(text)
		if reject == nil {
			if !valid || hasTwins(text) || depthOf(text) > MaxDepth || !utf8.Valid(text) {
				t.Fatalf("accepted %q", text)
			}
			return
		}
		switch reject.Reason {
		case ReasonInvalidJSON:
			if valid {
				t.Fatalf("%v, but encoding/json accepts %q", reject, text)
			}
		case ReasonDuplicateKey:
			if valid && !hasTwins(text) {
				t.Fatalf("%v, but there are none in %q", reject, text)
			}
		case ReasonTooDeep:
			if valid && depthOf(text) <= MaxDepth {
				t.Fatalf("%v, but it is not in %q", reject, text)
			}
		case ReasonInvalidUnicode:
			if valid && !strings.ContainsRune(decodedText(text), '\uFFFD') {
				t.Fatalf("%v, but encoding/json replaces nothing in %q", reject, text)
			}
		default:
			t.Fatal(reject)
		}
	})
}

// hasTwins says whether an object in valid text names a member twice.
func hasTwins(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return twins(d)
}

func twins(d *json.Decoder) bool {
	token, err := d.Token()
	if err != nil {
		return false
	}
	found := false
	switch token {
	case json.Delim('['):
		for d.More() {
			found = twins(d) || found
		}
	case json.Delim('{'):
		names := map[string]bool{}
		for d.More() {
			name, _ := d.Token()
			found = found || names[name.(string)]
			names[name.(string)] = true
			found = twins(d) || found
		}
	default:
		return false
	}
	d.Token()
	return found
}

func depthOf(text []byte) int {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	depth, deepest := 0, 0
	for {
		token, err := d.Token()
		if err != nil {
			return deepest
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
			deepest = max(deepest, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}

// decodedText returns all strings in a valid text, as encoding/json has them.
func decodedText(text []byte) string {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var b strings.Builder
	for {
		token, err := d.Token()
		if err == io.EOF || err != nil {
			return b.String()
		}
		if s, ok := token.(string); ok {
			b.WriteString(s)
		}
	}
}

// FuzzText holds strings against encoding/json: what is written is read back,
// by both.
func FuzzText(f *testing.F) {
	f.Add("plain")
	f.Add("\x00\"\\/\u2028é😀\x1f")
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "")
		quoted := appendQuoted(nil, text)
		var back string
		if err := json.Unmarshal(quoted, &back); err != nil || back != text {
			t.Fatalf("%q is written as %s: %q, %v", text, quoted, back, err)
		}
		theirs, _ := json.Marshal(text)
		for _, written := range [][]byte{quoted, theirs} {
			if got := unescaped(written[1 : len(written)-1]); got != text {
				t.Fatalf("%s is read as %q", written, got)
			}
		}
	})
}
