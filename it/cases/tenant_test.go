//go:build it

package cases

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/it/oracle"
)

// named returns a call whose tenant is written only in its value, by the JSON
// text of its id.
func named(n int, id string) *kgo.Record {
	return &kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte(strings.ReplaceAll(call("T", n), `"T"`, id))}
}

func nameds(ids ...string) []*kgo.Record {
	records := make([]*kgo.Record, len(ids))
	for i, id := range ids {
		records[i] = named(i, id)
	}
	return records
}

// A tenant's id is a name and never a path, whatever it looks like.
func TestTenantIDsNeverBecomePaths(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.send(nameds(
		`"globex"`, `".."`, `"."`, `""`, `"a/../globex"`, `"/abs"`, `"a\\b"`, `"globex/"`, `"../../etc"`, `"__markers__"`, `"_partition"`,
		`"`+strings.Repeat("x", 256)+`"`, `"`+strings.Repeat("x", 257)+`"`, `"acme\u0000x"`, `"acme\n"`, `"acme\u0085"`)...)
	a := s.settle(oracle.Proved)
	bad := "bad_tenant_id"
	s.wantFates(a, topic, "row", bad, bad, bad, "row", "row", "row", "row", "row", bad, bad, "row", bad, bad, bad, bad)
	s.wantRows(a, `select turn_id from {rows} where tenant_id = 'globex'`, []any{"t-0"})
	s.wantRows(a, `select distinct tenant_id from {rows} where kind = 'rejected'`, []any{"_unattributed"})
	for _, key := range s.store.Keys("") {
		for _, part := range strings.Split(key, "/") {
			if part == "" || part == "." || part == ".." {
				t.Errorf("key %q", key)
			}
		}
	}
}

// Ids that differ in a byte are different tenants, also to a reader that
// guesses partitions from paths.
func TestTenantIDsStayApart(t *testing.T) {
	ids := []string{`"Serbia/srb%"`, `"x=y"`, `"a b"`, `"a+b"`, `"a%20b"`, `"東京"`, `"ACME"`, `"acme"`, "\"\u00fc\"", "\"u\u0308\"", `"day=1"`}
	s := newStage(t, faults3.Options{}, topic)
	s.send(nameds(ids...)...)
	a := s.settle(oracle.Proved)
	for _, read := range []string{"{rows}", "read_parquet('{glob}', hive_partitioning=true)"} {
		var got []string
		for _, row := range s.query(a, "select tenant_id from "+read+" order by kafka_offset") {
			got = append(got, `"`+row[0].(string)+`"`)
		}
		if strings.Join(got, " ") != strings.Join(ids, " ") {
			t.Errorf("%s gives %s", read, got)
		}
	}
}

// Ids that look like numbers, dates or nothing are text, and stay text when
// others join them.
func TestTenantIDsAreText(t *testing.T) {
	s := newStage(t, faults3.Options{}, topic)
	s.send(nameds(`"7"`, `"42"`)...)
	a := s.settle(oracle.Proved)
	s.wantRows(a, "select distinct typeof(tenant_id) from {rows}", []any{"VARCHAR"})
	for i, id := range []string{`"abc"`, `"007"`, `"2026-05-15"`, `"true"`, `"NULL"`, `"null"`, `"__HIVE_DEFAULT_PARTITION__"`} {
		s.send(named(2+i, id))
	}
	a = s.settle(oracle.Proved)
	s.wantFates(a, topic, "row", "row", "row", "row", "row", "row", "row", "row", "bad_tenant_id")
	s.wantRows(a, "select distinct typeof(tenant_id) from {rows}", []any{"VARCHAR"})
	s.wantRows(a, `select count(*) filter (tenant_id = 'NULL'), count(*) filter (tenant_id = 'null'), count(*) filter (tenant_id = '007'),
		count(*) filter (tenant_id = '7'), count(*) filter (tenant_id is null) from {rows}`, []any{"1", "1", "1", "1", "0"})
}
