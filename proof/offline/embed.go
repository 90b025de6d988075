// Package offline holds the programs that check an archive, a proof bundle or an
// evidence pack without ledgerlake: for an auditor who would not take our word.
//
//	check.py    all of it; Python's standard library, and pyarrow to read Parquet
//	check.sql   rows, chains, trees and what anchors say, in DuckDB; not signatures
//	rows.sql    a view of all rows of an archive, compacted or not, for queries in DuckDB; it checks nothing
//
// They share no line with the product, and are written from docs/format.md
// alone. How they are run stands in docs/verify-without-ledgerlake.md.
package offline

import "embed"

// Programs are all files of both programs, at its root.
//
//go:embed check.py core.py layout.py archive.py proofs.py check.sql rows.sql
var Programs embed.FS

// PackChecker names the files of Programs that "check.py bundle FILE" and
// "check.py pack ZIP|FOLDER" take: no others, and no library. An evidence pack
// carries them.
var PackChecker = []string{"check.py", "core.py", "proofs.py"}
