//go:build it

package s3sink

import (
	"crypto/rand"
	"os"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/archivetest"
)

// itStore opens a fresh part of the bucket that LEDGERLAKE_IT_S3 names by its
// URL, with the credentials of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
// What the tests make stays: the bucket is theirs.
func itStore(t *testing.T) *Bucket {
	t.Helper()
	raw := os.Getenv("LEDGERLAKE_IT_S3")
	if raw == "" {
		t.Fatal("LEDGERLAKE_IT_S3 is not set: want the URL of a bucket to test on")
	}
	u, err := ParseURL(raw)
	if err != nil {
		t.Fatal(err)
	}
	u.Prefix += "it-" + strings.ToLower(rand.Text()) + "/"
	b, err := Open(t.Context(), u.String(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRealStoreIsABucket(t *testing.T) {
	archivetest.Run(t, func(t *testing.T) archive.Bucket { return itStore(t) })
}

// A real store passes the doctor in both forms, before and after it holds an
// archive, and holds nothing more afterwards.
func TestRealStorePassesTheDoctor(t *testing.T) {
	b := itStore(t)
	for _, make := range []string{"", archive.RootKey} {
		if make != "" {
			if _, err := b.Create(t.Context(), make, []byte(root)); err != nil {
				t.Fatal(err)
			}
		}
		for _, full := range []bool{false, true} {
			findings, err := Doctor(t.Context(), b, full)
			for _, f := range findings {
				t.Logf("%-20s %-5s %s", f.Name, f.Level, f.Detail)
			}
			if err != nil || Verdict(findings) != nil {
				t.Errorf("full=%v: %v, %v", full, err, Verdict(findings))
			}
		}
		keys, err := collect(b.List(t.Context(), "", ""))
		if got := strings.Join(keys, " "); err != nil || got != make {
			t.Errorf("after the doctor the store holds %q, %v; want %q", got, err, make)
		}
	}
}
