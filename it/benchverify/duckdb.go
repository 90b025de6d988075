//go:build it

package main

import (
	"context"
	"fmt"
	"strings"
)

// duckdb runs the SQL over an archive, which must find no fault.
func (b *bench) duckdb(ctx context.Context, folder string) (*spent, error) {
	s, err := spend(ctx, strings.NewReader(script), b.python, "-", b.sql, folder)
	if err != nil {
		return nil, fmt.Errorf("the SQL: %w", err)
	}
	fmt.Fprintf(b.out, "DuckDB %s", s.out)
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
