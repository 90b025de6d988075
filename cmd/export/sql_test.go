package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
)

var parquetName = regexp.MustCompile(`'[^']*\.parquet'`)

// The views name each object once that holds rows now: data files of the newest
// version of a catalog, and segments from its watermark on.
func TestSQLNamesEachObjectOnce(t *testing.T) {
	a, _ := example()
	dir := lay(t, a.Objects())
	code, out, _, err := do(nil, "sql", "--engine", "duckdb", dir)
	if code != 0 || err != nil {
		t.Fatal(code, err)
	}
	seen := map[string]bool{}
	for _, name := range parquetName.FindAllString(out, -1) {
		path := strings.Trim(name, "'")
		if _, err := os.Stat(path); err != nil || seen[path] {
			t.Errorf("%s: %v, seen before: %t", path, err, seen[path])
		}
		seen[path] = true
	}
	// audit.calls/0: two data files and one segment; audit.calls/1 and the control topic: one segment each.
	if len(seen) != 5 {
		t.Errorf("%d objects: %v", len(seen), seen)
	}
	if !strings.Contains(out, `upper("record_id") = '01KBCDEFGHJKMNPQRSTV000003'`) {
		t.Error("what is ordered to be erased is not hidden")
	}
	code, out, _, err = do(nil, "sql", "--engine", "duckdb", "--tenant", "globex", "--location", "s3://b/p", dir)
	if names := parquetName.FindAllString(out, -1); code != 0 || err != nil || len(names) != 1 || !strings.HasPrefix(names[0], "'s3://b/p/data/globex/") {
		t.Errorf("%d, %v: %v", code, err, names)
	}
}

// Athena and Trino read manifests, each tenant's as a partition.
func TestSQLOfManifests(t *testing.T) {
	a, l := example()
	objects := a.Objects()
	code, _, _, err := do(nil, "sql", "--engine", "athena", "--location", "s3://b/p", lay(t, objects))
	if code != exitCannotRun || err == nil || !strings.Contains(err.Error(), "compact.sql-manifests") {
		t.Errorf("without manifests: %d, %v", code, err)
	}
	objects[archive.ManifestKey(l.Line, "acme")] = []byte("s3://b/p/data/x\n")
	objects[archive.ManifestKey(l.Line, "gone")] = nil
	for engine, want := range map[string]string{
		"athena": "PARTITION (manifest_tenant = 'acme') LOCATION 's3://b/p/sql/rows/tenant=acme/'",
		"trino":  "CALL system.register_partition('lake', 'ledgerlake_objects', ARRAY['manifest_tenant'], ARRAY['acme'], 's3://b/p/sql/rows/tenant=acme/')",
	} {
		code, out, _, err := do(nil, "sql", "--engine", engine, "--schema", "lake", "--location", "s3://b/p/", lay(t, objects))
		if code != 0 || err != nil || !strings.Contains(out, want) || strings.Contains(out, "globex") || strings.Contains(out, "gone") {
			t.Errorf("%s: %d, %v\n%.3000s", engine, code, err, out)
		}
	}
}

// What cannot be is told before anything is read.
func TestSQLRefuses(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{missing}, "want one of duckdb, athena, trino, spark"},
		{[]string{"--engine", "mysql", missing}, `engine "mysql"`},
		{[]string{"--engine", "duckdb", "--query", "costs"}, `query "costs": unknown: --list has them`},
		{[]string{"--engine", "duckdb", "--query", "completeness", missing}, "--query needs no archive"},
		{[]string{"--engine", "duckdb", "--turn", "t", missing}, "--turn goes with --query"},
		{[]string{"--engine", "duckdb", "--query", "completeness", "--turn", "t"}, "--turn goes with --query tool-cascades"},
		{[]string{"--engine", "duckdb", "--query", "cost-per-tenant-model-day", "--prices", missing}, "--prices goes with the views"},
		{[]string{"--engine", "duckdb", "--query", "tool-cascades", "--turn", "t", "--include-gated"}, "belong to the views"},
		{[]string{"--engine", "duckdb", "--prices", missing, missing}, "none"},
		{[]string{"--engine", "duckdb", missing}, "none"},
	} {
		code, out, _, err := do(nil, append([]string{"sql"}, tt.args...)...)
		if code != exitCannotRun || err == nil || !strings.Contains(err.Error(), tt.want) || out != "" {
			t.Errorf("%v: %d, %v, %q; want %s", tt.args, code, err, out, tt.want)
		}
	}
	a, _ := example()
	if code, _, _, err := do(nil, "sql", "--engine", "trino", lay(t, a.Objects())); code != exitCannotRun || err == nil || !strings.Contains(err.Error(), "give --location") {
		t.Errorf("a folder for Trino: %d, %v", code, err)
	}
}

// Every query that is listed is printed for every engine.
func TestSQLQueries(t *testing.T) {
	_, list, _, err := do(nil, "sql", "--list")
	queries, views, ok := strings.Cut(list, "Views:\n")
	if err != nil || !ok || !strings.Contains(views, "v_family_lock ") {
		t.Fatal(err, list)
	}
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(queries, "Queries:\n")) {
		name := strings.Fields(line)[0]
		n++
		for _, engine := range []string{"duckdb", "athena", "trino", "spark"} {
			code, out, _, err := do(nil, "sql", "--engine", engine, "--query", name, "--tenant", "O'Brien")
			if code != 0 || err != nil || !strings.HasPrefix(out, "-- ") || !strings.HasSuffix(out, ";\n") {
				t.Errorf("%s for %s: %d, %v, %.100q", name, engine, code, err, out)
			}
		}
	}
	if n != 10 {
		t.Errorf("%d queries", n)
	}
}
