package faults3_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/ledgerlake/ledgerlake/it/faults3"
)

// What no rule touches goes through as it is: bodies in chunks, ranges,
// listings, refusals.
func TestBehindIsAnotherStore(t *testing.T) {
	store := start(t, faults3.Options{PageSize: 2})
	front := start(t, faults3.Options{Behind: store.URL})
	c := client(t, front, nil)
	for _, k := range []string{"a/1", "a b+c", "ü"} {
		if err := put(t.Context(), c, k, "hello "+k); err != nil {
			t.Fatal(err)
		}
		if body, ok := store.Object(k); !ok || string(body) != "hello "+k {
			t.Errorf("%q: the store has %q", k, body)
		}
	}
	if got := code(put(t.Context(), c, "a/1", "other")); got != "PreconditionFailed" {
		t.Errorf("a second PUT: %q", got)
	}
	if got, err := get(t.Context(), c, "a/1", "bytes=-3"); got != "a/1" || err != nil {
		t.Errorf("a range: %q, %v", got, err)
	}
	if _, err := get(t.Context(), c, "none", ""); code(err) != "NoSuchKey" {
		t.Errorf("an absent key: %v", err)
	}
	bucket := faults3.Bucket
	page, err := c.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: &bucket})
	if err != nil || len(page.Contents) != 2 || !*page.IsTruncated {
		t.Errorf("a page of a listing: %+v, %v", page, err)
	}
	if n := len(front.Requests()); n != 0 {
		t.Errorf("%d requests are kept though none met a fault", n)
	}
	if n := len(store.Keys("")); n != 3 {
		t.Errorf("%d objects", n)
	}
}

// A fault in front decides whether the store behind hears of the request.
func TestFaultsBeforeAnotherStore(t *testing.T) {
	for name, c := range map[string]struct {
		fault faults3.Fault
		want  string // code; "" where the connection was cut, or all is well
		there bool
	}{
		"slow down":  {faults3.SlowDown(), "SlowDown", false},
		"lost":       {faults3.Lost(), "", false},
		"lost reply": {faults3.LostReply(), "", true},
		"torn":       {faults3.Torn(), "", false},
		"full":       {faults3.Full(), "InsufficientStorage", false},
	} {
		t.Run(name, func(t *testing.T) {
			store := start(t, faults3.Options{})
			front := start(t, faults3.Options{Behind: store.URL})
			front.Add(faults3.Rule{Op: faults3.Put, Fault: c.fault})
			err := put(t.Context(), client(t, front, nil), "k", strings.Repeat("hello", 1000))
			if err == nil || code(err) != c.want {
				t.Errorf("PUT: %v, want %q", err, c.want)
			}
			if _, there := store.Object("k"); there != c.there {
				t.Errorf("the object is there: %v", there)
			}
			if n := front.Fired(); n != 1 {
				t.Errorf("%d requests met the fault", n)
			}
		})
	}
}

// A store that is down is an answer too.
func TestNobodyBehind(t *testing.T) {
	store := faults3.Start(faults3.Options{})
	front := start(t, faults3.Options{Behind: store.URL})
	store.Close()
	if got := code(put(t.Context(), client(t, front, nil), "k", "x")); got != "BadGateway" {
		t.Errorf("PUT: %q", got)
	}
}
