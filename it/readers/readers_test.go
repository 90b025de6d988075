//go:build it

// Package readers has libraries that are not ours read an archive before and
// after it is compacted: they must find the same rows, by any way of looking.
package readers

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/ledgerlake/ledgerlake/it/bench"
	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// rows is how many the archive has: in row groups, pages and files enough.
const rows = 12_000

// compacted returns a folder with an archive that was compacted, where all the
// segments are still there: below log/ are the rows before, below data/ those
// after.
func compacted(t *testing.T) string {
	t.Helper()
	folder, err := once()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

var once = sync.OnceValues(func() (string, error) {
	folder, err := os.MkdirTemp("", "ledgerlake-readers")
	if err != nil {
		return "", err
	}
	store := faults3.Start(faults3.Options{})
	defer store.Close()
	plan := bench.Plan{Rows: rows, Lines: 2, Tenants: 3, Least: 8, Segment: 1500, Anchor: 3}
	a, err := bench.Build(plan, func(key string, body []byte) error { store.Set(key, body); return nil })
	if err != nil {
		return "", err
	}
	key := filepath.Join(folder, "key")
	if err := os.WriteFile(key, []byte(a.Key), 0o600); err != nil {
		return "", err
	}
	_, err = bench.Spend(context.Background(), nil, []string{"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b"}, parts.Binary("ledgerlake-compact"), "once",
		"--bucket", parts.BucketURL(store.URL, faults3.Bucket), "--compact.assign", "offline", "--key", a.Verifier, "--catalog-key", key)
	if err != nil {
		return "", err
	}
	return folder, store.Dump(folder)
})

func TestMain(m *testing.M) {
	code := m.Run()
	if folder, err := once(); err == nil {
		_ = os.RemoveAll(folder)
	}
	os.Exit(code)
}

// source is what DuckDB reads one side of an archive by.
func source(folder, side string) string {
	return fmt.Sprintf("read_parquet('%s/%s/**/*.parquet', hive_partitioning = false)", folder, side)
}

func query(t *testing.T, d *parts.DuckDB, sql, from string) [][]any {
	t.Helper()
	got, err := d.Query(strings.ReplaceAll(sql, "{}", from))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// DuckDB finds in the data files what it finds in the segments: rows, sums, and
// the hash of every value of every column.
func TestDuckDBFindsTheSameRows(t *testing.T) {
	folder := compacted(t)
	for _, d := range parts.DuckDBs() {
		names := query(t, d, "select column_name from (describe select * from {})", source(folder, "log"))
		columns := []string{"count(*)"}
		for _, name := range names {
			columns = append(columns, fmt.Sprintf("bit_xor(hash(%v, row_hash))", name[0]), fmt.Sprintf("count(%v)", name[0]))
		}
		sql := "select " + strings.Join(columns, ", ") + " from {}"
		before, after := query(t, d, sql, source(folder, "log")), query(t, d, sql, source(folder, "data"))
		if !reflect.DeepEqual(before, after) || before[0][0] != fmt.Sprint(rows) || len(names) < 60 {
			t.Errorf("DuckDB %s: %d columns: %v\nbefore, and after\n%v", d.Version, len(names), before, after)
		}
	}
}

// An equality finds its rows by the statistics, the page index and the bloom
// filters of the data files, and finds nothing by a value that is not there.
func TestDuckDBFindsRowsByValue(t *testing.T) {
	folder := compacted(t)
	for _, d := range parts.DuckDBs() {
		for _, column := range []string{"record_id", "session_id", "turn_id", "user_id", "tenant_id", "kind", "model_id", "row_hash"} {
			text := column
			if column == "row_hash" {
				text = "lower(hex(row_hash))"
			}
			some := query(t, d, fmt.Sprintf("select %s as v, count(*) from {} where %s is not null group by 1 order by md5(any_value(%s)) limit 5", text, column, text), source(folder, "log"))
			if len(some) == 0 {
				t.Fatalf("%s: no values", column)
			}
			some = append(some, []any{strings.Repeat("ab", 32), "0"})
			for _, v := range some {
				literal := fmt.Sprintf("'%v'", v[0])
				if column == "row_hash" {
					literal = fmt.Sprintf("unhex('%v')", v[0])
				}
				got := query(t, d, fmt.Sprintf("select count(*) from {} where %s = %s", column, literal), source(folder, "data"))
				if got[0][0] != v[1] {
					t.Errorf("DuckDB %s: %s = %v: %v rows, want %v", d.Version, column, v[0], got[0][0], v[1])
				}
			}
		}
	}
}

// Files in encodings that some engines cannot read failed in those: all files of
// an archive, compacted or not, have those that everybody reads.
func TestEncodingsThatEveryoneReads(t *testing.T) {
	folder := compacted(t)
	for _, d := range parts.DuckDBs() {
		for side, want := range map[string]string{"log": "PLAIN, RLE, RLE_DICTIONARY", "data": "PLAIN, RLE, RLE_DICTIONARY"} {
			got := query(t, d, `select string_agg(distinct e, ', ' order by e), string_agg(distinct compression, ', '), count(distinct file_name) > 3
				from (select file_name, compression, unnest(string_split(encodings, ', ')) as e from parquet_metadata('`+folder+"/"+side+`/**/*.parquet'))`, "")
			if len(got) != 1 || !reflect.DeepEqual(got[0], []any{want, "ZSTD", "True"}) {
				t.Errorf("DuckDB %s: %s has %v", d.Version, side, got)
			}
		}
	}
}

// pyarrow finds the same rows, too.
func TestArrowFindsTheSameRows(t *testing.T) {
	folder := compacted(t)
	for _, python := range []string{parts.Python("LEDGERLAKE_IT_PYTHON15", "py15"), parts.Python("LEDGERLAKE_IT_PYTHON20", "py20")} {
		before, after := arrow(t, python, folder, "log"), arrow(t, python, folder, "data")
		if !reflect.DeepEqual(before, after) || before["rows"] != float64(rows) || len(before) < 60 {
			t.Errorf("%v\nbefore, and after\n%v", before, after)
		}
	}
}

func arrow(t *testing.T, python, folder, side string) (sums map[string]any) {
	t.Helper()
	s, err := bench.Spend(t.Context(), nil, nil, python, filepath.Join(parts.Root(), "it", "python", "sums.py"), filepath.Join(folder, side))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(s.Out, &sums); err != nil {
		t.Fatal(err)
	}
	return sums
}
