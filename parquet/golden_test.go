package parquet

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/ledgerlake/ledgerlake/chain"
)

// golden are objects of two archives that another Parquet library has written,
// and how many rows they hold.
var golden = map[string]int{
	"segment.parquet": 5, // calls of several tenants
	"gap.parquet":     1, // a row that ingest made
	"control.parquet": 4, // control rows
	"erased.parquet":  6, // a data file with rows erased, erased hard, and erased in part
}

func readGolden(t testing.TB, name string) []byte {
	t.Helper()
	object, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// The row hash covers every header column, and through the commitments every
// slot and the user: rows that were read a byte wrong would not have it.
func TestReadsWhatAnotherLibraryWrote(t *testing.T) {
	for name, want := range golden {
		object := readGolden(t, name)
		if err := CheckLayout(object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		rows := readAll(t, object)
		if len(rows) != want {
			t.Errorf("%s: %d rows, want %d", name, len(rows), want)
		}
		hasher := chain.NewHasher(nil)
		for i := range rows {
			if err := hasher.Check(&rows[i]); err != nil {
				t.Errorf("%s: row %d: %v", name, i, err)
			}
		}
	}
}

// What this package makes of rows that another library wrote holds the same
// rows.
func TestRewritesWhatAnotherLibraryWrote(t *testing.T) {
	for name := range golden {
		rows := readAll(t, readGolden(t, name))
		object := encode(t, rows, nil)
		if err := CheckLayout(object); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		sameRows(t, readAll(t, object), rows)
	}
}
