//go:build it

package sql

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/export/sqlview"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// location is where Athena and Trino are told that the archive is.
const location = "s3://bucket/audit/"

// statements splits what is printed. No literal has a line break.
func statements(text string) (all []string) {
	for _, s := range strings.Split(text, ";\n") {
		if strings.TrimSpace(s) != "" {
			all = append(all, s)
		}
	}
	return all
}

// What is printed for Athena, Trino and Spark is SQL to parsers that are not ours,
// and the names in it are what they are: Trino's own parser, and sqlglot's dialects
// of Athena and Spark.
func TestStatementsParse(t *testing.T) {
	g := newGoverned(t)
	g.grow()
	ready := map[string][]string{}
	for _, e := range sqlview.Engines() {
		for _, q := range sqlview.Queries() {
			args := []string{"--engine", e.Name, "--query", q.Name, "--tenant", hostile[0]}
			if q.Name == "tool-cascades" {
				args = append(args, "--turn", hostile[6])
			}
			ready[e.Name] = append(ready[e.Name], statements(exported(t, args...))...)
		}
	}
	views := map[string][]string{}
	for _, engine := range []string{"athena", "trino", "spark"} {
		views[engine] = statements(exported(t, "--engine", engine, "--location", location, g.m.folder))
	}
	for _, engine := range []string{"athena", "spark"} {
		t.Run(engine, func(t *testing.T) {
			kinds, literals := sqlglot(t, engine, slices.Concat(views[engine], ready[engine]))
			for i, kind := range kinds {
				if kind != "Create" && kind != "Alter" && kind != "Select" && (kind != "Command" || i > 0 || engine != "spark") { // SET TIME ZONE
					t.Errorf("statement %d is a %s", i, kind)
				}
			}
			wantLiterals(t, literals)
		})
	}
	t.Run("hive", func(t *testing.T) { // the statement that Trino leaves to others
		var ddl []string
		for line := range strings.Lines(strings.Join(views["trino"], ";\n")) {
			if rest, ok := strings.CutPrefix(line, "--   "); ok && !strings.Contains(line, " data files") {
				ddl = append(ddl, rest)
			}
		}
		kinds, _ := sqlglot(t, "hive", []string{strings.TrimSuffix(strings.Join(ddl, ""), ";\n")})
		if len(kinds) != 1 || kinds[0] != "Create" {
			t.Errorf("%v of\n%s", kinds, strings.Join(ddl, ""))
		}
	})
	t.Run("trino", func(t *testing.T) { wantLiterals(t, trino(t, slices.Concat(views["trino"], ready["trino"]))) })
}

// wantLiterals requires that the names of tenants and turns come back from a
// parser as they were.
func wantLiterals(t *testing.T, literals []string) {
	t.Helper()
	for _, name := range hostile {
		for _, want := range []string{name, "part " + name} {
			if !slices.Contains(literals, want) {
				t.Errorf("%q is not there as it is", want)
			}
		}
	}
}

// sqlglot parses statements, and returns what each is and the literals in them.
func sqlglot(t *testing.T, dialect string, all []string) (kinds, literals []string) {
	t.Helper()
	python := os.Getenv("LEDGERLAKE_IT_SCHEMAS")
	if python == "" {
		python = filepath.Join(parts.Build(), "schemas", "bin", "python")
	}
	out := ran(t, strings.Join(all, "\x00"), python, filepath.Join(parts.Root(), "it", "python", "sqlglot_parse.py"), dialect)
	var got struct{ Kinds, Literals []string }
	if err := json.Unmarshal(out, &got); err != nil || len(got.Kinds) != len(all) {
		t.Fatalf("%v: %d of %d statements", err, len(got.Kinds), len(all))
	}
	return got.Kinds, got.Literals
}

// trino parses statements, and returns the literals in them.
func trino(t *testing.T, all []string) (literals []string) {
	t.Helper()
	java := newJava()
	if java == "" {
		fmt.Println("it/sql: SKIPPED: Trino's parser needs Java 25 or later: set LEDGERLAKE_IT_JAVA25 to one")
		t.Skip("no Java 25")
	}
	out := ran(t, strings.Join(all, "\x00"), java, "-cp", filepath.Join(parts.Build(), "trino", "lib", "*"), filepath.Join(parts.Root(), "it", "trino", "Parse.java"))
	n := 0
	for line := range strings.Lines(string(out)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "ok":
			n++
		case "literal":
			b, err := hex.DecodeString(rest)
			if err != nil {
				t.Fatal(err)
			}
			literals = append(literals, string(b))
		default:
			t.Errorf("statement %d: %s\n%.600s", n, rest, all[n])
			n++
		}
	}
	if n != len(all) {
		t.Errorf("%d of %d statements", n, len(all))
	}
	return literals
}

var javaVersion = regexp.MustCompile(`version "(\d+)`)

// newJava returns a java of version 25 or later; "" where there is none.
func newJava() string {
	found, _ := filepath.Glob("/usr/lib/jvm/*/bin/java")
	for _, java := range append([]string{os.Getenv("LEDGERLAKE_IT_JAVA25"), "java"}, found...) {
		out, err := exec.Command(java, "-version").CombinedOutput()
		if m := javaVersion.FindSubmatch(out); err == nil && m != nil {
			if n, _ := strconv.Atoi(string(m[1])); n >= 25 {
				return java
			}
		}
	}
	return ""
}

// A hostile tenant has a manifest, by which its own rows alone are read.
func TestManifestsOfHostileTenants(t *testing.T) {
	g := newGoverned(t)
	g.grow()
	g.later(3 * time.Hour)
	g.m.compact(g.m.governor(g.key, time.Hour)) // now the second orders are due as well
	r := readers{t: t, m: g.m, d: parts.DuckDBs()[1], was: map[string]int{}}
	for _, name := range hostile {
		body, err := g.m.Get(t.Context(), archive.ManifestKey(g.calls.Line, name))
		if err != nil {
			t.Fatal(err)
		}
		sql := strings.Replace(r.selectsOf(name, name, string(body)), "min(seq)", "string_agg(substr(record_id, 26), ' ' ORDER BY seq)", 1)
		if got := query(t, r.d, sql); fmt.Sprint(got) != fmt.Sprint([][]any{{name, "6", "6", "0 1 2 3 3 4"}}) {
			t.Errorf("%q: %v", name, got)
		}
	}
}
