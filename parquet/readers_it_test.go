//go:build it

package parquet

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
)

// pythons are interpreters that have pyarrow and one version of DuckDB: the one
// that users run, and the one that came after it.
var pythons = map[string]string{
	"LEDGERLAKE_IT_PYTHON15": "1.5.6",
	"LEDGERLAKE_IT_PYTHON20": "2.0.1",
}

// An answer is what testdata/read.py prints.
type answer struct {
	Version   string
	Arrow     []map[string]any
	DuckDB    []map[string]any `json:"duckdb"`
	Types     map[string]string
	Schema    []string
	Encodings []string
	Codecs    []string
	Keys      []string
	Found     map[string]int
	Missed    int
	Filtered  []string
	Excluded  int
}

// ask lets another reader read an object.
func ask(t *testing.T, variable string, object []byte) *answer {
	t.Helper()
	python := os.Getenv(variable)
	if python == "" {
		t.Fatalf("%s names no Python: run it/run.sh", variable)
	}
	path := filepath.Join(t.TempDir(), "object.parquet")
	if err := os.WriteFile(path, object, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "testdata/read.py", path)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	a := new(answer)
	d := json.NewDecoder(strings.NewReader(string(out)))
	d.UseNumber()
	if err := d.Decode(a); err != nil {
		t.Fatal(err)
	}
	if a.Version != pythons[variable] {
		t.Fatalf("%s has DuckDB %s, want %s", variable, a.Version, pythons[variable])
	}
	return a
}

// form returns what a column of a row is in an answer.
func (c *column) form(r *chain.Row) any {
	switch v := c.of(r).(type) {
	case audit.Text:
		return formIf(v.Valid, v.S)
	case audit.Int:
		return formIf(v.Valid, json.Number(fmt.Sprint(v.N)))
	case chain.Hash:
		return v.String()
	case chain.NullHash:
		return formIf(v.Valid, v.Hash.String())
	case []string:
		return formIf(v != nil, slices.Collect(func(yield func(any) bool) {
			for _, s := range v {
				yield(s)
			}
		}))
	case []byte:
		if c.kind == kindBinary {
			return formIf(v != nil, hex.EncodeToString(v))
		}
		return formIf(v != nil, string(v))
	}
	panic("no such column")
}

func formIf(valid bool, v any) any {
	if !valid {
		return nil
	}
	return v
}

// of returns what a row has in a column.
func (c *column) of(r *chain.Row) any {
	switch {
	case c.text != nil:
		return *c.text(r)
	case c.slot != nil:
		return *c.slot(r)
	case c.num != nil:
		return *c.num(r)
	case c.hash != nil:
		return *c.hash(r)
	case c.null != nil:
		return *c.null(r)
	default:
		return *c.list(r)
	}
}

// Other libraries read what was written: every type, every text, nulls and empty
// lists, times from year 1 to 9999 in a session whose time zone is not UTC. An
// equality with a value that is there finds its rows, by statistics, page index
// and hash. Two row groups, of pages of every size.
func TestReadersThatAreNotOurs(t *testing.T) {
	for variable := range pythons {
		for name, rows := range map[string][]chain.Row{
			"no row":    nil,
			"odd rows":  newRowMaker(21).rows(700),
			"turns":     turnRows(1500),
			"two lists": listRows(),
		} {
			for writer, write := range writers {
				if writer == "merged" && len(rows) < 400 {
					continue // into one row group, as it was
				}
				t.Run(variable+"/"+name+"/"+writer, func(t *testing.T) {
					a := ask(t, variable, write(t, rows))
					sameAnswer(t, "pyarrow", a.Arrow, rows)
					sameAnswer(t, "DuckDB", a.DuckDB, rows)
					a.check(t)
				})
			}
		}
	}
}

// writers are the ways in which objects come about: segments, data files with
// bloom filters and several row groups, and what these are merged into.
var writers = map[string]func(testing.TB, []chain.Row) []byte{
	"segment":   func(t testing.TB, rows []chain.Row) []byte { return encode(t, rows, []byte("{}")) },
	"data file": func(t testing.TB, rows []chain.Row) []byte { return dataFile(t, smallGroups(), rows, 64, "{}") },
	"merged": func(t testing.TB, rows []chain.Row) []byte {
		n := len(rows) * 2 / 3
		return merge(t, smallGroups(), dataFile(t, smallGroups(), rows[:n], 64, "{}"), encode(t, rows[n:], nil))
	},
}

func smallGroups() *DataWriter { return NewDataWriter(DataOptions{GroupRows: 400}) }

// Columns that are looked for in data files have bloom filters, which a reader
// asks: it finds what is there, and what is not by none of its pages.
func TestReadersAskBloomFilters(t *testing.T) {
	rows := turnRows(3000)
	for variable := range pythons {
		a := ask(t, variable, dataFile(t, NewDataWriter(DataOptions{GroupRows: 1000}), rows, 64, "{}"))
		if got := strings.Join(a.Filtered, " "); got != "kind record_id session_id turn_id user_id" {
			t.Errorf("%s: DuckDB sees bloom filters on %q", variable, got)
		}
		if a.Excluded != 5 {
			t.Errorf("%s: an absent value was excluded by the filters of %d columns of 5", variable, a.Excluded)
		}
	}
}

// listRows makes rows that differ in their lists, in two row groups.
func listRows() []chain.Row {
	rows := turnRows(6)
	for i, list := range [][]string{nil, {}, {""}, {"a", ""}, nil, {"🦆", "\x00", "b"}} {
		rows[i].FallbackChain = list
		rows[i].Slots[audit.SlotContext] = []byte(strings.Repeat("{}", maxGroupBytes/8))
	}
	return rows
}

func sameAnswer(t *testing.T, who string, got []map[string]any, want []chain.Row) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d rows, want %d", who, len(got), len(want))
	}
	for i := range got {
		for j := range columns {
			c := &columns[j]
			w := c.form(&want[i])
			if list, ok := w.([]any); ok && len(list) == 0 {
				w = []any{}
			}
			if !reflect.DeepEqual(got[i][c.name], w) {
				t.Fatalf("%s: row %d: column %s is %.80q, want %.80q", who, i, c.name, got[i][c.name], w)
			}
		}
	}
}

// check holds what an answer says of the object's form.
func (a *answer) check(t *testing.T) {
	t.Helper()
	for name, n := range a.Found {
		if n != 0 {
			t.Errorf("DuckDB did not find %d rows by %s = …", n, name)
		}
	}
	if a.Missed != 0 {
		t.Errorf("pyarrow did not find %d rows by its filters", a.Missed)
	}
	for _, e := range a.Encodings {
		if !slices.Contains([]string{"PLAIN", "RLE", "RLE_DICTIONARY"}, e) {
			t.Errorf("encoding %s", e)
		}
	}
	if len(a.Codecs) > 0 && !slices.Equal(a.Codecs, []string{"ZSTD"}) {
		t.Errorf("codecs %q", a.Codecs)
	}
	if !slices.Equal(a.Keys, []string{metadataKey}) {
		t.Errorf("keys %q", a.Keys)
	}
	for i := range columns {
		if got, want := a.Types[columns[i].name], duckType[columns[i].kind]; got != want {
			t.Errorf("DuckDB: column %s is %s, want %s", columns[i].name, got, want)
		}
	}
}

var duckType = map[kind]string{
	kindText: "VARCHAR", kindBinary: "BLOB", kindInt32: "INTEGER", kindInt64: "BIGINT",
	kindTime: "TIMESTAMP WITH TIME ZONE", kindHash: "BLOB", kindList: "VARCHAR[]",
}

// The vectors were written by pyarrow: what it says of the columns of a golden
// object is what it says of ours.
func TestSchemaIsThatOfTheVectors(t *testing.T) {
	for variable := range pythons {
		want := ask(t, variable, readGolden(t, "segment.parquet"))
		got := ask(t, variable, encode(t, turnRows(2), nil))
		slices.Sort(got.Schema)
		slices.Sort(want.Schema)
		if !slices.Equal(got.Schema, want.Schema) {
			t.Errorf("%s\n\nwant\n\n%s", strings.Join(got.Schema, "\n"), strings.Join(want.Schema, "\n"))
		}
	}
}
