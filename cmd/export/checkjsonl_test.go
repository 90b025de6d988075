package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// exported returns the lines that range writes of 100 rows of one tenant, one of
// them rejected, and of some of another's.
func exported(t *testing.T) []string {
	t.Helper()
	a := prooftest.New()
	a.Line("audit.calls", 0).Segment(func(b *prooftest.Batch) {
		for range 99 {
			b.Call("acme")
		}
		b.Reject("acme", audit.ReasonInvalidJSON, []byte("{\n"))
		b.Call("other")
	})
	dir := t.TempDir()
	for key, body := range a.Objects() {
		path := filepath.Join(dir, filepath.FromSlash(key))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	if code, err := run(t.Context(), []string{"range", "--from", "2000-01-01", dir}, nil, &out, &errs); code != 0 || err != nil {
		t.Fatal(code, err, errs.String())
	}
	return strings.SplitAfter(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// Who deletes row 50 of an export, and swaps 60 and 61, is named by the lines
// alone: by the command, and by the program that docs/export-formats.md gives.
func TestLinesAreCheckedWithoutTheArchive(t *testing.T) {
	whole := exported(t)
	whole[len(whole)-1] += "\n"
	damaged := slices.Clone(whole)
	damaged[60], damaged[61] = damaged[61], damaged[60]
	damaged = slices.Delete(damaged, 50, 51)
	claims := slices.Clone(whole)
	claims[3] = strings.Replace(claims[3], `"$ledgerlake":`, `"$redaction":{},"$ledgerlake":`, 1)
	dir := t.TempDir()
	file := func(name string, lines []string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, bad, empty := file("good.jsonl", whole), file("bad.jsonl", damaged), file("empty.jsonl", nil)
	for _, c := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{good}, 0, []string{`log       "acme" in "audit.calls"/0: 100 rows, seq 0 to 99, last rowHash `, "checked   101 lines, 101 rows; of 101 the hash was computed again\nOK\n"}},
		{[]string{bad}, 1, []string{`bad.jsonl: line 51: "acme" in "audit.calls"/0, seq 51: seq 50, in front of it, is missing`, `seq 60: it stands behind seq 61: it is out of order`, "\nNOT OK\n"}},
		{[]string{"--partial", file("part.jsonl", append(slices.Clone(whole[:5]), whole[9:]...))}, 0, []string{"\nOK\n"}},
		{[]string{empty}, 3, []string{"NOT ALL could be checked"}},
		{[]string{"--strict", good}, 0, []string{"\nOK\n"}},
		{[]string{file("claims.jsonl", claims)}, 0, []string{"of 100 the hash was computed again; not of 1: ", "\nOK\n"}},
		{[]string{"--strict", filepath.Join(dir, "claims.jsonl")}, 3, []string{"NOT ALL could be checked"}},
		{[]string{filepath.Join(dir, "none")}, 2, nil},
		{nil, 2, nil},
		{[]string{"--what", good}, 2, nil},
		{[]string{"--help"}, 0, []string{"check-jsonl checks exported lines"}},
	} {
		var out, errs bytes.Buffer
		code, err := run(t.Context(), append([]string{"check-jsonl"}, c.args...), nil, &out, &errs)
		if code != c.code || (err != nil) != (c.code == 2) {
			t.Errorf("%q: exit %d, %v, want %d\n%s", c.args, code, err, c.code, out.String())
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q: no %q in\n%s", c.args, want, out.String())
			}
		}
	}
	var out bytes.Buffer
	if code, err := runCheckJSONL(call{args: []string{"--json", "-"}, stdout: &out}, strings.NewReader(strings.Join(damaged, ""))); code != 1 || err != nil {
		t.Error(code, err)
	}
	var report struct {
		OK         bool
		FaultCount int
		Faults     []struct{ Line, Seq int }
	}
	if err := json.Unmarshal(out.Bytes(), &report); err != nil || report.OK || report.FaultCount != 2 || report.Faults[0].Line != 51 {
		t.Errorf("%v, %+v", err, report)
	}
	t.Run("python", func(t *testing.T) { checkByScript(t, good, bad) })
}

// checkByScript runs the program of the page.
func checkByScript(t *testing.T, good, bad string) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	page, err := os.ReadFile("../../docs/export-formats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, _ := strings.Cut(string(page), "```python\nimport json, sys")
	script, _, _ = strings.Cut(script, "```")
	for path, want := range map[string]string{
		good: "acme in audit.calls/0: up to seq 99, rowHash ",
		bad:  "line 51: acme in audit.calls/0, seq 51: seq 50 to 50, in front of it, missing\nline 60: acme in audit.calls/0, seq 61: seq 60 to 60, in front of it, missing\nline 61: acme in audit.calls/0, seq 60: stands behind seq 61\n",
	} {
		out, err := exec.CommandContext(t.Context(), python, "-c", "import json, sys"+script, path).Output()
		if !strings.HasPrefix(string(out), want) || (err != nil) != (path == bad) {
			t.Errorf("%s: %v\n%s", path, err, out)
		}
	}
}
