//go:build it

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/it/parts"
	"github.com/ledgerlake/ledgerlake/proof/offline"
)

// engines holds what both DuckDBs read, by the script of docs/queries.md,
// against what the archive's own reader reads.
func (t *trial) engines(ctx context.Context) error {
	script, err := offline.Programs.ReadFile("rows.sql")
	if err != nil {
		return err
	}
	var want int64
	if err := t.read(ctx, func(*seen) error { want++; return nil }); err != nil {
		return err
	}
	folder := strings.ReplaceAll(t.s3.Dir(bucket), "'", "''")
	for _, db := range parts.DuckDBs() {
		rows, err := db.Query("SET VARIABLE archive = '"+folder+"'", string(script),
			"SELECT count(*), count(DISTINCT (topic, topic_id, partition, tenant_id, seq)), count(*) FILTER (redaction IS NOT NULL) FROM rows")
		if err != nil {
			return err
		}
		if text := strconv.FormatInt(want, 10); fmt.Sprint(rows[0][0]) != text || fmt.Sprint(rows[0][1]) != text {
			return fmt.Errorf("%w: DuckDB %s reads %v, the archive has %d rows", errWrong, db.Version, rows[0], want)
		}
		t.say("DuckDB %s reads %v rows, %v of which something is erased", db.Version, rows[0][0], rows[0][2])
	}
	return t.manifests(ctx, want)
}

// manifests reads the archive by the lists that compactors keep for Athena and
// Trino: they name no row twice, nothing that is gone, and every row that a catalog
// has in data files.
func (t *trial) manifests(ctx context.Context, rows int64) error {
	compacted := map[string]int64{} // rows by manifest
	lines, err := archive.Lines(ctx, t.store)
	if err != nil {
		return err
	}
	for _, l := range lines {
		snap, err := archive.ReadSnapshot(ctx, t.store, l, nil)
		if err != nil {
			return err
		}
		for _, f := range snap.Files {
			compacted[archive.ManifestKey(l, f.Tenant)] += f.Rows
		}
	}
	var all int64
	for key, want := range compacted {
		n, err := t.manifest(ctx, key)
		if err != nil {
			return err
		}
		if all += n; n < want {
			return fmt.Errorf("%w: %s has %d rows, data files have %d", errWrong, key, n, want)
		}
	}
	t.say("DuckDB reads %d of %d rows by %d manifests", all, rows, len(compacted))
	return nil
}

// manifest returns how many rows of its tenant a manifest has.
func (t *trial) manifest(ctx context.Context, key string) (n int64, err error) {
	body, err := t.store.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	var files []string
	for line := range strings.Lines(string(body)) {
		_, object, ok := strings.Cut(strings.TrimSpace(line), "s3://"+bucket+"/")
		if !ok {
			return 0, fmt.Errorf("%w: %s has the line %q", errWrong, key, line)
		}
		files = append(files, "'"+strings.ReplaceAll(filepath.Join(t.s3.Dir(bucket), object), "'", "''")+"'")
	}
	tenant, _ := chain.Unescape(strings.TrimPrefix(strings.Split(key, "/")[2], "tenant="))
	rows, err := parts.DuckDBs()[1].Query(fmt.Sprintf("SELECT count(*), count(DISTINCT seq) FROM read_parquet([%s], hive_partitioning = false) WHERE tenant_id = '%s'",
		strings.Join(files, ", "), strings.ReplaceAll(tenant, "'", "''")))
	if err != nil {
		return 0, fmt.Errorf("%s: %w", key, err)
	}
	if rows[0][0] != rows[0][1] {
		return 0, fmt.Errorf("%w: %s has %v rows at %v places", errWrong, key, rows[0][0], rows[0][1])
	}
	return strconv.ParseInt(rows[0][0].(string), 10, 64)
}
