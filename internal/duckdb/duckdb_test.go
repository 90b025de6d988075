//go:build cgo

package duckdb

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/ledgerlake/ledgerlake/audit"
	"github.com/ledgerlake/ledgerlake/chain"
	"github.com/ledgerlake/ledgerlake/parquet"
)

// The ends of the years that DuckDB can print in four digits, in microseconds:
// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999Z.
const (
	firstTime = -62_135_596_800_000_000
	lastTime  = 253_402_300_799_999_999
)

// row returns row n of a log.
func row(n int64) chain.Row {
	r := chain.Row{
		Record: audit.Record{
			TenantID: audit.Str("acme"), Topic: audit.Str("audit.calls"), TopicID: audit.Str("kTq2VqYJQ0mFvY8v2b3m0A"),
			Partition: audit.I64(3), Epoch: audit.I64(0), Seq: audit.I64(n), KafkaOffset: audit.I64(n),
			KafkaTimestamp: audit.I64(firstTime), ArchivedAt: audit.I64(lastTime), Kind: audit.Str(audit.KindCall),
			UserID: audit.Str(fmt.Sprintf("user-%d", n)),
		},
		RowHash: chain.Hash{byte(n), 0xFF, 31: byte(n)},
		RowSalt: chain.NullHash{Hash: chain.Hash{7}, Valid: true},
	}
	r.Slots[audit.SlotContext] = fmt.Appendf(nil, `{"n":%d,"nul":"a\u0000b","duck":"🦆"}`, n)
	if n%2 == 0 {
		r.FallbackChain = []string{"model-a", ""}
	}
	return r
}

// archive writes objects of 10, 0 and 300 rows, and returns a glob for them.
func archive(t *testing.T) string {
	t.Helper()
	dir, e, next := t.TempDir(), parquet.NewEncoder(), int64(0)
	for i, n := range []int64{10, 0, 300} {
		var rows []chain.Row
		for ; n > 0; n-- {
			rows = append(rows, row(next))
			next++
		}
		object, err := e.Encode(rows, []byte(`{"format":"ledgerlake-v1"}`))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.parquet", i)), object, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "*.parquet")
}

// Queries as users write them, over objects of several sizes and with no option.
func TestQueries(t *testing.T) {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Exec("set timezone = 'Asia/Tehran'"); err != nil {
		t.Fatal(err)
	}
	glob := archive(t)
	for query, want := range map[string]string{
		"select version()":                                   "v1.5.6",
		"select count(*) from {}":                            "310",
		"select count(distinct seq) from {}":                 "310",
		"select min(seq) || '-' || max(seq) from {}":         "0-309",
		"select count(*) from {} where seq between 5 and 14": "10",
		"select seq from {} where user_id = 'user-77'":       "77",
		"select seq from {} where row_hash = unhex('2aff" + strings.Repeat("00", 29) + "2a')":                    "42",
		"select count(*) from {} where row_salt is not null and user_salt is null":                               "310",
		"select count(*) from {} where archived_at = make_timestamptz(253402300799999999)":                       "310",
		"select count(*) from {} where epoch_us(kafka_timestamp) = -62135596800000000":                           "310",
		"select count(*) from {} where fallback_chain[1] = 'model-a' and fallback_chain[2] = ''":                 "155",
		"select count(*) from {} where fallback_chain is null":                                                   "155",
		"select sum((context->>'n')::int)::text from {}":                                                         "47895",
		"select context->>'duck' from {} where seq = 8":                                                          "🦆",
		"select count(*) from {} where context = '{\"n\":9,\"nul\":\"a\\u0000b\",\"duck\":\"🦆\"}'":               "1",
		"select count(*) from {} where kind = 'call' and tenant_id = 'acme' and prompts is null":                 "310",
		"select string_agg(distinct compression, ',') from parquet_metadata('" + glob + "')":                     "ZSTD",
		"select decode(value) from parquet_kv_metadata('" + glob + "') where decode(key) = 'ledgerlake' limit 1": `{"format":"ledgerlake-v1"}`,
		"select column_type from (describe select * from {}) where column_name = 'archived_at'":                  "TIMESTAMP WITH TIME ZONE",
		"select column_type from (describe select * from {}) where column_name = 'row_hash'":                     "BLOB",
		"select column_type from (describe select * from {}) where column_name = 'fallback_chain'":               "VARCHAR[]",
		"select column_name from (describe select * from {}) limit 1":                                            "tenant_id",
	} {
		var got string
		if err := db.QueryRow(strings.ReplaceAll(query, "{}", "'"+glob+"'")).Scan(&got); err != nil || got != want {
			t.Errorf("%s\n%s (%v), want %s", query, got, err, want)
		}
	}
}
