//go:build cgo

package duckdb

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/proof"
	"github.com/ledgerlake/ledgerlake/proof/prooftest"
)

// signed is an archive of two segments with an anchor each.
func signed() (*prooftest.Archive, *prooftest.Line) {
	a := prooftest.New()
	a.Signers = []*sign.Signer{prooftest.Signer("ledgerlake.example/root")}
	l := a.Line("audit.calls", 0)
	for range 2 {
		l.Segment(func(b *prooftest.Batch) { b.Call("acme"); b.Call("a/b"); b.Call("acme") })
		l.Anchor()
	}
	return a, l
}

// reencode has DuckDB write an object anew. replace is what stands behind
// SELECT *; the metadata is put back.
func reencode(t *testing.T, db *sql.DB, object []byte, replace string) []byte {
	t.Helper()
	in, out := filepath.Join(t.TempDir(), "in.parquet"), filepath.Join(t.TempDir(), "out.parquet")
	if err := os.WriteFile(in, object, 0o600); err != nil {
		t.Fatal(err)
	}
	var meta string
	query := fmt.Sprintf("select decode(value) from parquet_kv_metadata('%s') where decode(key) = 'ledgerlake'", in)
	if err := db.QueryRow(query).Scan(&meta); err != nil {
		t.Fatal(err)
	}
	write := fmt.Sprintf("copy (select * %s from read_parquet('%s')) to '%s' (format parquet, compression zstd, kv_metadata {ledgerlake: '%s'})",
		replace, in, out, strings.ReplaceAll(meta, "'", "''"))
	if _, err := db.Exec(write); err != nil {
		t.Fatalf("%v\n%s", err, write)
	}
	body, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// A segment that DuckDB wrote anew, with one value changed or with none, is found:
// as it is, with all objects behind it made anew, and with anchors that somebody
// signs anew who has the key.
func TestAReencodedSegmentIsFound(t *testing.T) {
	db, err := sql.Open("duckdb", "")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	keys := &sign.Ring{}
	if err := keys.Add(prooftest.Signer("ledgerlake.example/root").VKey(), sign.AllRoles, "given"); err != nil {
		t.Fatal(err)
	}
	exit := func(a *prooftest.Archive) int {
		r, err := proof.Verify(context.Background(), prooftest.Bucket(a.Objects()), proof.Options{Keys: keys})
		if err != nil {
			t.Fatal(err)
		}
		return r.ExitCode()
	}
	if a, _ := signed(); exit(a) != 0 {
		t.Fatal("the archive is not proved to begin with")
	}
	for _, replace := range []string{
		"",
		"replace (case when seq = 1 then 'provider-error' else status end as status)",
		"replace (case when seq = 1 then output_tokens + 1 else output_tokens end as output_tokens)",
		"replace (case when seq = 1 then replace(decision, 'model-x', 'model-z') else decision end as decision)",
		"replace (case when seq = 0 then row_salt else row_hash end as row_hash)",
		"replace ('user-1' as user_id)",
	} {
		for _, cover := range []string{"as it is", "linked anew", "signed anew"} {
			a, l := signed()
			before := l.Segments[0].Body
			l.Segments[0].Body = reencode(t, db, before, replace)
			if cover != "as it is" {
				l.Relink(1)
			}
			if cover == "signed anew" {
				l.Reanchor()
			}
			if got := exit(a); got != 1 {
				t.Errorf("%q, %s: exit %d", replace, cover, got)
			}
		}
	}
}
