//go:build it

package parts

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// A DuckDB is one version of DuckDB, run by a Python that has it. The Python
// starts with the first query, and ends with the test.
type DuckDB struct {
	Version string // as it says itself: 1.5.6

	python string
	mu     sync.Mutex
	in     io.Writer // nil until it runs
	out    *bufio.Reader
}

// DuckDBs returns both versions that an archive must be readable by.
var DuckDBs = sync.OnceValue(func() []*DuckDB {
	return []*DuckDB{
		{Version: "1.5.6", python: Python("LEDGERLAKE_IT_PYTHON15", "py15")},
		{Version: "2.0.1", python: Python("LEDGERLAKE_IT_PYTHON20", "py20")},
	}
})

// Python returns the interpreter that the variable names, or that of a venv of
// it/.build.
func Python(variable, venv string) string {
	if p := os.Getenv(variable); p != "" {
		return p
	}
	return filepath.Join(Build(), venv, "bin", "python")
}

// Query runs statements in a new database in memory and returns the rows of
// the last one. A cell is nil, or the text that Python makes of the value;
// binary values are lower-case hex. It may be called concurrently.
func (d *DuckDB) Query(statements ...string) ([][]any, error) {
	var reply struct {
		Rows  [][]any
		Error string
	}
	answer, err := d.ask(statements)
	if err == nil {
		err = json.Unmarshal(answer, &reply)
	}
	if err == nil && reply.Error != "" {
		err = errors.New(reply.Error)
	}
	if err != nil {
		return nil, fmt.Errorf("DuckDB %s: %w", d.Version, err)
	}
	return reply.Rows, nil
}

// ask sends one request and returns the line that answers it.
func (d *DuckDB) ask(statements []string) ([]byte, error) {
	request, err := json.Marshal(statements)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.in == nil {
		if err := d.start(); err != nil {
			return nil, err
		}
	}
	if _, err := d.in.Write(append(request, '\n')); err != nil {
		return nil, err
	}
	return d.out.ReadBytes('\n')
}

func (d *DuckDB) start() error {
	cmd := exec.Command(d.python, filepath.Join(Root(), "it", "python", "query.py"))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = ownGroup()
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	d.in, d.out = in, bufio.NewReader(out)
	return cmd.Start() // it ends when its stdin does: with this process
}
