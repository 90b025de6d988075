package faults3_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"github.com/ledgerlake/ledgerlake/it/faults3"
)

// client returns the SDK's client as users make it, but without its retries,
// so that each call is one request.
func client(t *testing.T, srv *faults3.Server, ca []byte, change ...func(*s3.Options)) *s3.Client {
	t.Helper()
	load := []func(*config.LoadOptions) error{
		config.WithRegion("us-east-1"), config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("a", "b", "")),
	}
	if ca != nil {
		load = append(load, config.WithCustomCABundle(bytes.NewReader(ca)))
	}
	cfg, err := config.LoadDefaultConfig(t.Context(), load...)
	if err != nil {
		t.Fatal(err)
	}
	return s3.NewFromConfig(cfg, append(change, func(o *s3.Options) {
		o.BaseEndpoint, o.UsePathStyle = aws.String(srv.URL), true
	})...)
}

func start(t *testing.T, o faults3.Options) *faults3.Server {
	s := faults3.Start(o)
	t.Cleanup(s.Close)
	return s
}

func put(ctx context.Context, c *s3.Client, key, body string) error {
	_, err := c.PutObject(ctx, &s3.PutObjectInput{
		Bucket: aws.String(faults3.Bucket), Key: &key, Body: strings.NewReader(body), IfNoneMatch: aws.String("*"),
	})
	return err
}

func get(ctx context.Context, c *s3.Client, key, byteRange string) (string, error) {
	in := s3.GetObjectInput{Bucket: aws.String(faults3.Bucket), Key: &key}
	if byteRange != "" {
		in.Range = &byteRange
	}
	out, err := c.GetObject(ctx, &in)
	if err != nil {
		return "", err
	}
	defer out.Body.Close()
	b, err := io.ReadAll(out.Body)
	return string(b), err
}

// code returns the S3 code of an error, or "".
func code(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// A test of the product against this server is worth as much as the server:
// it must refuse what a good store refuses.
func TestAGoodStore(t *testing.T) {
	srv := start(t, faults3.Options{})
	c := client(t, srv, nil)
	if err := put(t.Context(), c, "a/b", "hello"); err != nil {
		t.Fatal(err)
	}
	if got := code(put(t.Context(), c, "a/b", "other")); got != "PreconditionFailed" {
		t.Errorf("second create-only PUT: %q", got)
	}
	for byteRange, want := range map[string]string{"": "hello", "bytes=1-2": "el", "bytes=-2": "lo", "bytes=-99": "hello"} {
		if got, err := get(t.Context(), c, "a/b", byteRange); got != want || err != nil {
			t.Errorf("range %q gives %q, %v", byteRange, got, err)
		}
	}
	if _, err := get(t.Context(), c, "a", ""); code(err) != "NoSuchKey" {
		t.Errorf("absent key: %v", err)
	}
	wrong := s3.PutObjectInput{Bucket: aws.String(faults3.Bucket), Key: aws.String("w"), Body: strings.NewReader("x"), ChecksumCRC32: aws.String("AAAAAA==")}
	if _, err := c.PutObject(t.Context(), &wrong); code(err) != "BadDigest" {
		t.Errorf("wrong checksum: %v", err)
	}
	if _, err := c.HeadBucket(t.Context(), &s3.HeadBucketInput{Bucket: aws.String("nobody")}); err == nil {
		t.Error("a bucket that is not there is there")
	}
	if _, err := c.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: aws.String(faults3.Bucket), Key: aws.String("a/b")}); err != nil || len(srv.Keys("")) != 0 {
		t.Errorf("after DELETE: %v, %v", err, srv.Keys(""))
	}
}

func TestOneOf32RacersWins(t *testing.T) {
	srv := start(t, faults3.Options{})
	c := client(t, srv, nil)
	var wg sync.WaitGroup
	wins := make(chan int, 32)
	for i := range 32 {
		wg.Go(func() {
			if put(t.Context(), c, "k", strings.Repeat("x", i)) == nil {
				wins <- i
			}
		})
	}
	wg.Wait()
	if len(wins) != 1 {
		t.Fatalf("%d winners", len(wins))
	}
	if body, _ := srv.Object("k"); len(body) != <-wins {
		t.Error("the object is not the winner's")
	}
}

func TestListingGoesOverPages(t *testing.T) {
	srv := start(t, faults3.Options{PageSize: 2})
	c := client(t, srv, nil)
	for _, k := range []string{"a/1", "a/2", "a/3", "a/4", "a/5", "b"} {
		srv.Set(k, []byte("x"))
	}
	in := s3.ListObjectsV2Input{Bucket: aws.String(faults3.Bucket), Prefix: aws.String("a/"), StartAfter: aws.String("a/1")}
	var keys []string
	pages := s3.NewListObjectsV2Paginator(c, &in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range page.Contents {
			keys = append(keys, *o.Key)
		}
	}
	if got := strings.Join(keys, " "); got != "a/2 a/3 a/4 a/5" || len(srv.Requests()) != 2 {
		t.Errorf("%s in %d pages", got, len(srv.Requests()))
	}
}

// Each policy is one that stores in use have. A PUT fails or not by how the
// client is set, and nothing else.
func TestPolicies(t *testing.T) {
	quiet := func(o *s3.Options) { o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired }
	for _, c := range []struct {
		name  string
		opts  faults3.Options
		quiet bool
		want  string // code
	}{
		{"welcome, stated", faults3.Options{}, false, ""},
		{"welcome, none", faults3.Options{}, true, ""},
		{"refuse, stated", faults3.Options{Checksums: faults3.Refuse}, false, "InvalidArgument"},
		{"refuse, none", faults3.Options{Checksums: faults3.Refuse}, true, ""},
		{"require, stated", faults3.Options{Checksums: faults3.Require}, false, ""},
		{"require, none", faults3.Options{Checksums: faults3.Require}, true, "InvalidRequest"},
		{"tls, stated in a trailer", faults3.Options{TLS: true}, false, ""},
		{"tls, chunks refused", faults3.Options{TLS: true, RefuseChunked: true}, false, "XAmzContentSHA256Mismatch"},
		{"tls, chunks refused, none", faults3.Options{TLS: true, RefuseChunked: true}, true, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := start(t, c.opts)
			var ca []byte
			if c.opts.TLS {
				ca = srv.CA()
			}
			var change []func(*s3.Options)
			if c.quiet {
				change = append(change, quiet)
			}
			err := put(t.Context(), client(t, srv, ca, change...), "k", "hello")
			if code(err) != c.want || (err == nil) != (c.want == "") {
				t.Errorf("PUT: %v, want %q", err, c.want)
			}
			if body, ok := srv.Object("k"); ok != (c.want == "") || ok && string(body) != "hello" {
				t.Errorf("the object is %q, %v", body, ok)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		rule    faults3.Rule
		put     bool   // whether the PUT is told to have worked
		there   bool   // whether it has
		get     string // what a GET of "hello" gives
		getFull bool   // without an error
	}{
		{"none", faults3.Rule{Key: "elsewhere"}, true, true, "hello", true},
		{"slow down", faults3.Rule{Op: faults3.Put, Fault: faults3.SlowDown()}, false, false, "", false},
		{"lost", faults3.Rule{Op: faults3.Put, Fault: faults3.Lost()}, false, false, "", false},
		{"lost reply", faults3.Rule{Op: faults3.Put, Fault: faults3.LostReply()}, false, true, "hello", true},
		{"slow", faults3.Rule{Op: faults3.Put, Fault: faults3.Slow(time.Millisecond)}, true, true, "hello", true},
		{"denied reader", faults3.Rule{Op: faults3.Get, Fault: faults3.Denied()}, true, true, "", false},
		{"flip", faults3.Rule{Op: faults3.Get, Fault: faults3.Flip(1)}, true, true, "hdllo", true},
		{"short", faults3.Rule{Op: faults3.Get, Fault: faults3.Short(2)}, true, true, "he", true},
		{"truncate", faults3.Rule{Op: faults3.Get, Fault: faults3.Truncate(2)}, true, true, "he", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			srv := start(t, faults3.Options{})
			cl := client(t, srv, nil)
			srv.Add(c.rule)
			if err := put(t.Context(), cl, "k", "hello"); (err == nil) != c.put {
				t.Errorf("PUT: %v", err)
			}
			if _, ok := srv.Object("k"); ok != c.there {
				t.Errorf("object there: %v", ok)
			}
			if got, err := get(t.Context(), cl, "k", ""); got != c.get || (err == nil) != c.getFull {
				t.Errorf("GET: %q, %v", got, err)
			}
			if body, ok := srv.Object("k"); ok && string(body) != "hello" {
				t.Errorf("a fault of the reply changed the object: %q", body)
			}
		})
	}
}

func TestRulesSkipCountAndEnd(t *testing.T) {
	srv := start(t, faults3.Options{})
	c := client(t, srv, nil)
	srv.Add(faults3.Rule{Op: faults3.Put, Key: ".parquet", Skip: 1, Times: 2, Fault: faults3.SlowDown()})
	var got []string
	for _, k := range []string{"1.parquet", "2.json", "3.parquet", "4.parquet", "5.parquet"} {
		got = append(got, code(put(t.Context(), c, k, "x")))
	}
	if want := ",,SlowDown,SlowDown,"; strings.Join(got, ",") != want {
		t.Errorf("answers %q, want %q", strings.Join(got, ","), want)
	}
	srv.Add(faults3.Rule{Times: faults3.Always, Fault: faults3.Denied()})
	if code(put(t.Context(), c, "6", "x")) != "AccessDenied" {
		t.Error("the second rule does not fire")
	}
	srv.Clear()
	if err := put(t.Context(), c, "7", "x"); err != nil {
		t.Error(err)
	}
	if n := srv.Fired(); n != 3 {
		t.Errorf("%d requests met a fault, want 3", n)
	}
}

func TestDumpStaysInItsFolder(t *testing.T) {
	srv := start(t, faults3.Options{})
	dir := t.TempDir()
	srv.Set("a/b", []byte("x"))
	if err := srv.Dump(dir); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a", "b")); string(b) != "x" {
		t.Error(err)
	}
	srv.Set("../c", []byte("x"))
	if srv.Dump(dir) == nil {
		t.Error("a key left the folder")
	}
}

// What the server does not speak it must say, or a test would pass by luck.
func TestUnknownRequestsAreRefused(t *testing.T) {
	srv := start(t, faults3.Options{})
	for _, r := range []struct{ method, path string }{
		{"POST", "/archive/k?delete"},
		{"POST", "/archive/k?select&select-type=2"},
		{"GET", "/archive/k?uploadId=1"},
		{"GET", "/archive?list-type=2&delimiter=/"},
		{"GET", "/archive"},
		{"PUT", "/archive?versioning"},
	} {
		req, _ := http.NewRequestWithContext(t.Context(), r.method, srv.URL+r.path, nil)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusNotImplemented {
			t.Errorf("%s %s: %d", r.method, r.path, res.StatusCode)
		}
	}
}
