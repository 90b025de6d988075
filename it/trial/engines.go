//go:build it

package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

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
	return nil
}
