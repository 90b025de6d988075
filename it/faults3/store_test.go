package faults3_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/archivetest"
	"github.com/ledgerlake/ledgerlake/it/faults3"
	"github.com/ledgerlake/ledgerlake/s3sink"
)

// bucket is how the product sees a server.
func bucket(t *testing.T, srv *faults3.Server) *s3sink.Bucket {
	t.Helper()
	b, err := s3sink.Open(t.Context(), "s3://"+faults3.Bucket+"/p", s3sink.Options{Endpoint: srv.URL, AccessKey: "a", SecretKey: "b", Attempts: 2})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Without faults it is a store as good as any: the suite that real stores and
// the product's own fakes are held to says so.
func TestAStoreOfVersions(t *testing.T) {
	for name, o := range map[string]faults3.Options{
		"plain": {}, "two a page": {PageSize: 2}, "versioned": {Versioned: true}, "versioned, two a page": {Versioned: true, PageSize: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			archivetest.RunStore(t, func(t *testing.T) *archivetest.Yard { return yard(t, start(t, o), o) })
		})
	}
	t.Run("bucket", func(t *testing.T) {
		t.Parallel()
		archivetest.Run(t, func(t *testing.T) archive.Bucket { return bucket(t, start(t, faults3.Options{Versioned: true})) })
	})
}

func yard(t *testing.T, srv *faults3.Server, o faults3.Options) *archivetest.Yard {
	c := client(t, srv, nil)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	y := &archivetest.Yard{
		Store: bucket(t, srv),
		Overwrite: func(key string, body []byte) {
			_, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String(faults3.Bucket), Key: aws.String("p/" + key), Body: bytes.NewReader(body)})
			must(err)
		},
		Remove: func(key string) { remove(t, c, "p/"+key, "") },
		Begin: func(key string) {
			_, err := c.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: aws.String(faults3.Bucket), Key: aws.String("p/" + key)})
			must(err)
		},
	}
	if o.Versioned {
		y.Versioning, y.Suspend = archive.Versioned, srv.Suspend
	}
	return y
}

// An upload in parts makes one object, whose ETag is not its MD5; until then its
// parts lie there, and are seen by whoever looks at everything.
func TestUploads(t *testing.T) {
	srv := start(t, faults3.Options{})
	c := client(t, srv, nil)
	begun, err := c.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: aws.String(faults3.Bucket), Key: aws.String("k")})
	if err != nil {
		t.Fatal(err)
	}
	var done []types.CompletedPart
	for i, body := range []string{"one ", "two"} {
		n := aws.Int32(int32(i + 1))
		out, err := c.UploadPart(t.Context(), &s3.UploadPartInput{Bucket: aws.String(faults3.Bucket), Key: aws.String("k"), UploadId: begun.UploadId, PartNumber: n, Body: strings.NewReader(body)})
		if err != nil {
			t.Fatal(err)
		}
		done = append(done, types.CompletedPart{ETag: out.ETag, PartNumber: n})
	}
	seen := 0
	for range srv.Everything() {
		seen++
	}
	if seen != 2 || len(srv.Keys("")) != 0 {
		t.Errorf("%d parts are seen and keys %q, want 2 and none", seen, srv.Keys(""))
	}
	out, err := c.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{
		Bucket: aws.String(faults3.Bucket), Key: aws.String("k"), UploadId: begun.UploadId, MultipartUpload: &types.CompletedMultipartUpload{Parts: done},
	})
	if err != nil || !strings.HasSuffix(*out.ETag, `-2"`) {
		t.Fatalf("completed: %v, %v", out, err)
	}
	if body, ok := srv.Object("k"); !ok || string(body) != "one two" {
		t.Errorf("the object holds %q, %v", body, ok)
	}
}

// What is locked stays, and is not called deleted, one by one nor among others;
// what some keys of a delete meet, others do not.
func TestLocksAndKeysThatFail(t *testing.T) {
	srv := start(t, faults3.Options{Versioned: true, ObjectLock: true})
	b, err := s3sink.Open(t.Context(), "s3://"+faults3.Bucket+"/p", s3sink.Options{
		Endpoint: srv.URL, AccessKey: "a", SecretKey: "b", Attempts: 1,
		Locks: map[string]s3sink.Lock{"anchor": {Mode: s3sink.Compliance, Days: 1}, "catalog": {Mode: s3sink.Governance, Days: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"anchor/1", "catalog/1", "data/1", "data/2", "log/1"} {
		if _, err := b.Create(t.Context(), key, []byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	srv.Add(faults3.Rule{Op: faults3.DeleteMany, Fault: faults3.KeysFail("data/2", "SlowDown")})
	var all []archive.Version
	for v, err := range b.Versions(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	kept := b.Delete(t.Context(), all)
	if len(kept) != 3 || !errors.Is(kept[0].Err, archive.ErrLocked) || !errors.Is(kept[1].Err, archive.ErrLocked) || kept[2].Key != "data/2" {
		t.Errorf("kept are %+v; want anchor/1 and catalog/1, which are locked, and data/2, which failed", kept)
	}
	if kept = b.Delete(t.Context(), all); len(kept) != 2 {
		t.Errorf("kept the second time are %+v", kept)
	}
	seen := 0
	for range srv.Everything() {
		seen++
	}
	if seen != 2 {
		t.Errorf("%d versions are there, want 2", seen)
	}
}
