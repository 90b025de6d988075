package s3sink

import (
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
)

// collect goes through a listing up to its end or its error.
func collect(list iter.Seq2[archive.Object, error]) ([]string, error) {
	var keys []string
	for o, err := range list {
		if err != nil {
			return keys, err
		}
		keys = append(keys, o.Key)
	}
	return keys, nil
}

// Keys that strangers may have put there come back byte for byte: a verifier
// has to name them. XML could not carry some of these.
func TestListCarriesEveryKey(t *testing.T) {
	s := newStore(t)
	s.page = 2
	want := []string{"\x01", "%2F", "%zz", "+", "a b", "a&b<c>", "a+b", "a/", "a~2Fb", "log/é", "~", "\xe4\xb8\xad"}
	for _, key := range want {
		s.objects["p/"+key] = []byte(key)
	}
	slices.Sort(want)
	got, err := collect(s.open(t, "p").List(t.Context(), "", ""))
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("List =\n%q, %v; want\n%q", got, err, want)
	}
}

// A store that lists wrongly would have a verifier or a restart miss
// segments. It gets an error, after the entries that were still right.
func TestAWrongListingIsAnError(t *testing.T) {
	page := func(more bool, token string, keys ...string) string {
		var b strings.Builder
		fmt.Fprintf(&b, "<ListBucketResult><IsTruncated>%v</IsTruncated><NextContinuationToken>%s</NextContinuationToken>", more, token)
		for _, key := range keys {
			fmt.Fprintf(&b, "<Contents><Key>%s</Key><Size>1</Size></Contents>", key)
		}
		return b.String() + "</ListBucketResult>"
	}
	for _, c := range []struct {
		name  string
		pages map[string]string // by continuation token
		want  string            // before the error
		says  string
	}{
		{"out of order", map[string]string{"": page(false, "", "p/b", "p/a")}, "b", `"p/a" comes after "p/b"`},
		{"out of order over pages", map[string]string{"": page(true, "2", "p/b"), "2": page(false, "", "p/a")}, "b", `"p/a" comes after "p/b"`},
		{"a key twice", map[string]string{"": page(false, "", "p/a", "p/a")}, "a", "comes after"},
		{"another prefix", map[string]string{"": page(false, "", "p/a", "q/a")}, "a", "another prefix"},
		{"the same page for ever", map[string]string{"": page(true, "2"), "2": page(true, "2")}, "", "leads nowhere"},
		{"no next page", map[string]string{"": page(true, "", "p/a")}, "a", "leads nowhere"},
		{"not encoded as announced", map[string]string{"": strings.Replace(page(false, "", "p/%zz"), "<Is", "<EncodingType>url</EncodingType><Is", 1)}, "", "not URL-encoded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			s.hook = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
				fmt.Fprint(w, c.pages[r.URL.Query().Get("continuation-token")])
				return true
			}
			got, err := collect(s.open(t, "p").List(t.Context(), "", ""))
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Join(got, " ") != c.want {
				t.Errorf("List = %q, %v; want %q and an error that says %q", got, err, c.want, c.says)
			}
		})
	}
}

// A store that does not know StartAfter, or does not encode, lists right all
// the same.
func TestListWithAStoreThatKnowsLess(t *testing.T) {
	s := newStore(t)
	s.hook = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		fmt.Fprint(w, "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>p/a+b</Key></Contents><Contents><Key>p/b%2F</Key></Contents><Contents><Key>p/c</Key></Contents></ListBucketResult>")
		return true
	}
	got, err := collect(s.open(t, "p").List(t.Context(), "", "a+b"))
	if want := []string{"b%2F", "c"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("List = %q, %v; want %q", got, err, want)
	}
}

// A listing asks for what is needed: from the key on, and a page at a time.
func TestListAsksForPages(t *testing.T) {
	s := newStore(t)
	s.page = 2
	for i := range 7 {
		s.objects[fmt.Sprintf("p/log/%d", i)] = nil
	}
	b := s.open(t, "p")
	got, err := collect(b.List(t.Context(), "log/", "log/1"))
	if want := []string{"log/2", "log/3", "log/4", "log/5", "log/6"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("List = %q, %v; want %q", got, err, want)
	}
	if got, want := b.Requests(), map[string]int64{"ListObjectsV2": 3}; !maps.Equal(got, want) {
		t.Errorf("requests = %v, want %v", got, want)
	}
	want := url.Values{"list-type": {"2"}, "encoding-type": {"url"}, "prefix": {"p/log/"}, "start-after": {"p/log/1"}, "x-id": {"ListObjectsV2"}}
	query := s.seen[0].URL.Query()
	delete(want, "x-id")
	query.Del("x-id")
	if !maps.EqualFunc(query, want, slices.Equal) {
		t.Errorf("first page asked with %v, want %v", query, want)
	}
}
