// Package duckdb holds tests that query objects of package parquet with DuckDB
// 1.5 in this process. It is a module of its own, as DuckDB is large and needs a
// C compiler: where there is none, there is nothing to test here.
//
// It exports nothing. Both DuckDBs that users have, as they install them, are
// tried by parquet/readers_it_test.go.
package duckdb
