//go:build it

package sql

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// sentRows is how many records the demo sends.
const sentRows = 2500

var startOf = regexp.MustCompile(`--seed 1 --start (\S+)\)`)

// demo runs the demo, and returns the folder of its archive, its key, and the
// records that it sent.
func demo(t *testing.T) (folder string, key *sign.Signer, all []*sent, broken int) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	out := ran(t, "", parts.Binary("ledgerlake-devstack"), "demo", "--dir", dir, "--rows", fmt.Sprint(sentRows), "--rate", "0")
	m := startOf.FindSubmatch(out)
	if m == nil {
		t.Fatalf("the demo does not say what it sent:\n%s", out)
	}
	start, err := time.Parse(time.RFC3339Nano, string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "anchors.key"))
	if err == nil {
		key, err = sign.NewSigner(string(text))
	}
	if err == nil {
		all, broken, err = produced(1, start, sentRows)
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "s3", "audit"), key, all, broken
}

// answers returns what is known of the records, by query.
func answers(all []*sent) map[string]table {
	return map[string]table{
		"cost-per-tenant-model-day": costs(all), "fallback-rate": fallbacks(all), "tool-cascades": cascades(all), "cache-hit-ratio": caches(all),
		"latency-by-provider": latencies(all), "guard-rejections": guarded(all), "human-interrupts": interrupts(all), "decisions-without-action": undone(all),
		"erasure-requests": nil,
	}
}

// Every ready query gives the answer that is known, in both versions of DuckDB,
// before the archive is compacted, in the middle of it, and after it. And after each
// single write of a compaction the views have each row once, and so has who reads
// by manifests, of what an earlier one had.
func TestReadyQueries(t *testing.T) {
	folder, key, all, broken := demo(t)
	file := filepath.Join(t.TempDir(), "prices.csv")
	if err := os.WriteFile(file, []byte(prices), 0o600); err != nil {
		t.Fatal(err)
	}
	known := answers(all)
	for name, rows := range known {
		if len(rows) == 0 && name != "erasure-requests" {
			t.Fatalf("%s: nothing is known", name)
		}
	}
	queries := map[string]string{}
	for name := range known {
		queries[name] = exported(t, "--engine", "duckdb", "--query", name)
	}
	complete := exported(t, "--engine", "duckdb", "--query", "completeness")
	ask := func(when string) {
		t.Helper()
		views := exported(t, "--engine", "duckdb", "--prices", file, folder)
		for _, d := range parts.DuckDBs() {
			for name, want := range known {
				if fault := same(query(t, d, views, queries[name]), want); fault != "" {
					t.Errorf("%s: DuckDB %s: %s: %s", when, d.Version, name, fault)
				}
			}
			rows := 0
			for _, log := range query(t, d, views, complete) {
				var n int
				if _, err := fmt.Sscan(log[6].(string), &n); err != nil || log[10] != "complete" || log[7] != "0" || log[8] != "0" {
					t.Errorf("%s: DuckDB %s: completeness: %v", when, d.Version, log)
				}
				rows += n
			}
			if rows != len(all)+broken {
				t.Errorf("%s: DuckDB %s: completeness has %d rows, want %d", when, d.Version, rows, len(all)+broken)
			}
		}
	}
	ask("before")
	stale := exported(t, "--engine", "duckdb", folder)
	m := newMirror(t, folder)
	newest := parts.DuckDBs()[1]
	sums := func() [][]any {
		return query(t, newest, exported(t, "--engine", "duckdb", folder), "SELECT count(*), bit_xor(hash(tenant_id, topic, partition, seq, row_hash)) FROM ledgerlake_rows")
	}
	want, by := sums(), readers{t: t, m: m, d: newest, was: map[string]int{}}
	writes, middles := 0, 0
	m.looked = func(written string) {
		writes++
		if writes%5 == 0 || strings.HasPrefix(written, "catalog/") {
			if got := sums(); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("after write %d, %s: %v, want %v", writes, written, got, want)
			}
		}
		by.look()
		if _, isVersion := archive.ParseCatalogKey(written); isVersion {
			if middles++; middles == 2 {
				ask("in the middle: " + written)
			}
		}
	}
	g := m.governor(key, 0)
	m.compact(g)
	m.looked = nil
	ask("after")
	m.looked = func(string) { by.look() }
	m.now = m.now.Add(2 * time.Hour)
	m.compact(g)
	if left, err := filepath.Glob(filepath.Join(folder, "log", "*", "*", "*", "*.parquet")); err != nil || len(left) > 0 {
		t.Errorf("segments are left: %v, %v", left, err)
	}
	ask("after old objects were deleted")
	for _, d := range parts.DuckDBs() {
		if rows, err := d.Query(stale, "SELECT count(*) FROM ledgerlake_rows"); err == nil {
			t.Errorf("DuckDB %s: views of files that are gone give %v rows", d.Version, rows)
		}
	}
	if rows := by.total(); writes < 20 || middles < 3 || rows != len(all)+broken {
		t.Errorf("%d writes, %d versions; manifests have %d rows, want %d", writes, middles, rows, len(all)+broken)
	}
}

// readers read by manifests as an engine does that takes lists of files.
type readers struct {
	t   *testing.T
	m   *mirror
	d   *parts.DuckDB
	was map[string]int // rows by manifest
	is  map[string]string
}

// look reads what has changed, and requires that no row is missing that was there
// before, and that none is there twice.
func (r *readers) look() {
	r.t.Helper()
	var parts []string
	now := map[string]string{}
	for o, err := range r.m.List(context.Background(), archive.ManifestPrefix, "") {
		if err != nil {
			r.t.Fatal(err)
		}
		body, err := r.m.Get(context.Background(), o.Key)
		if err != nil {
			r.t.Fatal(err)
		}
		if now[o.Key] = string(body); r.is[o.Key] != string(body) {
			parts = append(parts, r.selects(o.Key, string(body)))
		}
	}
	r.is = now
	if len(parts) == 0 {
		return
	}
	for _, row := range query(r.t, r.d, strings.Join(parts, " UNION ALL ")) {
		var n int
		if _, err := fmt.Sscan(row[1].(string), &n); err != nil || row[1] != row[2] || row[3] != "0" || n < r.was[row[0].(string)] {
			r.t.Errorf("manifest, rows, places, first: %v; it had %d rows", row, r.was[row[0].(string)])
		}
		r.was[row[0].(string)] = n
	}
}

// selects returns the query of one manifest: as the view of Athena it takes rows of
// its tenant alone.
func (r *readers) selects(key, body string) string {
	tenant, ok := chain.Unescape(strings.TrimPrefix(strings.Split(key, "/")[2], "tenant="))
	if !ok {
		r.t.Fatal(key)
	}
	return r.selectsOf(key, tenant, body)
}

func (r *readers) selectsOf(key, tenant, body string) string {
	var files []string
	for line := range strings.Lines(body) {
		files = append(files, quoted(filepath.Join(r.m.folder, strings.TrimPrefix(strings.TrimSpace(line), base))))
	}
	return fmt.Sprintf("SELECT %s, count(*), count(DISTINCT seq), min(seq) FROM read_parquet([%s], hive_partitioning = false) WHERE tenant_id = %s",
		quoted(key), strings.Join(files, ", "), quoted(tenant))
}

func (r *readers) total() (n int) {
	for _, rows := range r.was {
		n += rows
	}
	return n
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
