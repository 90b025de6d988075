package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/config"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// example returns an archive with two lines, one compacted: rows that were erased,
// that are to be, that were rejected, and a subagent's.
func example() (*prooftest.Archive, *prooftest.Line) {
	a := prooftest.New()
	one, two, governs := a.Line("audit.calls", 0), a.Line("audit.calls", 1), a.Line(audit.ControlTopic, 0)
	one.Segment(func(b *prooftest.Batch) {
		for range 5 {
			b.Call("acme")
		}
		b.Call("globex")
		b.Reject("acme", audit.ReasonInvalidJSON, []byte(`{"userId":"user-1003"`))
	})
	one.Anchor()
	one.Compact(prooftest.Compaction{Watermark: 1, Change: func(row *chain.Row) {
		if row.TenantID.S == "acme" && row.Seq.N == 1 {
			prooftest.Erase(row, prooftest.OrderID(1))
		}
	}})
	one.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	two.Segment(func(b *prooftest.Batch) {
		b.Row("acme", func(r *audit.Record) {
			r.Kind, r.RedactionPolicy, r.CreatedAt = audit.Str(audit.KindCall), audit.Str(audit.PolicyNone), r.KafkaTimestamp
			r.RecordID, r.SessionID, r.TurnID = audit.Str("01KBCDEFGHJKMNPQRSTV900000"), audit.Str("sess-0"), audit.Str("turn-of-a-subagent")
			r.ParentTurnID, r.SubagentDepth, r.SeqWithinTurn = audit.Str("turn-0"), audit.I64(1), audit.I64(0)
			r.StageID, r.ModelID, r.Status = audit.Str("synthesize"), audit.Str("model-b"), audit.Str("ok")
			r.Slots[audit.SlotPrompts] = []byte(`{"completion":"done"}`)
		})
	})
	governs.Segment(func(b *prooftest.Batch) {
		b.Order("acme", audit.KindRedaction, prooftest.OrderID(2), prooftest.Redaction(map[string]any{"recordId": "01KBCDEFGHJKMNPQRSTV000003"}, []string{"decision"}))
	})
	return a, one
}

func lay(t testing.TB, objects map[string][]byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for key, body := range objects {
		path := filepath.Join(dir, filepath.FromSlash(key))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, body, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// do runs the command.
func do(environ []string, args ...string) (code int, stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	code, err = run(context.Background(), args, environ, &out, &errs)
	return code, out.String(), errs.String(), err
}

// Each command, as a person meets it.
func TestQueriesTranscript(t *testing.T) {
	a, _ := example()
	dir := lay(t, a.Objects())
	var b strings.Builder
	for _, args := range [][]string{
		{"turn", "--tenant", "acme", "--turn", "no-such-turn"},
		{"turn", "--tenant", "nobody", "--turn", "turn-0"},
		{"turn", "--tenant", "acme", "--turn", "turn-0", "--format", "table"},
		{"turn", "--tenant", "acme", "--turn", "turn-0", "--session", "another", "--format", "table"},
		{"session", "--tenant", "acme", "--session", "sess-0", "--limit", "2", "--format", "table"},
		{"session", "--tenant", "acme", "--session", "sess-0", "--limit", "2", "--before", "01kbcdefghjkmnpqrstv000007", "--format", "table"},
		{"range", "--tenant", "acme", "--from", "2026-05-28", "--to", "2026-05-29", "--format", "csv", "--columns", "seq,kind,turn_id,redaction_id"},
		{"range", "--from", "2026-05-29", "--format", "csv"},
		{"record", "01KBCDEFGHJKMNPQRSTV000002", "--bare"},
		{"record", "--tenant", "acme", "--seq", "1", "--topic", "audit.calls", "--partition", "0"},
		{"record", "01KBCDEFGHJKMNPQRSTV000003", "--bare"},
		{"record", "01KBCDEFGHJKMNPQRSTV999999"},
		{"subject", "--user", "user-1003", "--format", "table"},
		{"subject", "--user", "nobody-7"},
		{"replay", "--tenant", "acme", "--turn", "turn-of-a-subagent"},
		{"replay", "--tenant", "acme", "--decision", "none"},
	} {
		code, out, errs, err := do(nil, append(slices.Clone(args), dir)...)
		fmt.Fprintf(&b, "$ ledgerlake-export %s ./archive\n%s", strings.Join(args, " "), out)
		for line := range strings.Lines(errs) {
			b.WriteString("2> " + line)
		}
		if err != nil {
			fmt.Fprintf(&b, "2> ledgerlake-export: %v\n", err)
		}
		fmt.Fprintf(&b, "[exit %d]\n\n", code)
	}
	golden(t, "testdata/queries.txt", strings.ReplaceAll(b.String(), dir, "./archive"))
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is another one; -update writes it. Now:\n%s", name, got)
	}
}

// --cost says what a query took, apart for what is not compacted.
func TestCost(t *testing.T) {
	a, _ := example()
	code, _, errs, err := do(nil, "turn", "--tenant", "acme", "--turn", "turn-0", "--cost", lay(t, a.Objects()))
	want := regexp.MustCompile(`^ledgerlake-export: \d+ GETs of \d+ bytes, \d+ listings; \d+ GETs of \d+ bytes are of segments, which are not compacted yet\n$`)
	if lines := strings.SplitAfter(errs, "\n"); code != 0 || err != nil || len(lines) != 3 || !want.MatchString(lines[1]) {
		t.Errorf("exit %d, %v, %q", code, err, errs)
	}
}

// What cannot run is exit 2 and an error of one line, with nothing on stdout; what
// is wrong with arguments is said before anything is read.
func TestQueriesThatCannotRun(t *testing.T) {
	a, _ := example()
	dir := lay(t, a.Objects())
	file := filepath.Join(t.TempDir(), "no", "such", "folder", "rows")
	stale := filepath.Join(t.TempDir(), "rows.parquet")
	if err := os.WriteFile(filepath.Join(filepath.Dir(stale), "rows.2.parquet"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for says, args := range map[string][]string{
		"no command":                       {},
		`no command "trun"`:                {"trun"},
		"want --tenant and --turn":         {"turn", "--tenant", "acme", dir},
		"want --tenant and --turn; ":       {"turn", "--turn", "t", dir},
		"got 0":                            {"turn", "--tenant", "acme", "--turn", "t"},
		"got 2":                            {"turn", "--tenant", "acme", "--turn", "t", dir, dir},
		"flag provided but not defined":    {"turn", "--tennant", "acme", "--turn", "t", dir},
		"unknown format":                   {"turn", "--tenant", "acme", "--turn", "t", "--format", "xml", dir},
		"--columns is for csv and table":   {"turn", "--tenant", "acme", "--turn", "t", "--columns", "seq", dir},
		"--bare is for":                    {"turn", "--tenant", "acme", "--turn", "t", "--format", "csv", "--bare", dir},
		"--columns: ":                      {"turn", "--tenant", "acme", "--turn", "t", "--format", "csv", "--columns", "sequence", dir},
		"--chain-key is for chained":       {"turn", "--tenant", "acme", "--turn", "t", "--chain-key", dir, dir},
		"want --tenant and --session":      {"session", "--tenant", "acme", dir},
		"--limit: want 1 or more":          {"session", "--tenant", "acme", "--session", "s", "--limit", "0", dir},
		"--before: want a recordId":        {"session", "--tenant", "acme", "--session", "s", "--before", "yesterday", dir},
		"want --from, --to or both":        {"range", dir},
		"is not after":                     {"range", "--from", "2026-05-29", "--to", "2026-05-29", dir},
		"want a time such as":              {"range", "--from", "May", dir},
		"--chunk-size: want 1 or more":     {"range", "--from", "2026-05-29", "--chunk-size", "0", dir},
		"want a record id, or --seq":       {"record"},
		"is no record id":                  {"record", "turn-0", dir},
		"give --tenant too":                {"record", "--seq", "1", dir},
		"go with --seq":                    {"record", "--topic", "t", "01KBCDEFGHJKMNPQRSTV000002", dir},
		"which is 0 or more":               {"record", "--tenant", "acme", "--seq", "-1", dir},
		"want --user":                      {"subject", dir},
		"want --tenant, and --turn or":     {"replay", "--tenant", "acme", dir},
		"--turn or --decision":             {"replay", "--tenant", "acme", "--turn", "t", "--decision", "d", dir},
		"want a size of 1MiB or more":      {"subject", "--user", "u", "--memory", "1", dir},
		"no archive is there":              {"subject", "--user", "u", t.TempDir()},
		"no such file":                     {"subject", "--user", "u", filepath.Join(dir, "nowhere")},
		"want s3://BUCKET":                 {"subject", "--user", "u", "ftp://x/y"},
		"neither a vkey nor a file":        {"subject", "--user", "u", "--key", "x", dir},
		"that is a private key":            {"subject", "--user", "u", "--key", "PRIVATE+KEY+x", dir},
		"no such file or directory":        {"subject", "--user", "u", "--output", file, dir},
		"--output: want the name of a":     {"subject", "--user", "u", "--output", "", dir},
		"of an earlier export that had":    {"subject", "--user", "u", "--format", "parquet", "--output", stale, dir},
		"want the name of a file, or -":    {"subject", "--user", "u", "--output", dir, dir},
		"--to 0001-01-01T00:00:00Z is not": {"range", "--to", "0001-01-01", dir},
		"--master-key: open /no/such/file": {"subject", "--user", "u", "--master-key", "/no/such/file", dir},
	} {
		code, out, errs, err := do(nil, args...)
		if code != exitCannotRun || err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") || out != "" || errs != "" {
			t.Errorf("%q: exit %d, %v, stdout %q, stderr %q", args, code, err, out, errs)
		}
	}
}

// The first of all times is a bound like any other.
func TestARangeFromTheFirstTime(t *testing.T) {
	a, _ := example()
	code, out, _, err := do(nil, "range", "--from", "0001-01-01", lay(t, a.Objects()))
	if code != 0 || err != nil || out == "" {
		t.Errorf("exit %d, %v, %q", code, err, out)
	}
}

// Every command has a help that shows how it is called, and what its flags do.
func TestHelp(t *testing.T) {
	for _, name := range []string{"turn", "session", "range", "record", "subject", "replay"} {
		code, out, errs, err := do(nil, name, "--help")
		if code != 0 || err != nil || errs != "" || !strings.HasPrefix(out, "ledgerlake-export "+name+" ") {
			t.Errorf("%s: exit %d, %v, %q", name, code, err, errs)
		}
		for _, has := range []string{"\n  ledgerlake-export " + name + " ", "  --tenant NAME", "  --key VKEY|FILE", "  --cost", "Exit codes:", "--s3.region"} {
			if !strings.Contains(out, has) {
				t.Errorf("%s: no %q in its help", name, has)
			}
		}
		for line := range strings.Lines(out) {
			if len(line) > 125 && !strings.Contains(line, "://") {
				t.Errorf("%s: a long line: %s", name, line)
			}
		}
		if _, out, _, _ := do(nil, "--help"); !strings.Contains(out, "\n  "+name+" ") {
			t.Errorf("%s: not in the help of the program", name)
		}
	}
}

// What is stored and does not fit together is exit 1, and the object is named; the
// rows of other logs come.
func TestDamageIsNamed(t *testing.T) {
	for name, damage := range map[string]func(l *prooftest.Line, objects map[string][]byte) string{
		"a segment that was changed": func(l *prooftest.Line, objects map[string][]byte) string {
			s := l.Segments[1]
			s.Rows[0].Status = audit.Str("changed")
			s.Encode()
			objects[l.Key(1)] = s.Body
			return l.Key(1)
		},
		"a segment that is cut short": func(l *prooftest.Line, objects map[string][]byte) string {
			objects[l.Key(1)] = objects[l.Key(1)][:1000]
			return l.Key(1)
		},
		"a data file that is gone": func(_ *prooftest.Line, objects map[string][]byte) string {
			for key := range objects {
				if strings.HasPrefix(key, archive.DataPrefix+"acme/") {
					delete(objects, key)
					return key
				}
			}
			return ""
		},
		"a part of the catalog that is another": func(l *prooftest.Line, objects map[string][]byte) string {
			for key := range objects {
				if strings.HasPrefix(key, archive.CatalogPrefix(l.Line)+"part/") {
					objects[key] = []byte(`{"files":[]}`)
					return key
				}
			}
			return ""
		},
	} {
		a, l := example()
		objects := a.Objects()
		key := damage(l, objects)
		dir := lay(t, objects)
		for _, args := range [][]string{
			{"range", "--from", "2026-01-01"},
			{"session", "--tenant", "acme", "--session", "sess-0"},
			{"replay", "--tenant", "acme", "--turn", "turn-0"},
		} {
			code, out, errs, err := do(nil, append(args, dir)...)
			if code != exitTampered || err != nil || !strings.Contains(errs, key) || !strings.Contains(out, `"turn-of-a-subagent"`) {
				t.Errorf("%s: %s: exit %d, %v, %q, %d bytes", name, args[0], code, err, errs, len(out))
			}
		}
	}
}

// The archive, and how its store is reached, may come from the environment and
// from a file.
func TestTheArchiveComesFromSettings(t *testing.T) {
	_, _, _, err := do([]string{"LEDGERLAKE_BUCKET=s3://bucket/prefix?endpoint=nonsense"}, "subject", "--user", "u")
	if err == nil || strings.Contains(err.Error(), "got 0") {
		t.Errorf("by the environment: %v", err)
	}
	file := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(file, []byte("bucket: s3://bucket/prefix?endpoint=nonsense\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err = do(nil, "subject", "--user", "u", "--config", file); err == nil || strings.Contains(err.Error(), "got 0") {
		t.Errorf("by a file: %v", err)
	}
	_, _, _, err = do([]string{"LEDGERLAKE_BUKET=s3://bucket"}, "subject", "--user", "u", ".")
	var fault *config.Error
	if !errors.As(err, &fault) {
		t.Errorf("an unknown variable: %v", err)
	}
}

// A file is there whole or not at all, and nothing else is left beside it.
func TestOutputFiles(t *testing.T) {
	a, _ := example()
	dir, out := lay(t, a.Objects()), t.TempDir()
	file := filepath.Join(out, "rows.csv")
	if code, stdout, errs, err := do(nil, "range", "--from", "2026-01-01", "--format", "csv", "--output", file, dir); code != 0 || err != nil || stdout != "" {
		t.Fatal(code, err, errs)
	}
	body, err := os.ReadFile(file)
	if err != nil || strings.Count(string(body), "\r\n") != 11 {
		t.Errorf("%v:\n%s", err, body)
	}
	chained := filepath.Join(out, "rows.jsonl")
	if code, _, errs, err := do(nil, "range", "--from", "2026-01-01", "--format", "chained", "--file-size", "5KiB", "--output", chained, dir); code != 0 || err != nil {
		t.Fatal(code, err, errs)
	}
	entries, err := os.ReadDir(out)
	var files []string
	for _, e := range entries {
		files = append(files, e.Name())
	}
	if err != nil || len(files) < 3 || files[0] != "rows.2.jsonl" || slices.ContainsFunc(files, func(f string) bool { return !strings.HasPrefix(f, "rows.") }) {
		t.Errorf("%q, %v", files, err)
	}
}

// Where the newest segment of a line is gone that an anchor covers, no question to
// the tenant whose rows it had is answered as if it were whole; others are.
func TestAMissingEndIsSaid(t *testing.T) {
	a, one := example()
	one.Segment(func(b *prooftest.Batch) { b.Call("acme") })
	one.Anchor()
	objects := a.Objects()
	delete(objects, one.Key(2))
	dir := lay(t, objects)
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{"range", "--from", "2026-01-01"}, exitTampered},
		{[]string{"range", "--from", "2026-01-01", "--tenant", "acme"}, exitTampered},
		{[]string{"range", "--from", "2026-01-01", "--tenant", "globex"}, exitDone},
		{[]string{"session", "--session", "sess-0", "--tenant", "acme"}, exitTampered},
		{[]string{"subject", "--user", "user-1000", "--tenant", "acme"}, exitTampered},
		{[]string{"turn", "--turn", "turn-0", "--tenant", "globex"}, exitDone},
		{[]string{"turn", "--turn", "turn-0", "--tenant", "acme"}, exitTampered},
		{[]string{"record", "--seq", "7", "--tenant", "acme"}, exitTampered},
		{[]string{"replay", "--turn", "turn-0", "--tenant", "acme"}, exitTampered},
	} {
		var stdout, stderr bytes.Buffer
		code, err := run(t.Context(), append(c.args, dir), nil, &stdout, &stderr)
		said := strings.Contains(stderr.String(), `the log of tenant "acme" ends at seq 7, and anchor 1 (of 2026-`)
		if code != c.code || err != nil || said != (c.code == exitTampered) {
			t.Errorf("%v: exit %d, %v; %s", c.args, code, err, &stderr)
		}
	}
}
