package s3sink

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/archive/archivetest"
)

func TestBucketIsAStore(t *testing.T) {
	for name, versioning := range map[string]archive.Versioning{"unversioned": archive.Unversioned, "versioned": archive.Versioned, "suspended": archive.Suspended} {
		t.Run(name, func(t *testing.T) {
			archivetest.RunStore(t, func(t *testing.T) *archivetest.Yard { return yard(t, versioning) })
		})
	}
}

func TestBucketIsASwapper(t *testing.T) {
	for _, versioning := range []archive.Versioning{archive.Unversioned, archive.Versioned} {
		archivetest.RunSwapper(t, func(t *testing.T) archive.Swapper { return newMemoryStore(t, versioning).open(t, "archive") })
	}
}

// yard is a part of a store whose pages are small, beside another archive.
func yard(t *testing.T, versioning archive.Versioning) *archivetest.Yard {
	s := newMemoryStore(t, versioning)
	s.page = 7
	s.memory.Overwrite("archive-2/log/x", []byte("another archive beside it"))
	s.memory.Overwrite("archive/", nil)
	y := &archivetest.Yard{
		Store: s.open(t, "archive"), Versioning: versioning,
		Overwrite: func(key string, body []byte) { s.memory.Overwrite("archive/"+key, body) },
		Remove:    func(key string) { s.memory.Remove("archive/" + key) },
		Begin:     func(key string) { s.memory.Begin("archive/" + key) },
	}
	if versioning == archive.Versioned {
		y.Suspend = func() { s.memory.SetVersioning(archive.Suspended) }
	}
	return y
}

// A store that does not know versions has one for each object, whatever it
// answers instead.
func TestAStoreWithoutVersions(t *testing.T) {
	for name, answers := range map[string]hook{
		"says so":                onVersions(func(w http.ResponseWriter, _ *store) { answer(w, 501, "NotImplemented") }),
		"allows no such request": onVersions(func(w http.ResponseWriter, _ *store) { answer(w, 405, "MethodNotAllowed") }),
		"lists objects instead": onVersions(func(w http.ResponseWriter, _ *store) {
			listed(w, []string{"log/1", "log/2"}, false, func(string) int { return 1 })
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMemoryStore(t, archive.Unversioned)
			s.hook = func(w http.ResponseWriter, r *http.Request, body []byte) bool { return answers(s, w, r, body) }
			b := s.open(t, "")
			if all := versionsOf(t, b); len(all) != 0 {
				t.Errorf("an empty store has %+v", all)
			}
			s.memory.Overwrite("log/1", []byte("x"))
			s.memory.Overwrite("log/2", []byte("y"))
			for range 2 {
				all := versionsOf(t, b)
				if len(all) != 2 || all[0].Key != "log/1" || all[0].ID != "" || !all[0].Latest || all[0].Size != 1 || all[0].Modified.IsZero() {
					t.Errorf("versions are %+v; want the objects, each the latest, with the id \"\"", all)
				}
			}
			if kept := b.Delete(t.Context(), versionsOf(t, b)); len(kept) > 0 || len(versionsOf(t, b)) > 0 {
				t.Errorf("after a delete %+v are kept, %+v are there", kept, versionsOf(t, b))
			}
		})
	}
}

func onVersions(say func(http.ResponseWriter, *store)) hook {
	return func(s *store, w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if !r.URL.Query().Has("versions") {
			return false
		}
		say(w, s)
		return true
	}
}

// What cannot be believed, or may not be seen, is an error, and never an
// archive without versions.
func TestVersionsThatCannotBeBelieved(t *testing.T) {
	version := func(key, id string) string {
		return fmt.Sprintf("<Version><Key>%s</Key><VersionId>%s</VersionId></Version>", key, id)
	}
	for _, c := range []struct{ name, answer, says string }{
		{"not in order", version("log/2", "a") + version("log/1", "b"), ""}, // of one page: it is sorted, since markers come apart
		{"another prefix", version("data/1", "a"), "another prefix"},
		{"no end", "<IsTruncated>true</IsTruncated>" + version("log/1", "a"), "leads nowhere"},
		{"round and round", "<IsTruncated>true</IsTruncated><NextKeyMarker>log/1</NextKeyMarker><NextVersionIdMarker>a</NextVersionIdMarker>" + version("log/1", "a"), "leads nowhere"},
		{"not encoded as announced", "<EncodingType>url</EncodingType>" + version("log/%zz", "a"), "not URL-encoded"},
	} {
		s := newMemoryStore(t, archive.Versioned)
		h := onVersions(func(w http.ResponseWriter, _ *store) {
			fmt.Fprintf(w, "<ListVersionsResult>%s</ListVersionsResult>", c.answer)
		})
		s.hook = func(w http.ResponseWriter, r *http.Request, body []byte) bool { return h(s, w, r, body) }
		var last error
		for _, err := range s.open(t, "").Versions(t.Context(), "log/") {
			last = err
		}
		if c.says == "" && last != nil || c.says != "" && (last == nil || !strings.Contains(last.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", c.name, last, c.says)
		}
	}
}

// A page that goes back behind the one before it is an error.
func TestVersionPagesThatGoBack(t *testing.T) {
	s := newMemoryStore(t, archive.Versioned)
	h := onVersions(func(w http.ResponseWriter, s *store) {
		if last := s.seen[len(s.seen)-1].URL.Query().Get("key-marker"); last == "" {
			fmt.Fprint(w, "<R><IsTruncated>true</IsTruncated><NextKeyMarker>log/2</NextKeyMarker><Version><Key>log/2</Key><VersionId>a</VersionId></Version></R>")
			return
		}
		fmt.Fprint(w, "<R><DeleteMarker><Key>log/1</Key><VersionId>a</VersionId></DeleteMarker></R>")
	})
	s.hook = func(w http.ResponseWriter, r *http.Request, body []byte) bool { return h(s, w, r, body) }
	var keys []string
	var last error
	for v, err := range s.open(t, "").Versions(t.Context(), "log/") {
		keys, last = append(keys, v.Key), err
	}
	if last == nil || !strings.Contains(last.Error(), "comes after") || keys[0] != "log/2" {
		t.Errorf("keys %q, error %v; want log/2, and that log/1 comes after it", keys, last)
	}
}

// Who may not see versions is told so, and nothing of them.
func TestVersionsDenied(t *testing.T) {
	s := newMemoryStore(t, archive.Versioned)
	s.memory.Overwrite("log/1", nil)
	s.hook = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		query := r.URL.Query()
		if !query.Has("versions") && !query.Has("uploads") && !query.Has("uploadId") {
			return false
		}
		answer(w, 403, "AccessDenied")
		return true
	}
	b := s.open(t, "")
	for v, err := range b.Versions(t.Context(), "") {
		if !errors.Is(err, archive.ErrDenied) {
			t.Errorf("Versions: %+v, %v", v, err)
		}
	}
	for u, err := range b.Uploads(t.Context(), "") {
		if !errors.Is(err, archive.ErrDenied) {
			t.Errorf("Uploads: %+v, %v", u, err)
		}
	}
	if err := b.Abort(t.Context(), archive.Upload{Key: "log/1", ID: "u1"}); !errors.Is(err, archive.ErrDenied) {
		t.Errorf("Abort: %v", err)
	}
}

// Some stores begin a page with the entry that ended the one before.
func TestAnEntryThatAPageRepeatsIsOne(t *testing.T) {
	s := newMemoryStore(t, archive.Versioned)
	s.memory.Overwrite("log/1", []byte("old"))
	s.memory.Overwrite("log/1", []byte("new"))
	s.memory.Overwrite("log/2", nil)
	s.page = 2
	s.hook = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		query := r.URL.Query()
		if !query.Has("versions") || query.Get("version-id-marker") == "" {
			return false
		}
		for v := range s.memory.Versions(r.Context(), "") {
			if v.Key == query.Get("key-marker") && v.ID == query.Get("version-id-marker") || v.Key == "log/2" {
				fmt.Fprintf(w, "%s<Version><Key>%s</Key><VersionId>%s</VersionId></Version>", map[bool]string{true: "<R>"}[v.Key == "log/1"], v.Key, v.ID)
			}
		}
		fmt.Fprint(w, "</R>")
		return true
	}
	if all := versionsOf(t, s.open(t, "")); len(all) != 3 {
		t.Errorf("versions are %+v, want 3", all)
	}
}

// A store that cannot list uploads has none that we know of.
func TestAStoreWithoutUploads(t *testing.T) {
	for name, say := range map[string]func(http.ResponseWriter){
		"says so":               func(w http.ResponseWriter) { answer(w, 501, "NotImplemented") },
		"lists objects instead": func(w http.ResponseWriter) { listed(w, []string{"log/1"}, true, func(string) int { return 1 }) },
	} {
		s := newMemoryStore(t, archive.Versioned)
		s.hook = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if r.URL.Query().Has("uploads") {
				say(w)
				return true
			}
			return false
		}
		b := s.open(t, "")
		for range 2 {
			for u, err := range b.Uploads(t.Context(), "") {
				t.Errorf("%s: %+v, %v", name, u, err)
			}
		}
	}
}

// The store's time is that of its answer, also where there is no archive yet,
// and never one of a gateway that did not reach it.
func TestNow(t *testing.T) {
	for _, c := range []struct {
		status int
		date   string
		fails  bool
	}{
		{200, "Mon, 02 Mar 2026 10:00:00 GMT", false},
		{404, "Mon, 02 Mar 2026 10:00:00 GMT", false},
		{502, "Mon, 02 Mar 2026 10:00:00 GMT", true},
		{403, "Mon, 02 Mar 2026 10:00:00 GMT", true},
		{200, "never", true},
	} {
		s := newMemoryStore(t, archive.Versioned)
		s.hook = func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			w.Header().Set("Date", c.date)
			w.WriteHeader(c.status)
			return true
		}
		now, err := s.open(t, "").Now(t.Context())
		want := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
		if c.fails {
			want = time.Time{}
		}
		if (err != nil) != c.fails || now != want {
			t.Errorf("%d %s: %v, %v", c.status, c.date, now, err)
		}
	}
}

// A range is what it says it is, or the answer is damaged.
func TestRangesThatAreNot(t *testing.T) {
	for _, c := range []struct {
		contentRange, body string
		want               string // "": damaged
	}{
		{"bytes 2-4/10", "cde", "cde"},
		{"bytes 2-3/4", "cd", "cd"}, // ends there
		{"", "abcdefghij", "cde"},   // a store that sends all
		{"bytes 1-3/10", "bcd", ""},
		{"bytes 2-5/10", "cdef", ""},
		{"bytes 2-3/10", "cd", ""}, // less than there is
		{"bytes 2-4/10", "cd", ""},
		{"bytes */10", "cde", ""},
	} {
		s := newMemoryStore(t, archive.Versioned)
		s.hook = func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			status := 200
			if c.contentRange != "" {
				w.Header().Set("Content-Range", c.contentRange)
				status = 206
			}
			w.WriteHeader(status)
			fmt.Fprint(w, c.body)
			return true
		}
		got, err := s.open(t, "", func(o *Options) { o.Attempts = 1 }).GetRange(t.Context(), "log/x", 2, 3)
		if string(got) != c.want || (c.want == "") != errors.Is(err, ErrDamaged) {
			t.Errorf("%q %q: %q, %v; want %q", c.contentRange, c.body, got, err, c.want)
		}
	}
}
