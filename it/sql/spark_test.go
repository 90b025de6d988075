//go:build it && spark

package sql

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/it/parts"
)

// Spark gives the answers that are known, on the demo's archive.
func TestSparkAnswers(t *testing.T) {
	folder, _, all, _ := demo(t)
	file := filepath.Join(t.TempDir(), "prices.csv")
	if err := os.WriteFile(file, []byte(prices), 0o600); err != nil {
		t.Fatal(err)
	}
	known := answers(all)
	names := slices.Sorted(maps.Keys(known))
	script := statements(exported(t, "--engine", "spark", "--prices", file, folder))
	for _, name := range names {
		script = append(script, statements(exported(t, "--engine", "spark", "--query", name))...)
	}
	out := ran(t, strings.Join(script, "\x00"), parts.Python("LEDGERLAKE_IT_SPARK", "spark"), filepath.Join(parts.Root(), "it", "python", "spark_sql.py"), fmt.Sprint(len(names)))
	var got [][][]any
	if err := json.Unmarshal(out, &got); err != nil || len(got) != len(names) {
		t.Fatalf("%v: %d answers", err, len(got))
	}
	for i, name := range names {
		if fault := same(got[i], known[name]); fault != "" {
			t.Errorf("%s: %s", name, fault)
		}
	}
}
