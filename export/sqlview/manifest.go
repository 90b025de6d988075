package sqlview

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
)

// partitionColumn is the column by which the table of all manifests is divided.
const partitionColumn = "manifest_tenant"

// hiveTypes are those of a table of Hive.
var hiveTypes = map[kind]string{text: "string", binary: "binary", int32Kind: "int", int64Kind: "bigint", timestamp: "timestamp", list: "array<string>"}

// manifestTable writes the table over the manifests, with each tenant as a
// partition of it: what a manifest names may hold rows of other tenants too, and
// only those of its own count.
func (w *writer) manifestTable() {
	ddl := w.hiveTable()
	tenants := w.tenants(w.m.Manifests)
	if w.d == Athena {
		w.f("%s;\n\n", ddl)
		for _, t := range tenants {
			w.f("ALTER TABLE %s ADD IF NOT EXISTS PARTITION (%s = %s) LOCATION %s;\n", Table, partitionColumn, hiveLiteral(t), hiveLiteral(w.o.Location+archive.ManifestFolder(t)))
		}
		w.f("\n")
		return
	}
	w.comment("Trino makes no such table itself: make it by Hive, Spark or Athena in the same metastore, once:")
	for line := range strings.Lines(ddl + "\n") {
		w.f("--   %s", line)
	}
	w.comment("Each tenant is a partition. In the catalog that is chosen by USE, with hive.allow-register-partition-procedure=true:")
	w.comment("One that is registered already is an error that does no harm: trino --ignore-errors --file=… goes on.")
	for _, t := range tenants {
		w.f("CALL system.register_partition(%s, '%s', ARRAY['%s'], ARRAY[%s], %s);\n", w.d.literal(cmp.Or(w.o.Schema, "default")), Table, partitionColumn, w.d.literal(t), w.d.literal(w.o.Location+archive.ManifestFolder(t)))
	}
	w.f("\n")
}

// hiveTable returns the statement that makes the table.
func (w *writer) hiveTable() string {
	var all []string
	for _, c := range columns {
		all = append(all, fmt.Sprintf("  `%s` %s", c.name, hiveTypes[c.kind]))
	}
	return fmt.Sprintf("CREATE EXTERNAL TABLE IF NOT EXISTS %s (\n%s\n)\nPARTITIONED BY (`%s` string)\n"+
		"ROW FORMAT SERDE 'org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe'\n"+
		"STORED AS INPUTFORMAT 'org.apache.hadoop.hive.ql.io.SymlinkTextInputFormat'\n"+
		"OUTPUTFORMAT 'org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat'\n"+
		"LOCATION %s", Table, strings.Join(all, ",\n"), partitionColumn, hiveLiteral(w.o.Location+archive.ManifestPrefix))
}

// hiveLiteral returns a text in Hive's dialect.
func hiveLiteral(s string) string { return "'" + backslashed(s) + "'" }
