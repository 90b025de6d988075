//go:build it

package s3sink

import (
	"bytes"
	"crypto/rand"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

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
	return itOpen(t, raw)
}

// eachStore runs a test on that bucket and on each of LEDGERLAKE_IT_S3_MORE.
func eachStore(t *testing.T, check func(t *testing.T, raw string)) {
	for _, raw := range strings.Fields(os.Getenv("LEDGERLAKE_IT_S3") + " " + os.Getenv("LEDGERLAKE_IT_S3_MORE")) {
		u, err := ParseURL(raw)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(u.Bucket, func(t *testing.T) { check(t, raw) })
	}
}

func itOpen(t *testing.T, raw string) *Bucket {
	t.Helper()
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

func TestRealStoreIsASwapper(t *testing.T) {
	eachStore(t, func(t *testing.T, raw string) {
		archivetest.RunSwapper(t, func(t *testing.T) archive.Swapper { return itOpen(t, raw) })
	})
}

// It is one with versions and without, as far as the bucket has them.
func TestRealStoreIsAStore(t *testing.T) {
	eachStore(t, func(t *testing.T, raw string) {
		archivetest.RunStore(t, func(t *testing.T) *archivetest.Yard {
			b := itOpen(t, raw)
			return itYard(t, b, itVersioning(t, b))
		})
	})
}

func itVersioning(t *testing.T, b *Bucket) archive.Versioning {
	t.Helper()
	out, err := b.client.GetBucketVersioning(t.Context(), &s3.GetBucketVersioningInput{Bucket: &b.url.Bucket})
	if err != nil {
		t.Log("the store tells nothing of versions: ", err)
		return archive.Unversioned
	}
	return map[types.BucketVersioningStatus]archive.Versioning{
		types.BucketVersioningStatusEnabled: archive.Versioned, types.BucketVersioningStatusSuspended: archive.Suspended,
	}[out.Status]
}

// itYard does by the SDK what no Store can.
func itYard(t *testing.T, b *Bucket, versioning archive.Versioning) *archivetest.Yard {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	return &archivetest.Yard{
		Store: b, Versioning: versioning,
		Overwrite: func(key string, body []byte) {
			_, err := b.client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &b.url.Bucket, Key: b.fullKey(key), Body: bytes.NewReader(body)})
			must(err)
		},
		Remove: func(key string) {
			_, err := b.client.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &b.url.Bucket, Key: b.fullKey(key)})
			must(err)
		},
		Begin: func(key string) {
			_, err := b.client.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: &b.url.Bucket, Key: b.fullKey(key)})
			must(err)
		},
	}
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

// It passes the doctor of compact as well, which leaves nothing either.
func TestRealStorePassesTheDoctorOfCompact(t *testing.T) { eachStore(t, passesTheDoctorOfCompact) }

func passesTheDoctorOfCompact(t *testing.T, raw string) {
	b := itOpen(t, raw)
	if _, err := b.Create(t.Context(), archive.RootKey, []byte(root)); err != nil {
		t.Fatal(err)
	}
	before := versionsOf(t, b)
	for _, full := range []bool{false, true} {
		findings, err := DoctorCompact(t.Context(), b, full)
		for _, f := range findings {
			t.Logf("%-20s %-5s %s", f.Name, f.Level, f.Detail)
		}
		if err != nil || Verdict(findings) != nil {
			t.Errorf("full=%v: %v, %v", full, err, Verdict(findings))
		}
	}
	if after := versionsOf(t, b); !slices.Equal(after, before) {
		t.Errorf("after the doctor the store holds %+v, want %+v", after, before)
	}
}

// In a bucket with Object Lock an anchor stays, a data file goes, and what keeps
// the anchor is told apart from what is forbidden.
func TestRealStoreKeepsWhatIsLocked(t *testing.T) { eachStore(t, keepsWhatIsLocked) }

func keepsWhatIsLocked(t *testing.T, raw string) {
	b := itOpen(t, raw)
	out, err := b.client.GetObjectLockConfiguration(t.Context(), &s3.GetObjectLockConfigurationInput{Bucket: &b.url.Bucket})
	if err != nil || out.ObjectLockConfiguration.ObjectLockEnabled != types.ObjectLockEnabledEnabled {
		t.Skip("the bucket has no Object Lock")
	}
	b.url.Options.Locks = map[string]Lock{"anchor": {Governance, 1}}
	if _, err := b.Create(t.Context(), archive.RootKey, []byte(root)); err != nil {
		t.Fatal(err)
	}
	findings, err := DoctorCompact(t.Context(), b, false)
	if last := findings[len(findings)-1]; err != nil || last.Name != FindingLocks || last.Level != OK {
		t.Errorf("the doctor says %+v of a lock that can be set, %v", last, err)
	}
	for _, key := range []string{"anchor/x", "data/x", "log/x"} {
		if _, err := b.Create(t.Context(), key, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	kept := b.Delete(t.Context(), versionsOf(t, b))
	if len(kept) != 1 || kept[0].Key != "anchor/x" || !errors.Is(kept[0].Err, archive.ErrLocked) {
		t.Errorf("kept are %+v, want anchor/x alone, which is locked", kept)
	}
	for _, k := range kept {
		if err := b.deleteRetrying(t.Context(), k.Version, true); err != nil {
			t.Errorf("past GOVERNANCE: %v", err)
		}
	}
}
