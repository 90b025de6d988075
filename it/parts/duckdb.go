//go:build it

package parts

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A DuckDB is one version of DuckDB, run by a Python that has it.
type DuckDB struct {
	Version string // as it says itself: 1.5.6
	python  string
}

// DuckDBs returns both versions that an archive must be readable by.
func DuckDBs() []DuckDB {
	return []DuckDB{
		{"1.5.6", Python("LEDGERLAKE_IT_PYTHON15", "py15")},
		{"2.0.1", Python("LEDGERLAKE_IT_PYTHON20", "py20")},
	}
}

// Python returns the interpreter that the variable names, or that of a venv of
// it/.build.
func Python(variable, venv string) string {
	if p := os.Getenv(variable); p != "" {
		return p
	}
	return filepath.Join(Build(), venv, "bin", "python")
}

// Query runs statements in a new database in memory and returns the rows of
// the last one. A cell is nil, or the text that DuckDB makes of the value;
// binary values are lower-case hex.
func (d DuckDB) Query(statements ...string) ([][]any, error) {
	in, err := json.Marshal(statements)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(d.python, filepath.Join(Root(), "it", "python", "query.py"))
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("DuckDB %s: %w: %s", d.Version, err, strings.TrimSpace(stderr.String()))
	}
	var rows [][]any
	if err := json.Unmarshal(out, &rows); err != nil {
		return nil, fmt.Errorf("DuckDB %s: %w", d.Version, err)
	}
	return rows, nil
}
