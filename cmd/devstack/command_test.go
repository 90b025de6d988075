package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/internal/devstack"
)

// Arguments that cannot be meant are refused with one line, before anything is
// started or written, and with exit code 2.
func TestBadUse(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{
		{},
		{"upp"},
		{"up", "--prot", "1"},
		{"up", "now"},
		{"up", "--partitions", "0"},
		{"up", "--s3-port", "x"},
		{"produce", "--rows", "-1"},
		{"produce", "--tenants", "0"},
		{"produce", "--broken", "1.5"},
		{"produce", "--repeats", "NaN"},
		{"produce", "--broken", "0.6", "--repeats", "0.6"},
		{"produce", "--rate", "-1"},
		{"produce", "--start", "yesterday"},
		{"demo", "--rows", "10"},
		{"demo", "--bin", "nowhere"},
		{"bench", "--rows", "0"},
		{"bench", "--bin", "nowhere"},
		{"bench", "--courses", "brisk"},
	} {
		err := run(t.Context(), args, new(bytes.Buffer))
		if code := exitCode(err); code != exitBadUse {
			t.Errorf("%q: exit code %d (%v), want %d", args, code, err, exitBadUse)
		}
		if err != nil && strings.Contains(strings.TrimSpace(err.Error()), "\n") {
			t.Errorf("%q: more than one line: %v", args, err)
		}
	}
	if left, _ := os.ReadDir("."); len(left) > 0 {
		t.Errorf("something was written: %v", left)
	}
}

// Exit codes tell apart what did not start and what came out wrong.
func TestExitCodes(t *testing.T) {
	for want, errs := range map[int][]error{
		exitDone:   {nil},
		exitWrong:  {errors.New("verify ended with 1"), errEnded},
		exitBadUse: {errUsage, errBadFlag, errCannotRun, devstack.ErrPortTaken, devstack.ErrInUse, devstack.ErrPartitions},
	} {
		for _, err := range errs {
			if err != nil {
				err = fmt.Errorf("demo: %w", err)
			}
			if got := exitCode(err); got != want {
				t.Errorf("%v: %d, want %d", err, got, want)
			}
		}
	}
}

// Help is an answer, not an error, and names each flag.
func TestHelp(t *testing.T) {
	for args, want := range map[string][]string{
		"--help": {"demo", "up", "produce", "bench"}, "-h": {"demo"}, "help": {"demo"},
		"up --help":      {"--dir", "--kafka-port", "--s3-port", "--bucket", "--partitions"},
		"produce -h":     {"--tenants", "--rows", "--rate", "--brokers", "--topic", "--seed", "--broken", "--conflicts"},
		"demo --help":    {"--dir", "--bin", "--rows"},
		"bench --help":   {"--rows", "--partitions", "--bin", "--courses", "--json"},
		"version":        {program},
		"produce --help": {"duplicates"},
	} {
		var out bytes.Buffer
		if err := run(t.Context(), strings.Fields(args), &out); err != nil {
			t.Errorf("%s: %v", args, err)
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s does not say %q:\n%s", args, w, &out)
			}
		}
	}
}

// The demo replaces the folder of an earlier demo, and no other.
func TestFreshFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	for range 2 {
		if err := freshFolder(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "old"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := freshFolder(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "old")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old demo's file is still there: %v", err)
	}

	mine := t.TempDir()
	keep := filepath.Join(mine, "thesis.txt")
	if err := os.WriteFile(keep, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := freshFolder(mine); !errors.Is(err, errCannotRun) {
		t.Errorf("a folder with other files: %v", err)
	}
	if err := freshFolder(keep); !errors.Is(err, errCannotRun) {
		t.Errorf("a file: %v", err)
	}
	if _, err := os.Stat(keep); err != nil {
		t.Errorf("the file is gone: %v", err)
	}
}

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 123456: "123,456", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %s, want %s", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1500: "1.5 KB", 2_340_000: "2.3 MB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %s, want %s", n, got, want)
		}
	}
}

// A tree shows of a long folder its ends, and nothing that the store keeps for
// itself.
func TestTree(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"ledgerlake.json", ".sgwtmp/x", "log/a/0", "log/a/1", "log/a/2", "log/a/3", "log/b/0", "log/b/1"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("12345"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var got bytes.Buffer
	if err := drawTree(&got, "data/audit", dir); err != nil {
		t.Fatal(err)
	}
	const want = `data/audit
├── ledgerlake.json  5 B
└── log/
    ├── a/
    │   ├── 0  5 B
    │   ├── … 2 more
    │   └── 3  5 B
    └── b/
        ├── 0  5 B
        └── 1  5 B
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &got, want)
	}
}

// An archive that misses what was sent, or has more, is told from one that
// fits, whichever count is off.
func TestTallyFindsEachDifference(t *testing.T) {
	s := &sent{Records: 100, Good: 90, Repeats: 4, Broken: 5, Conflicts: 1}
	fits := tally{Offsets: 100, Rows: 96, Rejected: 6, Duplicates: 4}
	if err := fits.check(s); err != nil {
		t.Errorf("one that fits: %v", err)
	}
	for what, spoil := range map[string]func(*tally){
		"offsets": func(t *tally) { t.Offsets-- }, "rows": func(t *tally) { t.Rows++ }, "rejected": func(t *tally) { t.Rejected-- },
		"duplicates": func(t *tally) { t.Duplicates++ }, "made": func(t *tally) { t.Made++ }, "gaps": func(t *tally) { t.Gaps++ },
	} {
		spoilt := fits
		spoil(&spoilt)
		if err := spoilt.check(s); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s off by one: %v", what, err)
		}
	}
}
