package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/proof"
)

// jsonlFile writes chained lines of the kinds given behind prev, and returns the
// file and the last hash.
func jsonlFile(t *testing.T, key []byte, prev string, kinds ...string) (name, last string) {
	t.Helper()
	var text []byte
	for i, kind := range kinds {
		line, err := proof.SealJSONL(fmt.Appendf(nil, `{"seq":%d,"kind":%q,"prevHash":%q,"hash":""}`, i, kind, prev), key)
		if err != nil {
			t.Fatal(err)
		}
		var l struct{ Hash string }
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		prev = l.Hash
		text = append(append(text, line...), '\n')
	}
	name = filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name, prev
}

// Each exit code has its way, and the last line says what it is.
func TestJSONLExits(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	key, other, noKey, empty := write("key", "secret\n"), write("other", "secreT"), write("none", "\n"), write("empty", "")
	first, end := jsonlFile(t, nil, "", "ToolCall", "RotationMarker")
	second, _ := jsonlFile(t, nil, end, "RotationAnchor", "ToolCall")
	keyed, _ := jsonlFile(t, []byte("secret"), "", "ToolCall")
	reset, _ := jsonlFile(t, nil, "", "ChainReset")
	for _, c := range []struct {
		args []string
		exit int
		want string // in what is printed, or in the error
	}{
		{[]string{second, first}, 0, "OK: 4 lines continue each other by SHA-256"},
		{[]string{first}, 0, "goes on in a file"},
		{[]string{"--key-file", key, keyed}, 0, "OK: 1 line continue each other by HMAC-SHA256"},
		{[]string{keyed, "--key-file=" + key}, 0, "OK"},
		{[]string{reset}, 4, "1 chain reset"},
		{[]string{empty}, 3, "INCOMPLETE"},
		{[]string{keyed}, 1, "needs its key"},
		{[]string{"--key-file", other, keyed}, 1, "the key is another one"},
		{[]string{"--key-file", key, first}, 1, "FAULT"},
		{[]string{first, keyed}, 1, "FAULT"},
		{[]string{"--key-file", noKey, keyed}, 2, "the key is empty"},
		{[]string{filepath.Join(dir, "nowhere")}, 2, "nowhere"},
		{[]string{dir}, 2, "is a directory"},
		{nil, 2, "want a file"},
		{[]string{"--nonsense", first}, 2, "not understood"},
		{[]string{"--help"}, 0, "--key-file FILE"},
	} {
		var out bytes.Buffer
		exit, err := runJSONL(c.args, strings.NewReader(""), &out)
		if said := out.String() + fmt.Sprint(err); exit != c.exit || !strings.Contains(said, c.want) {
			t.Errorf("jsonl %q: exit %d, want %d with %q:\n%s", c.args, exit, c.exit, c.want, said)
		}
	}
}

// --json gives the five fields by the names that other checkers use, for each
// file and for the set.
func TestJSONLAsJSON(t *testing.T) {
	file, _ := jsonlFile(t, nil, "", "ToolCall", "ToolCall")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	exit, err := runJSONL([]string{"--json", "-"}, bytes.NewReader(text[:len(text)-1]), &out)
	if exit != 1 || err != nil {
		t.Fatal(exit, err)
	}
	const five = `"ok":false,"firstBrokenSeq":1,"lineCount":2,"chainResetCount":0,"error":"`
	var got struct {
		Files []json.RawMessage
		Set   json.RawMessage
		Exit  int
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for want, raw := range map[string]json.RawMessage{`{"file":"stdin",` + five + "line 2: ": got.Files[0], "{" + five + "stdin: line 2: ": got.Set} {
		var flat bytes.Buffer
		if err := json.Compact(&flat, raw); err != nil || !strings.HasPrefix(flat.String(), want) {
			t.Errorf("got  %s\nwant %s", flat.String(), want)
		}
	}
	if got.Exit != 1 {
		t.Errorf("exit %d", got.Exit)
	}
}
