//go:build it

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/it/parts"
)

// A run measures all of it, on few rows, and puts its table into a page: each row
// has a number of ours, and whatever stands beside one is said.
func TestEverythingIsMeasured(t *testing.T) {
	t.Chdir("../..") // as it/run.sh starts it
	page := filepath.Join(t.TempDir(), "benchmarks.md")
	if err := os.WriteFile(page, []byte("before\n"+begins+"old\n"+ends+"after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := run(t.Context(), []string{"-bin", filepath.Join(parts.Build(), "bin"), "-python", parts.Python("LEDGERLAKE_IT_PYTHON15", "py15"), "-rows", "1000", "-write", page}, &out)
	t.Log(out.String())
	if err != nil {
		t.Fatal(err)
	}
	body, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(body); !strings.HasPrefix(s, "before\n"+begins) || !strings.HasSuffix(s, ends+"after\n") || strings.Contains(s, "old") {
		t.Errorf("the page is now\n%s", s)
	}
	var found []string
	for line := range strings.Lines(string(body)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if len(cells) != 5 || cells[0] == " what" || strings.Contains(cells[0], "---") {
			continue
		}
		found = append(found, cells[0])
		if ours := strings.TrimSpace(cells[1]); ours == "" || ours == "0" || strings.HasPrefix(ours, "0 ") {
			t.Errorf("%s: measured %q", cells[0], ours)
		}
		if strings.TrimSpace(cells[2]) != "" && strings.TrimSpace(cells[4]) == "" {
			t.Errorf("%s: nothing says what %s is", cells[0], cells[2])
		}
	}
	for _, part := range []string{
		"32 rows or 50 ms, never more", "growing while a PUT is under way", "20,000 rows or 2 s", "from append to durable", "the longest", "peak memory of ingest", "peak memory of verify",
		"verify, 1,000 rows", "compact, 2,000 rows", "bytes a row, data files", "look-up of a turn", "look-up of a record", "look-up of a session",
	} {
		if !strings.Contains(strings.Join(found, "\n"), part) {
			t.Errorf("the table has no row of %q", part)
		}
	}
}

// A page without a place for the table is not written.
func TestPageWithoutPlace(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	for _, body := range []string{"", begins, ends + begins} {
		if err := os.WriteFile(page, []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := new(table).replace(page); err == nil {
			t.Errorf("%q: no error", body)
		}
		if after, err := os.ReadFile(page); err != nil || string(after) != body {
			t.Errorf("%q became %q, %v", body, after, err)
		}
	}
}

// Flags that cannot be meant are refused before anything starts.
func TestBadFlags(t *testing.T) {
	for _, args := range [][]string{{"-rows", "10"}, {"-rows", "5000", "-short"}, {"more"}, {"-speed", "1"}} {
		if err := run(t.Context(), args, new(strings.Builder)); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}
