package sqlview

import (
	"encoding/hex"
	"fmt"
	"strings"
)

// An Engine is a dialect of SQL. The engines are [DuckDB], [Athena], [Trino] and
// [Spark].
type Engine struct {
	Name  string // as --engine has it
	Title string

	quote    string          // around identifiers
	types    map[kind]string // of casts
	create   string          // begins the statement of the first view
	view     string          // begins those of the others
	manifest bool            // reads manifests, and no list of files
	objects  func(*writer)   // writes the first view, where there are objects
	setup    string          // a statement that comes first
	notes    []string

	escape   func(string) string           // between the quotes of a literal
	fromHex  string                        // a text of the bytes in hex
	json     func(col, path string) string // the member's text; null where there is none
	jsonPart func(col, path string) string // the member as JSON
	cast     func(expr, to string) string  // null where it cannot be
	micros   func(expr string) string      // of a time: microseconds since 1970
	day      func(expr string) string      // of a time: its date in UTC
	moment   func(expr string) string      // of a time: a timestamp in UTC
	quantile func(expr, q string) string
	total    func(expr string) string // the sum of whole numbers, whatever producers say
	sha256   func(expr string) string // of a text: its SHA-256, in lower-case hex
}

// Engines returns all of them.
func Engines() []*Engine { return []*Engine{DuckDB, Athena, Trino, Spark} }

// EngineOf returns the engine of a name. The error matches [ErrUnknown].
func EngineOf(name string) (*Engine, error) {
	var names []string
	for _, e := range Engines() {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return nil, fmt.Errorf("engine %q: %w: want one of %s", name, ErrUnknown, strings.Join(names, ", "))
}

// DuckDB is DuckDB 1.5 and 2.0.
var DuckDB = &Engine{
	Name: "duckdb", Title: "DuckDB", quote: `"`, create: "CREATE OR REPLACE VIEW", view: "CREATE OR REPLACE VIEW",
	types: map[kind]string{
		text: "VARCHAR", binary: "BLOB", int32Kind: "INTEGER", int64Kind: "BIGINT", timestamp: "TIMESTAMP WITH TIME ZONE", list: "VARCHAR[]",
		double: "DOUBLE", boolean: "BOOLEAN", date: "DATE",
	},
	objects: duckObjects,
	escape:  doubled,
	fromHex: "decode(unhex('%s'))",
	// A text that DuckDB's parser of JSON does not take, as one with half of a
	// surrogate pair, would else end the whole query.
	json: func(col, path string) string { return fmt.Sprintf("TRY(json_extract_string(%s, '%s'))", col, path) },
	jsonPart: func(col, path string) string {
		return fmt.Sprintf("TRY(CAST(json_extract(%s, '%s') AS VARCHAR))", col, path)
	},
	cast:     tryCast,
	micros:   func(expr string) string { return "epoch_us(" + expr + ")" },
	day:      func(expr string) string { return "CAST(make_timestamp(epoch_us(" + expr + ")) AS DATE)" },
	moment:   func(expr string) string { return "make_timestamp(epoch_us(" + expr + "))" },
	quantile: func(expr, q string) string { return "quantile_cont(" + expr + ", " + q + ")" },
	total:    func(expr string) string { return "sum(" + expr + ")" }, // of 128 bits
	sha256:   func(expr string) string { return "sha256(" + expr + ")" },
	notes: []string{
		"The views name files, which stay readable for graceSeconds of ledgerlake.json (one hour) once compaction goes on: make them anew after that.",
		"A hash is compared so: row_hash = unhex('8d2a0660…').",
		"Over s3:// DuckDB needs its extension httpfs, and credentials:",
		"  INSTALL httpfs; LOAD httpfs; CREATE SECRET (TYPE s3, PROVIDER credential_chain)",
		"  for another store than AWS's: CREATE SECRET (TYPE s3, KEY_ID '…', SECRET '…', ENDPOINT 'HOST:PORT', URL_STYLE 'path', USE_SSL false)",
	},
}

// Athena is Amazon Athena, engine version 3.
var Athena = func() *Engine {
	e := *Trino
	e.Name, e.Title = "athena", "Amazon Athena"
	e.notes = []string{
		"Run the statements one after the other, in a database of your choice.",
		"The table reads what ledgerlake-compact keeps below sql/rows/ where compact.sql-manifests is on: rows that came after its last pass are not in it (docs/queries.md).",
		"A hash is compared so: row_hash = from_hex('8d2a0660…').",
	}
	return &e
}()

// Trino is Trino with the Hive connector.
var Trino = &Engine{
	Name: "trino", Title: "Trino", quote: `"`, view: "CREATE OR REPLACE VIEW", manifest: true,
	types: map[kind]string{
		text: "varchar", binary: "varbinary", int32Kind: "integer", int64Kind: "bigint", timestamp: "timestamp", list: "array(varchar)",
		double: "double", boolean: "boolean", date: "date",
	},
	escape:   doubled,
	fromHex:  "from_utf8(from_hex('%s'))",
	json:     func(col, path string) string { return fmt.Sprintf("json_extract_scalar(%s, '%s')", col, path) },
	jsonPart: func(col, path string) string { return fmt.Sprintf("json_format(json_extract(%s, '%s'))", col, path) },
	cast:     tryCast,
	// Times come in milliseconds: none is called younger than it is.
	micros:   func(expr string) string { return "CAST(floor(to_unixtime(" + expr + ") * 1000) AS bigint) * 1000" },
	day:      func(expr string) string { return "CAST(" + expr + " AS date)" },
	moment:   func(expr string) string { return expr },
	quantile: func(expr, q string) string { return "approx_percentile(" + expr + ", " + q + ")" },
	total:    decimalSum,
	sha256:   func(expr string) string { return "lower(to_hex(sha256(to_utf8(" + expr + "))))" },
	notes: []string{
		"The table is one of the Hive connector, and reads what ledgerlake-compact keeps below sql/rows/ where compact.sql-manifests is on: rows that came after its last pass are not in it (docs/queries.md).",
		"A hash is compared so: row_hash = from_hex('8d2a0660…').",
	},
}

// Spark is Spark SQL, 4.
var Spark = &Engine{
	Name: "spark", Title: "Apache Spark", quote: "`", create: "CREATE OR REPLACE TEMPORARY VIEW", view: "CREATE OR REPLACE TEMPORARY VIEW",
	types: map[kind]string{
		text: "STRING", binary: "BINARY", int32Kind: "INT", int64Kind: "BIGINT", timestamp: "TIMESTAMP", list: "ARRAY<STRING>",
		double: "DOUBLE", boolean: "BOOLEAN", date: "DATE",
	},
	objects:  sparkObjects,
	setup:    "SET TIME ZONE 'UTC'",
	escape:   sparkEscaped,
	fromHex:  "decode(unhex('%s'), 'UTF-8')",
	json:     func(col, path string) string { return fmt.Sprintf("get_json_object(%s, '%s')", col, path) },
	jsonPart: func(col, path string) string { return fmt.Sprintf("get_json_object(%s, '%s')", col, path) },
	cast:     tryCast,
	micros:   func(expr string) string { return "unix_micros(" + expr + ")" },
	day:      func(expr string) string { return "CAST(" + expr + " AS DATE)" },
	moment:   func(expr string) string { return expr },
	quantile: func(expr, q string) string { return "percentile(" + expr + ", " + q + ")" },
	total:    decimalSum,
	sha256:   func(expr string) string { return "sha2(" + expr + ", 256)" },
	notes: []string{
		"The views name files, which stay readable for graceSeconds of ledgerlake.json (one hour) once compaction goes on: make them anew after that.",
		"A hash is compared so: row_hash = unhex('8d2a0660…').",
	},
}

func tryCast(expr, to string) string { return "TRY_CAST(" + expr + " AS " + to + ")" }

func doubled(s string) string { return strings.ReplaceAll(s, "'", "''") }

func backslashed(s string) string { return strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) }

// sparkEscaped leaves no ${env:NAME} either: Spark puts the value of such a variable
// in its place before it reads the text, within literals too.
func sparkEscaped(s string) string { return strings.ReplaceAll(backslashed(s), "$", `\u0024`) }

// decimalSum is a sum of 38 digits: one of 64 bits ends the query of everybody where
// a single producer says that a call took 2⁶³ tokens.
func decimalSum(expr string) string { return "sum(CAST(" + expr + " AS decimal(38, 0)))" }

// ReadsManifests reports whether the engine reads manifests, and no list of files.
func (e *Engine) ReadsManifests() bool { return e.manifest }

// CheckLocation reports whether the engine reads from there.
func (e *Engine) CheckLocation(location string) error {
	switch {
	case e.manifest && !strings.HasPrefix(location, "s3://"):
		return fmt.Errorf("%s reads from s3://, and the archive is in %q", e.Title, location)
	case e == DuckDB && strings.ContainsAny(location, "*?["):
		return fmt.Errorf("%s takes %q for a pattern", e.Title, location)
	case e == Spark && strings.Count(location, ":") > strings.Count(location, "://"):
		return fmt.Errorf("%s reads no files below a name with a colon, as in %q", e.Title, location)
	}
	return nil
}

// ident returns a name as an identifier. Names are ours, and have no quotes.
func (e *Engine) ident(name string) string { return e.quote + name + e.quote }

// literal returns any text as a literal. One with control characters is written
// in hex: of those some engines end their input, and some shells.
func (e *Engine) literal(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Sprintf(e.fromHex, hex.EncodeToString([]byte(s)))
	}
	return "'" + e.escape(s) + "'"
}

// duckObjects writes a view of a list of files.
func duckObjects(w *writer) {
	w.f("%s %s AS\nSELECT * FROM read_parquet([\n", w.d.create, Table)
	for i, o := range w.m.Objects {
		w.f("  %s%s\n", w.d.literal(w.o.Location+o), strings.Repeat(",", min(1, len(w.m.Objects)-1-i)))
	}
	w.f("], hive_partitioning = false);\n\n")
}

// sparkObjects writes a view of a list of files, which Spark takes as one pattern
// of alternatives. Keys have no character that means something there.
func sparkObjects(w *writer) {
	path := globQuote(w.o.Location) + "{" + strings.Join(w.m.Objects, ",") + "}"
	w.f("%s %s USING parquet OPTIONS (path %s);\n\n", w.d.create, Table, w.d.literal(path))
}

// globQuote takes their meaning from the characters of Hadoop's patterns.
func globQuote(s string) string {
	return strings.NewReplacer(`\`, `\\`, `{`, `\{`, `}`, `\}`, `[`, `\[`, `]`, `\]`, `*`, `\*`, `?`, `\?`, `,`, `\,`).Replace(s)
}
