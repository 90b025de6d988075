//go:build it

// Package oracle looks at what ingest left behind, by means that are not ours:
// DuckDB in two versions, pyarrow, a chain checker in Python, and the group's
// offsets in Kafka. It also asks ledgerlake-verify, so that a test can hold the
// one against the others.
//
// It reads an archive as plain files in a folder. It decides nothing: tests do.
package oracle

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/it/parts"
)

// An Archive is the folder of one.
type Archive struct {
	Dir string
}

// Glob is what a DuckDB user types to read all segments, as the README says.
func (a Archive) Glob() string { return filepath.Join(a.Dir, "log", "**", "*.parquet") }

// Query runs SQL in both DuckDBs and returns the answer, which must be the
// same. "{rows}" stands for all rows of the archive and "{glob}" for the glob.
// Statements but the last are preparations.
func (a Archive) Query(statements ...string) ([][]any, error) {
	texts := make([]string, len(statements))
	for i, s := range statements {
		s = strings.ReplaceAll(s, "{rows}", "read_parquet('{glob}')")
		texts[i] = strings.ReplaceAll(s, "{glob}", strings.ReplaceAll(a.Glob(), "'", "''"))
	}
	var first [][]any
	for i, d := range parts.DuckDBs() {
		rows, err := d.Query(texts...)
		if err != nil {
			return nil, err
		}
		if !strings.Contains(strings.ToLower(texts[len(texts)-1]), "order by") {
			sortRows(rows) // the order of an engine is no answer
		}
		if i == 0 {
			first = rows
		} else if !reflect.DeepEqual(first, rows) {
			return nil, fmt.Errorf("the DuckDBs do not agree on %q: %v, %v", statements[len(statements)-1], first, rows)
		}
	}
	return first, nil
}

// Segments returns the metadata of all segments, as DuckDB finds it in their
// footers.
func (a Archive) Segments() ([]archive.Segment, error) {
	rows, err := a.Query("select decode(value) from parquet_kv_metadata('{glob}') where decode(key) = 'ledgerlake' order by file_name")
	if err != nil {
		return nil, err
	}
	segments := make([]archive.Segment, len(rows))
	for i, row := range rows {
		if err := json.Unmarshal([]byte(row[0].(string)), &segments[i]); err != nil {
			return nil, err
		}
	}
	return segments, nil
}

// ReadWithPyArrow reads every column of every segment, and returns how many
// rows and files there are.
func (a Archive) ReadWithPyArrow() (rows, files int64, err error) {
	out, err := script("read.py", filepath.Join(a.Dir, "log"))
	if err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscan(out, &rows, &files)
	return rows, files, err
}

// CheckChain recomputes every hash of the archive in Python, from the stored
// columns and the text of the format alone. It returns the number of rows, or
// an error that names the first row that is wrong.
func (a Archive) CheckChain() (rows int64, err error) {
	out, err := script("chain.py", a.Dir)
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(out, &rows)
	return rows, err
}

// script runs one of it/python and returns what it printed.
func script(name string, args ...string) (string, error) {
	python := parts.Python("LEDGERLAKE_IT_PYTHON15", "py15")
	cmd := exec.Command(python, append([]string{filepath.Join(parts.Root(), "it", "python", name)}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(stderr.String()))
	}
	return string(out), nil
}

func sortRows(rows [][]any) {
	slices.SortFunc(rows, func(a, b []any) int { return strings.Compare(fmt.Sprint(a...), fmt.Sprint(b...)) })
}
