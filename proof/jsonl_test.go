package proof

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// Lines that another implementation made, of a member named hash inside a value,
// spaces, and a lone surrogate.
const (
	foreignJSONL = `{"seq":1,"ts":"2026-05-28T20:26:40.000Z","kind":"ToolCall","args":{"hash":"x","n":1.50e3},"prevHash":"","hash":"322dd8a166ceb3dc99ee0565dc0034ba2bcb4dd9913a7f03322f062a0d05615e"}
{ "hash" : "d3d948b043740e0f828aa4861e3e50d4d96ea05af6607882dc80b2d2532d97fc", "prevHash":"322dd8a166ceb3dc99ee0565dc0034ba2bcb4dd9913a7f03322f062a0d05615e", "seq":2, "actor":"\u6771京\ud800" }
`
	foreignKeyedJSONL = `{"seq":1,"ts":"2026-05-28T20:26:40.000Z","kind":"ToolCall","args":{"hash":"x","n":1.50e3},"prevHash":"","hash":"95895a530d2e6183575351839646ba9eb5c58352a5b7ccc79a296b9531f7feb6"}
{ "hash" : "1bbcac0bdf8911e3b55092f2dfece87f97ea052cd4a7f1427e1d76c34040a045", "prevHash":"95895a530d2e6183575351839646ba9eb5c58352a5b7ccc79a296b9531f7feb6", "seq":2, "actor":"\u6771京\ud800" }
`
)

// jsonlText returns chained lines of the kinds given, from seq on, behind prev,
// and the last hash.
func jsonlText(t testing.TB, key []byte, prev string, seq int, kinds ...string) (text, last string) {
	t.Helper()
	for i, kind := range kinds {
		if kind == jsonlReset {
			prev = ""
		}
		line, err := SealJSONL(fmt.Appendf(nil, `{"seq":%d,"hash":"","kind":%q,"prevHash":%q,"args":[1,{"a":"b}"}]}`, seq+i, kind, prev), key)
		if err != nil {
			t.Fatal(err)
		}
		l, err := parseJSONL(line)
		if err != nil {
			t.Fatal(err)
		}
		prev = string(l.hash)
		text += string(line) + "\n"
	}
	return text, prev
}

func checkLines(t testing.TB, text string, key []byte) *JSONLFile {
	t.Helper()
	f, err := CheckJSONL("log.jsonl", strings.NewReader(text), key)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// say returns the five fields of a report as one line.
func (r *JSONLReport) say() string {
	seq, text := "null", ""
	if r.FirstBrokenSeq != nil {
		seq = fmt.Sprint(*r.FirstBrokenSeq)
	}
	if r.Error != nil {
		text = *r.Error
	}
	return strings.TrimSpace(fmt.Sprintf("%t %s %d %d %s", r.OK, seq, r.LineCount, r.ChainResetCount, text))
}

// What breaks a file is found where it begins, and is never taken for something
// else.
func TestJSONLFiles(t *testing.T) {
	secret := []byte("secret")
	plain, last := jsonlText(t, nil, "", 5, "ToolCall", "ToolCall", "LlmRequest")
	keyed, _ := jsonlText(t, secret, "", 5, "ToolCall", "ToolCall")
	lines := strings.SplitAfter(plain, "\n")
	reset, _ := jsonlText(t, nil, "", 8, "ChainReset", "ToolCall")
	behind, _ := jsonlText(t, nil, last, 8, "ToolCall")
	rotated, _ := jsonlText(t, nil, last, 8, "RotationAnchor", "ToolCall", "RotationMarker")
	noSeq, err := SealJSONL([]byte(`{"prevHash":"","hash":"","seq":"x"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text string
		key        []byte
		want       string
	}{
		{"by another program", foreignJSONL, nil, "true null 2 0"},
		{"by another program, keyed", foreignKeyedJSONL, secret, "true null 2 0"},
		{"keyed, read without the key", foreignKeyedJSONL, nil, "false 1 2 0 line 1: hash is not that of the line: it was changed, or it is keyed and needs its key"},
		{"read with another key", keyed, []byte("other"), "false 5 2 0 line 1: hash is not that of the line under this key: the line was changed, or the key is another one"},
		{"unkeyed, read with a key", plain, secret, "false 5 3 0 line 1: hash is right without a key: the line is not keyed, and was checked as keyed"},
		{"no lines", "", nil, "false null 0 0 the file has no lines: nothing could be verified"},
		{"whole", plain, nil, "true null 3 0"},
		{"no line feed at the end", plain[:len(plain)-1], nil, "false 7 3 0 line 3: the line is cut: it does not end in a line feed"},
		{"cut", plain[:len(plain)-20], nil, "false 7 3 0 line 3: the line is cut: it does not end in a line feed"},
		{"cut, and gone on with", plain[:len(plain)-20] + "\n" + behind, nil, "false 7 4 0 line 3: the line is not JSON"},
		{"cut, and reset", plain[:len(plain)-20] + "\n" + reset, nil, "false 7 5 1 line 3: the line is not JSON"},
		{"the first line gone", lines[1] + lines[2], nil, "false 6 2 0 line 1: the file begins behind"},
		{"a line gone", lines[0] + lines[2], nil, "false 7 2 0 line 2: prevHash is"},
		{"a line twice", lines[0] + lines[0] + lines[1], nil, "false 5 3 0 line 2: prevHash is"},
		{"lines swapped", lines[1] + lines[0] + lines[2], nil, "false 6 3 0 line 1: the file begins behind"},
		{"another file behind it", plain + plain, nil, "false 5 6 0 line 4: prevHash is"},
		{"a changed line", strings.Replace(plain, `"seq":6`, `"seq":9`, 1), nil, "false 9 3 0 line 2: hash is not that of the line"},
		{"a hash written otherwise", strings.ToUpper(last) + "", nil, "false 0 1 0 line 1: the line is cut"},
		{"a hash in capitals", strings.Replace(plain, last, strings.ToUpper(last), 1), nil, "false 7 3 0 line 3: hash is not"},
		{"a hash with an escape", strings.Replace(plain, last, fmt.Sprintf(`\u%04x`, last[0])+last[1:], 1), nil, "false 7 3 0 line 3: hash is not"},
		{"an empty line", lines[0] + "\n" + lines[1], nil, "false 6 3 0 line 2: the line is empty"},
		{"no object", "[]\n", nil, "false 0 1 0 line 1: the line is not a JSON object"},
		{"no hash", `{"prevHash":""}` + "\n", nil, `false 0 1 0 line 1: member "hash" is missing`},
		{"no prevHash", `{"seq":3,"hash":""}` + "\n", nil, `false 3 1 0 line 1: member "prevHash" is missing`},
		{"a hash that is a number", `{"prevHash":"","hash":1}` + "\n", nil, "false 0 1 0 line 1: hash is not a string"},
		{"a prevHash that is null", `{"prevHash":null,"hash":""}` + "\n", nil, "false 0 1 0 line 1: prevHash is not a string"},
		{"two hashes", `{"prevHash":"","hash":"","h\u0061sh":""}` + "\n", nil, `false 0 1 0 line 1: member "hash" stands twice`},
		{"bytes that are no text", "{\"a\":\"\xff\"}\n", nil, "false 0 1 0 line 1: the line is not valid UTF-8"},
		{"CR LF", strings.ReplaceAll(plain, "\n", "\r\n"), nil, "true null 3 0"},
		{"CR LF once", lines[0] + strings.ReplaceAll(lines[1], "\n", "\r\n") + lines[2], nil, "false 6 3 0 line 2: the line ends in CR LF"},
		{"LF once", strings.ReplaceAll(lines[0]+lines[1], "\n", "\r\n") + lines[2], nil, "false 7 3 0 line 3: the line ends in LF"},
		{"a reset", plain + reset, nil, "true null 5 1"},
		{"a reset that is none", plain + strings.Replace(reset, "ChainReset", "ChainResex", 1), nil, "false 8 5 0 line 4: hash is not"},
		{"rotated", rotated, nil, "true null 3 0"},
		{"two files as one", plain + rotated, nil, "true null 6 0"},
		{"no seq", string(noSeq) + "\n" + string(noSeq) + "\n", nil, "false 1 2 0 line 2: prevHash is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := checkLines(t, c.text, c.key)
			if got := f.say(); got != c.want && !(strings.HasPrefix(c.want, "false") && strings.HasPrefix(got, c.want)) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Any bit of a file changed, any bytes cut off its end but whole lines: the file
// is broken.
func TestAnyBitOfJSONLMatters(t *testing.T) {
	for _, key := range [][]byte{nil, []byte("secret")} {
		text, _ := jsonlText(t, key, "", 0, "ToolCall", "ChainReset", "ToolCall", "RotationMarker")
		for bit := range 8 * len(text) {
			bad := []byte(text)
			flip(bad, bit)
			if f := checkLines(t, string(bad), key); f.OK {
				t.Fatalf("bit %d of byte %d: %s", bit%8, bit/8, bad)
			}
		}
		for n := range len(text) {
			if f := checkLines(t, text[:n], key); f.OK != (n > 0 && text[n-1] == '\n') {
				t.Errorf("cut to %d bytes: %s", n, f.say())
			}
		}
	}
}

func flip(b []byte, bit int) { b[bit/8] ^= 1 << (bit % 8) }

// Files are one chain in whatever order they are given, or the set is broken
// although each of them is whole.
func TestJSONLSets(t *testing.T) {
	one, end1 := jsonlText(t, nil, "", 0, "ToolCall", "RotationMarker")
	two, end2 := jsonlText(t, nil, end1, 2, "RotationAnchor", "ToolCall", "RotationMarker")
	three, _ := jsonlText(t, nil, end2, 5, "RotationAnchor", "ToolCall")
	fork, _ := jsonlText(t, nil, end1, 2, "RotationAnchor", "LlmRequest", "ToolCall")
	reset, _ := jsonlText(t, nil, "", 5, "ChainReset", "ToolCall")
	files := map[string]string{
		"1": one, "2": two, "3": three, "fork": fork, "reset": reset, "empty": "",
		"bad2": strings.Replace(two, `"seq":3`, `"seq":4`, 1), "bad1": strings.Replace(one, `"seq":0`, `"seq":9`, 1),
		"short2": strings.Join(strings.SplitAfter(two, "\n")[:2], ""),
	}
	for _, c := range []struct {
		given, order string
		exit         int
		want         string
	}{
		{"1 2 3", "1 2 3", 0, "true null 7 0"},
		{"3 1 2", "1 2 3", 0, "true null 7 0"},
		{"3", "3", 0, "true null 2 0"},
		{"2", "2", 0, "true null 3 0"},
		{"2 3", "2 3", 4, "true null 5 0"},
		{"2 1", "1 2", 4, "true null 5 0"},
		{"1 3", "1 3", 1, "false 5 4 0 3 does not continue 1"},
		{"3 short2 1", "3 1 short2", 1, "false 0 6 0 1 does not continue 3"},
		{"1 2 3 fork", "1 2 3 fork", 1, "false 2 10 0 fork does not continue 3"},
		{"1 1 2", "1 2 1", 1, "false 0 7 0 1 does not continue 2"},
		{"3 bad2 1", "3 1 bad2", 1, "false 0 7 0 1 does not continue 3"},
		{"bad1 2 3", "bad1 2 3", 1, "false 9 7 0 bad1: line 1: hash is not that of the line"},
		{"reset 2 1", "1 2 reset", 4, "true null 7 1"},
		{"reset", "reset", 4, "true null 2 1"},
		{"1 2 3 empty", "1 2 3 empty", 3, "false null 7 0 empty: the file has no lines"},
		{"1 3 empty", "1 3 empty", 1, "false 5 4 0 3 does not continue 1"},
		{"", "", 3, "true null 0 0"},
	} {
		t.Run(c.given, func(t *testing.T) {
			var checked []*JSONLFile
			for _, name := range strings.Fields(c.given) {
				f := checkLines(t, files[name], nil)
				f.Name = name
				checked = append(checked, f)
			}
			s := CheckJSONLSet(checked, false)
			if got := s.Set.say(); got != c.want && !(strings.HasPrefix(c.want, "false") && strings.HasPrefix(got, c.want)) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if s.Exit != c.exit || strings.Join(s.Order, " ") != c.order {
				t.Errorf("exit %d, order %q, looks %q", s.Exit, s.Order, s.Looks)
			}
		})
	}
}

// Whatever of a rotated log is missing but its newest files shows in the set.
func TestAMissingFileShowsInTheSet(t *testing.T) {
	var files []*JSONLFile
	prev := ""
	for i := range 5 {
		kinds := []string{jsonlAnchor, "ToolCall", jsonlMarker}
		if i == 0 {
			kinds[0] = "ToolCall"
		}
		text, last := jsonlText(t, nil, prev, 3*i, kinds...)
		files, prev = append(files, checkLines(t, text, nil)), last
	}
	files[4].last.kind = "ToolCall" // the newest file is still open
	if s := CheckJSONLSet(files, false); s.Exit != 0 {
		t.Fatalf("exit %d: %s %q", s.Exit, s.Set.say(), s.Looks)
	}
	for i, want := range []int{4, 1, 1, 1, 4} {
		if s := CheckJSONLSet(slices.Delete(slices.Clone(files), i, i+1), false); s.Exit != want {
			t.Errorf("without file %d: exit %d, want %d", i, s.Exit, want)
		}
	}
}

// A line may be as long as the bound and not longer, and what is read at once
// does not matter.
func TestJSONLLinesOfAnyLength(t *testing.T) {
	const bound = 300_000
	for _, c := range []struct {
		length int
		want   string
	}{{65_535, "true null 2 0"}, {65_536, "true null 2 0"}, {bound, "true null 2 0"}, {bound + 1, "false 1 2 0 line 1: the line is too long: more than 300000 bytes"}, {3 * bound, "false 1 2 0 line 1: the line is too long: more than 300000 bytes"}} {
		short, err := SealJSONL([]byte(`{"seq":1,"prevHash":"","hash":""}`), nil)
		if err != nil {
			t.Fatal(err)
		}
		pad := strings.Repeat("x", c.length-len(short)-len(`,"":""`))
		line, err := SealJSONL([]byte(`{"seq":1,"prevHash":"","hash":"","":"`+pad+`"}`), nil)
		if err != nil || len(line) != c.length {
			t.Fatal(len(line), err)
		}
		l, err := parseJSONL(line)
		if err != nil {
			t.Fatal(err)
		}
		next, _ := jsonlText(t, nil, string(l.hash), 2, "ToolCall")
		for _, r := range []io.Reader{strings.NewReader(string(line) + "\n" + next), iotest.HalfReader(strings.NewReader(string(line) + "\n" + next))} {
			f, err := checkJSONL("x", r, nil, bound)
			if err != nil {
				t.Fatal(err)
			}
			want := c.want
			if strings.HasPrefix(want, "false 1") {
				want = "false 0" + want[len("false 1"):] // a line that is not read has no seq
			}
			if f.say() != want {
				t.Errorf("%d bytes: %s, want %s", c.length, f.say(), want)
			}
		}
	}
}

// A file that cannot be read to its end has no verdict.
func TestJSONLThatCannotBeRead(t *testing.T) {
	down := errors.New("disk is down")
	r := io.MultiReader(strings.NewReader(foreignJSONL), iotest.ErrReader(down))
	if f, err := CheckJSONL("x", r, nil); !errors.Is(err, down) || f != nil {
		t.Errorf("%v, %v", f, err)
	}
}

// FuzzJSONL: the check never panics, and a file that it takes is, line by line,
// what sealing makes of its lines.
func FuzzJSONL(f *testing.F) {
	two, _ := jsonlText(f, nil, "", 0, "ToolCall", "ChainReset", "RotationMarker")
	f.Add([]byte(foreignJSONL), []byte(nil))
	f.Add([]byte(foreignKeyedJSONL), []byte("secret"))
	f.Add([]byte(two), []byte(nil))
	f.Add([]byte(" {\t} \r\n[0]\n"), []byte("k"))
	f.Fuzz(func(t *testing.T, text, key []byte) {
		if len(key) == 0 {
			key = nil
		}
		file, err := checkJSONL("x", bytes.NewReader(text), key, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if !file.OK {
			return
		}
		for line := range bytes.Lines(text) {
			line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
			l, err := parseJSONL(line)
			if err != nil {
				t.Fatal(err)
			}
			open := bytes.Join([][]byte{l.before, l.rest}, nil)
			if sealed, err := SealJSONL(open, key); err != nil || !bytes.Equal(sealed, line) {
				t.Fatalf("%q is sealed as %q, %v", line, sealed, err)
			}
		}
	})
}
