//go:build it && spark

package readers

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/ledgerlake/ledgerlake/it/bench"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// Spark finds the same rows in the data files as in the segments.
func TestSparkFindsTheSameRows(t *testing.T) {
	folder, python := compacted(t), parts.Python("LEDGERLAKE_IT_SPARK", "spark")
	var sums [2]struct {
		Folder struct{ Rows, Tokens, Offsets int64 }
	}
	for i, side := range []string{"log", "data"} {
		spec, err := json.Marshal(map[string]any{"objects": []string{}, "looked": []string{}, "folder": filepath.Join(folder, side)})
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "spec.json")
		if err := os.WriteFile(file, spec, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := bench.Spend(t.Context(), nil, nil, python, filepath.Join(parts.Root(), "parquet", "testdata", "spark.py"), file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(s.Out, &sums[i]); err != nil {
			t.Fatal(err)
		}
	}
	if sums[0] != sums[1] || sums[0].Folder.Rows != rows {
		t.Errorf("segments have %+v, data files %+v", sums[0].Folder, sums[1].Folder)
	}
}
