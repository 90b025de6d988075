//go:build cgo

package duckdb

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/ledgerlake/ledgerlake/proof/offline"
)

// The view of rows.sql has each row of an archive once, whether or not it was
// compacted.
func TestRows(t *testing.T) {
	script, err := offline.Programs.ReadFile("rows.sql")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][2]int{"plain": {16, 16}, "compacted": {22, 22}} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.Abs(filepath.Join("..", "..", "proof", "testdata", "golden", name))
			if err != nil {
				t.Fatal(err)
			}
			db, err := sql.Open("duckdb", "")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = db.Close() }()
			con, err := db.Conn(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"SET VARIABLE archive = '" + dir + "'", string(script)} {
				if _, err := con.ExecContext(t.Context(), text); err != nil {
					t.Fatal(err)
				}
			}
			var got [2]int
			err = con.QueryRowContext(t.Context(), "SELECT count(*), count(DISTINCT (topic, topic_id, partition, tenant_id, seq)) FROM rows").Scan(&got[0], &got[1])
			if err != nil || got != want {
				t.Errorf("%d rows, %d of them different (%v); want %v", got[0], got[1], err, want)
			}
		})
	}
}
