//go:build it

package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// export runs ledgerlake-export on the archive of the stage, or, with no target, on
// what args name.
func (s *stage) export(want int, args ...string) string {
	s.Helper()
	cmd := exec.CommandContext(s.Context(), parts.Binary("ledgerlake-export"), args...)
	cmd.Env = parts.Environ(s.env)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != want {
		s.Fatalf("export %q: exit %d, want %d: %v\n%s%s", args, cmd.ProcessState.ExitCode(), want, err, &stdout, &stderr)
	}
	return stdout.String()
}

// A copy of the records in a SIEM must show by itself that one is missing, and that
// two were swapped: without the bucket, and without whoever made the copy.
func TestACopyShowsWhatIsMissing(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.produce(topic, "acme", calls("acme", 0, 100)...)
	s.settle(oracle.Proved)
	lines := strings.SplitAfter(strings.TrimSuffix(s.export(0, "range", "--from", "2000-01-01", s.bucket()), "\n"), "\n")
	if len(lines) != 100 {
		t.Fatalf("%d lines", len(lines))
	}
	lines[99] += "\n"
	for i, line := range lines {
		var row struct {
			LedgerLake struct {
				Tenant, Topic, TopicID, PrevHash, RowHash string
				Seq, Offset                               *int64
			} `json:"$ledgerlake"`
		}
		s.must(json.Unmarshal([]byte(line), &row))
		if l := row.LedgerLake; l.Tenant != "acme" || l.Topic != topic || l.TopicID == "" || l.Seq == nil || *l.Seq != int64(i) || l.Offset == nil || *l.Offset != int64(i) || len(l.PrevHash) != 64 || len(l.RowHash) != 64 {
			t.Fatalf("line %d does not say where it stands: %s", i+1, line)
		}
	}
	file := func(name string, lines []string) string {
		path := filepath.Join(s.dir, name)
		s.must(os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600))
		return path
	}
	if out := s.export(0, "check-jsonl", file("whole.jsonl", lines)); !strings.Contains(out, "of 100 the hash was computed again\nOK\n") {
		t.Errorf("the whole copy: %s", out)
	}
	damaged := slices.Clone(lines)
	damaged[60], damaged[61] = damaged[61], damaged[60]
	damaged = slices.Delete(damaged, 50, 51)
	out := s.export(1, "check-jsonl", file("damaged.jsonl", damaged))
	for _, want := range []string{"seq 51: seq 50, in front of it, is missing", "seq 60: it stands behind seq 61: it is out of order"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if n := strings.Count(out, "fault "); n != 2 {
		t.Errorf("%d faults: %s", n, out)
	}
}

// hostileCells are texts that a spreadsheet would run, or that break rows of
// readers which split at commas or line breaks.
var hostileCells = []string{
	"=cmd|' /C calc'!A0", "+1", "-5", "@x", "\t=1", "\r=1", `say "hi"`, "two\nlines", "a\u2028b", "a;b", " =1", "'=1", "plain",
}

// No cell of a CSV file is a formula, line breaks stay inside their cells, and by the
// rule that the page names each text comes back; what is a number stays one. JSON
// lines of the same records are as many lines.
func TestCellsThatAreFormulas(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	var values []string
	for i, cell := range hostileCells {
		text, err := json.Marshal(cell)
		s.must(err)
		values = append(values, call("acme", i, `"model":"claude-x"`, `"model":`+string(text), `"latencyMs":812`, `"latencyMs":-5`))
	}
	s.produce(topic, "acme", values...)
	a := s.settle(oracle.Proved)
	path := filepath.Join(s.dir, "rows.csv")
	s.export(0, "range", "--from", "2000-01-01", "--format", "csv", "--output", path, s.bucket())

	const script = `import csv, json, sys
print(json.dumps([[r["model_id"], r["latency_ms"], r["latency_us"], r["tool_name"]] for r in csv.DictReader(open(sys.argv[1], newline="", encoding="utf-8"), strict=True)]))`
	out, err := exec.CommandContext(t.Context(), parts.Python("LEDGERLAKE_IT_PYTHON15", "py15"), "-c", script, path).Output()
	s.must(err)
	var rows [][]string
	s.must(json.Unmarshal(out, &rows))
	if len(rows) != len(hostileCells) {
		t.Fatalf("%d rows", len(rows))
	}
	var want [][]any
	for i, cell := range hostileCells {
		if got := rows[i][0]; strings.IndexAny(got, "=+-@\t\r") == 0 || strings.TrimPrefix(got, "'") != cell {
			t.Errorf("%q is the cell %q", cell, got)
		}
		if rows[i][1] != "-5" || rows[i][2] != "-5000" {
			t.Errorf("latency of %q: %q", cell, rows[i][1:3])
		}
		want = append(want, []any{rows[i][0], "-5"})
	}
	got, err := a.Query(fmt.Sprintf(`select model_id, latency_ms from read_csv('%s', header = true) order by seq`, path))
	s.must(err)
	if len(got) != len(want) {
		t.Fatalf("DuckDB reads %d rows", len(got))
	}
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("DuckDB reads %q, want %q", got[i], want[i])
		}
	}
	lines := strings.Split(strings.TrimSuffix(s.export(0, "range", "--from", "2000-01-01", "--bare", s.bucket()), "\n"), "\n")
	if len(lines) != len(values) {
		t.Fatalf("%d lines", len(lines))
	}
	for i, line := range lines {
		var row struct{ Call struct{ Model string } }
		if err := json.Unmarshal([]byte(line), &row); err != nil || row.Call.Model != hostileCells[i] {
			t.Errorf("%q, %v: %s", row.Call.Model, err, line)
		}
	}
}

// Parquet exports are read like data files, and chained ones by the check that knows
// nothing of exports.
func TestExportsThatOthersRead(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.produce(topic, "acme", calls("acme", 0, 50)...)
	a := s.settle(oracle.Proved)
	path := filepath.Join(s.dir, "rows.parquet")
	s.export(0, "range", "--from", "2000-01-01", "--format", "parquet", "--output", path, s.bucket())
	for _, sql := range []string{
		`select count(*), count(distinct row_hash), min(decision->>'requestedModel'), sum(latency_us) from %s`,
		`select md5(string_agg(turn_id || hex(row_hash) || hex(row_salt) || token_cost, ',' order by seq)) from %s`,
	} {
		want := s.query(a, fmt.Sprintf(sql, "{rows}"))
		got := s.query(a, fmt.Sprintf(sql, "read_parquet('"+path+"')"))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", sql, got, want)
		}
	}
	chained := filepath.Join(s.dir, "rows.jsonl")
	s.export(0, "range", "--from", "2000-01-01", "--format", "chained", "--file-size", "20KiB", "--output", chained, s.bucket())
	files, err := filepath.Glob(filepath.Join(s.dir, "rows*.jsonl"))
	s.must(err)
	out, err := exec.CommandContext(t.Context(), parts.Binary("ledgerlake-verify"), append([]string{"jsonl"}, files...)...).CombinedOutput()
	if err != nil || len(files) < 3 {
		t.Errorf("%d files: %v\n%s", len(files), err, out)
	}
}
