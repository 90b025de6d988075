//go:build it

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/ledgerlake/ledgerlake/it/bench"
)

// duckdb runs the SQL over an archive, which must find no fault.
func (b *runner) duckdb(ctx context.Context, folder string) (*bench.Spent, error) {
	s, err := bench.Spend(ctx, strings.NewReader(script), nil, b.python, "-", b.sql, folder)
	if err != nil {
		return nil, fmt.Errorf("the SQL: %w", err)
	}
	fmt.Fprintf(b.out, "DuckDB %s", s.Out)
	return s, nil
}

// script runs the file of its first argument. The last statement is an error
// where the archive has a fault.
const script = `import sys, duckdb
con = duckdb.connect()
con.execute("SET VARIABLE archive = '" + sys.argv[2].replace("'", "''") + "'")
con.execute(open(sys.argv[1], encoding="utf-8").read())
print(duckdb.__version__, "found no fault")
`
