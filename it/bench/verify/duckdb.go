//go:build it

package verify

import (
	"context"
	"fmt"
	"strings"

	"github.com/ledgerlake/ledgerlake/it/bench"
)

// duckdb runs the SQL over an archive, which must find no fault.
func (b *Bench) duckdb(ctx context.Context, folder string) (*bench.Spent, error) {
	s, err := bench.Spend(ctx, strings.NewReader(script), nil, b.Python, "-", b.SQL, folder)
	if err != nil {
		return nil, fmt.Errorf("the SQL: %w", err)
	}
	fmt.Fprintf(b.Out, "DuckDB %s", s.Out)
	return s, nil
}

// scan has DuckDB read every value of the segments, and nothing else.
func (b *Bench) scan(ctx context.Context, folder string) (*bench.Spent, error) {
	s, err := bench.Spend(ctx, strings.NewReader(scanScript), nil, b.Python, "-", folder)
	if err != nil {
		return nil, fmt.Errorf("reading by DuckDB: %w", err)
	}
	return s, nil
}

// scanScript takes a hash of each row, as a struct of all columns.
const scanScript = `import sys, duckdb
files = sys.argv[1].replace("'", "''") + "/log/**/*.parquet"
print(duckdb.connect().execute(f"select count(*), bit_xor(hash(t)) from read_parquet('{files}', hive_partitioning = false) t").fetchall())
`

// script runs the file of its first argument. The last statement is an error
// where the archive has a fault.
const script = `import sys, duckdb
con = duckdb.connect()
con.execute("SET VARIABLE archive = '" + sys.argv[2].replace("'", "''") + "'")
con.execute(open(sys.argv[1], encoding="utf-8").read())
print(duckdb.__version__, "found no fault")
`
