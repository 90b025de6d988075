package proof_test

import (
	"path"
	"reflect"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
	"github.com/ledgerlake/ledgerlake/redact"
)

// rowsOf returns the rows of all objects whose key matches, by row_hash.
func rowsOf(t *testing.T, objects map[string][]byte, pattern string) map[chain.Hash]*chain.Row {
	t.Helper()
	rows := map[chain.Hash]*chain.Row{}
	for key, body := range objects {
		if ok := must[bool](t)(path.Match(pattern, key)); !ok {
			continue
		}
		for row, err := range must[*parquet.File](t)(parquet.Open(body)).Rows() {
			if err != nil {
				t.Fatal(err)
			}
			kept := *row
			rows[kept.RowHash] = &kept
		}
	}
	return rows
}

// The rows that an independent implementation erased, one of each state, are what
// redact.Erase makes of them as they were archived, but for the spaces that the
// other one writes in residual.
func TestEraseMakesTheGoldenRows(t *testing.T) {
	stamped := rowsOf(t, readFolder(t, "testdata/golden/plain"), "log/*/*/*/*.parquet")
	h, states := chain.NewHasher(nil), map[chain.State]int{}
	for hash, want := range rowsOf(t, readFolder(t, "testdata/golden/compacted"), "data/*/*/*.parquet") {
		state := must[chain.State](t)(chain.StateOf(want))
		states[state]++
		got := stamped[hash]
		if state != chain.Live {
			if _, err := redact.Erase(h, got, must[chain.Sentinel](t)(chain.ParseSentinel(want.Redaction.S))); err != nil {
				t.Fatal(err)
			}
		}
		if want.Residual.Valid {
			residual := must[chain.Residual](t)(chain.ParseResidual(want.Residual.S))
			want.Residual.S = residual.String()
		}
		if difference := audit.FirstDifference(&got.Record, &want.Record); difference != "" || !reflect.DeepEqual(*got, *want) {
			t.Errorf("%s row: %s\ngot  %+v\nwant %+v", state, difference, *got, *want)
		}
	}
	for _, s := range []chain.State{chain.Live, chain.PartlyErased, chain.Erased, chain.HardErased} {
		if states[s] == 0 {
			t.Errorf("no golden row is %s", s)
		}
	}
}
