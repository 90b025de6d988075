//go:build it && spark

package parquet

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/chain"
)

// A sparkAnswer is what testdata/spark.py prints.
type sparkAnswer struct {
	Version string
	Objects []struct {
		Rows   []map[string]any
		Missed map[string]int
		Strays map[string]int
	}
	Folder struct{ Rows, Tokens, Offsets int64 }
}

// askSpark has Spark read objects one by one, and a folder as one table.
func askSpark(t *testing.T, objects [][]byte, looked []string) *sparkAnswer {
	t.Helper()
	python := os.Getenv("LEDGERLAKE_IT_SPARK")
	if python == "" {
		t.Fatal("LEDGERLAKE_IT_SPARK names no Python: run make it-spark")
	}
	dir := t.TempDir()
	var paths []string
	for i, object := range objects {
		folder := filepath.Join(dir, "data", "acme", "day=2026-05-28")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, filepath.Join(folder, fmt.Sprintf("%d.parquet", i)))
		if err := os.WriteFile(paths[i], object, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec, err := json.Marshal(map[string]any{"objects": paths, "looked": looked, "folder": filepath.Join(dir, "data")})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "spec.json")
	if err := os.WriteFile(file, spec, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/spark.py", file)
	var told strings.Builder
	cmd.Stderr = &told
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, told.String())
	}
	a := new(sparkAnswer)
	d := json.NewDecoder(strings.NewReader(string(out)))
	d.UseNumber()
	if err := d.Decode(a); err != nil {
		t.Fatal(err)
	}
	return a
}

// Spark reads what was written, one by one and as one table, and an equality with
// a value finds its rows: by statistics, page index and bloom filters.
func TestSparkReads(t *testing.T) {
	looked := []string{"session_id", "turn_id", "record_id", "user_id", "model_id", "seq"}
	var objects [][]byte
	var want [][]chain.Row
	for _, rows := range [][]chain.Row{newRowMaker(21).rows(300), turnRows(900)} {
		for _, write := range writers {
			objects, want = append(objects, write(t, rows)), append(want, rows)
		}
	}
	a := askSpark(t, objects, looked)
	if a.Version != "4.1.1" || len(a.Objects) != len(objects) {
		t.Fatalf("Spark %s read %d objects of %d", a.Version, len(a.Objects), len(objects))
	}
	total := sparkAnswer{}.Folder
	for i, rows := range want {
		sameAnswer(t, fmt.Sprintf("Spark, object %d", i), a.Objects[i].Rows, rows)
		for _, name := range looked {
			if a.Objects[i].Missed[name] != 0 || a.Objects[i].Strays[name] != 0 {
				t.Errorf("object %d: %s: %d rows were not found, %d were by a value that is not there", i, name, a.Objects[i].Missed[name], a.Objects[i].Strays[name])
			}
		}
		for j := range rows {
			total.Rows++
			total.Tokens ^= rows[j].InputTokens.N
			total.Offsets ^= rows[j].KafkaOffset.N
		}
	}
	if a.Folder != total {
		t.Errorf("the folder has %+v, want %+v", a.Folder, total)
	}
}
