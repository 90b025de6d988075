package faults3_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/ledgerlake/ledgerlake/it/faults3"
)

func remove(t *testing.T, c *s3.Client, key, version string) {
	t.Helper()
	in := s3.DeleteObjectInput{Bucket: aws.String(faults3.Bucket), Key: &key}
	if version != "" {
		in.VersionId = &version
	}
	if _, err := c.DeleteObject(t.Context(), &in); err != nil {
		t.Fatal(err)
	}
}

// Where versions are kept, a deleted key is free for a create-only PUT, and
// what was there before stays until its version goes.
func TestADeleteMarkerLetsACreateThrough(t *testing.T) {
	srv := start(t, faults3.Options{Versioned: true})
	c := client(t, srv, nil)
	if err := put(t.Context(), c, "k", "first"); err != nil {
		t.Fatal(err)
	}
	if got := code(put(t.Context(), c, "k", "second")); got != "PreconditionFailed" {
		t.Errorf("a PUT on what is there: %q", got)
	}
	remove(t, c, "k", "")
	if _, err := get(t.Context(), c, "k", ""); code(err) != "NoSuchKey" || len(srv.Keys("")) != 0 {
		t.Errorf("after DELETE: %v, keys %v", err, srv.Keys(""))
	}
	if err := put(t.Context(), c, "k", "third"); err != nil {
		t.Errorf("a PUT on a delete marker: %v", err)
	}
	if got := versions(t, c); !slices.Equal(got, []string{"k v3 latest", "k v1", "k v2 marker"}) {
		t.Errorf("versions %q", got)
	}
	old, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(faults3.Bucket), Key: aws.String("k"), VersionId: aws.String("v1")})
	if err != nil || *old.ContentLength != int64(len("first")) {
		t.Errorf("the first version: %v", err)
	}
	remove(t, c, "k", "v3")
	if _, err := get(t.Context(), c, "k", ""); code(err) != "NoSuchKey" {
		t.Errorf("the marker is on top again: %v", err)
	}
}

// versions returns all versions and then all delete markers of the bucket.
func versions(t *testing.T, c *s3.Client) []string {
	t.Helper()
	out, err := c.ListObjectVersions(t.Context(), &s3.ListObjectVersionsInput{Bucket: aws.String(faults3.Bucket)})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, v := range out.Versions {
		line := *v.Key + " " + *v.VersionId
		if *v.IsLatest {
			line += " latest"
		}
		all = append(all, line)
	}
	for _, m := range out.DeleteMarkers {
		all = append(all, *m.Key+" "+*m.VersionId+" marker")
	}
	return all
}

// Of create-only PUTs that are under way together one wins, and the others hear
// of a conflict; who comes later hears that the key is taken.
func TestARaceIsAConflict(t *testing.T) {
	srv := start(t, faults3.Options{Conflicts: true})
	c := client(t, srv, nil)
	srv.Add(faults3.Rule{Op: faults3.Put, Times: 2, Fault: faults3.Slow(100 * time.Millisecond)})
	answers := make(chan string, 2)
	for range 2 {
		go func() { answers <- code(put(t.Context(), c, "k", "x")) }()
	}
	got := []string{<-answers, <-answers}
	slices.Sort(got)
	if !slices.Equal(got, []string{"", "ConditionalRequestConflict"}) {
		t.Errorf("answers %q", got)
	}
	if got := code(put(t.Context(), c, "k", "x")); got != "PreconditionFailed" {
		t.Errorf("a later PUT: %q", got)
	}
}

// Who fails beats nobody.
func TestAFailedRivalIsNoConflict(t *testing.T) {
	srv := start(t, faults3.Options{Conflicts: true})
	srv.Add(faults3.Rule{AccessKey: "LATE", Fault: faults3.Slow(100 * time.Millisecond)})
	srv.Add(faults3.Rule{AccessKey: "RIVAL", Times: faults3.Always, Fault: faults3.SlowDown()})
	late := make(chan error)
	go func() { late <- put(t.Context(), client(t, srv, nil, as("LATE")), "k", "x") }()
	for range 10 {
		if got := code(put(t.Context(), client(t, srv, nil, as("RIVAL")), "k", "x")); got != "SlowDown" {
			t.Errorf("the rival: %q", got)
		}
	}
	if err := <-late; err != nil {
		t.Error(err)
	}
}

// as signs with an access key of that id.
func as(id string) func(*s3.Options) {
	return func(o *s3.Options) { o.Credentials = credentials.NewStaticCredentialsProvider(id, "secret", "") }
}

// Credentials that have expired are refused until others are used.
func TestExpiredCredentials(t *testing.T) {
	for want, fault := range map[string]faults3.Fault{"ExpiredToken": faults3.Expired(), "AccessDenied": faults3.Denied()} {
		srv := start(t, faults3.Options{})
		srv.Add(faults3.Rule{AccessKey: "OLD", Times: faults3.Always, Fault: fault})
		for range 2 {
			if got := code(put(t.Context(), client(t, srv, nil, as("OLD")), "k", "x")); got != want {
				t.Errorf("the old ones: %q, want %q", got, want)
			}
		}
		if err := put(t.Context(), client(t, srv, nil, as("NEW")), "k", "x"); err != nil {
			t.Errorf("the new ones: %v", err)
		}
	}
}

// Every answer has the store's time, also one that refuses.
func TestDate(t *testing.T) {
	at := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, now := range []func() time.Time{nil, func() time.Time { return at }} {
		srv := start(t, faults3.Options{Now: now})
		for _, path := range []string{"/archive?location", "/archive/none", "/nobody"} {
			res, err := http.Get(srv.URL + path)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			date, err := http.ParseTime(res.Header.Get("Date"))
			if err != nil {
				t.Fatal(err)
			}
			if want := at.Format(http.TimeFormat); now != nil && res.Header.Get("Date") != want {
				t.Errorf("%s: %v, want %s", path, date, want)
			}
		}
	}
}

// One in three meets the fault, counted from those that were let pass.
func TestRulesCanSpare(t *testing.T) {
	srv := start(t, faults3.Options{})
	c := client(t, srv, nil)
	srv.Add(faults3.Rule{Op: faults3.Put, Skip: 1, Every: 3, Times: faults3.Always, Fault: faults3.SlowDown()})
	var got []string
	for i := range 8 {
		got = append(got, code(put(t.Context(), c, strings.Repeat("k", i+1), "x")))
	}
	if want := ",,,SlowDown,,,SlowDown,"; strings.Join(got, ",") != want {
		t.Errorf("answers %q, want %q", strings.Join(got, ","), want)
	}
}
