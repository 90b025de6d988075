package s3sink

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// hook is a way in which a store is not as it should be.
type hook = func(s *store, w http.ResponseWriter, r *http.Request, body []byte) bool

// A case of the doctor: a store, and what must be found in each form. What is
// not named must be ok.
type doctorCase struct {
	name   string
	hook   hook
	change func(*Options)
	short  map[string]string // name: "level words"; where there is an archive
	full   map[string]string
}

var doctorCases = []doctorCase{
	{name: "as it should be"},
	{
		name: "overwrites",
		hook: func(_ *store, _ http.ResponseWriter, r *http.Request, _ []byte) bool {
			r.Header.Del("If-None-Match")
			return false
		},
		short: map[string]string{FindingCreateOnly: "fail use another store"},
		full:  map[string]string{FindingCreateOnly: "fail use another store"},
	},
	{
		// Keeps If-None-Match for whoever comes later, and not in a race.
		name: "looks before it writes",
		hook: func() hook {
			var racing atomic.Int64
			return func(s *store, _ http.ResponseWriter, r *http.Request, _ []byte) bool {
				if r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/bucket/probe/") && racing.Add(1) <= 2 {
					r.Header.Del("If-None-Match")
				}
				return false
			}
		}(),
		full: map[string]string{FindingCreateOnly: "fail 2 of 32 writers"},
	},
	{
		name: "says 200 and keeps the old",
		hook: func(s *store, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			_, taken := s.objects[strings.TrimPrefix(r.URL.Path, "/bucket/")]
			return taken && r.Method == http.MethodPut
		},
		short: map[string]string{FindingCreateOnly: "fail would overwrite each other"},
		full:  map[string]string{FindingCreateOnly: "fail would overwrite each other"},
	},
	{
		name: "says 412 and overwrites",
		hook: func(s *store, w http.ResponseWriter, r *http.Request, body []byte) bool {
			key := strings.TrimPrefix(r.URL.Path, "/bucket/")
			if _, taken := s.objects[key]; taken && r.Method == http.MethodPut {
				s.objects[key] = body
			}
			return false
		},
		full: map[string]string{FindingCreateOnly: "fail does not hold the bytes"},
	},
	{
		name: "says 403 to losers",
		hook: func(s *store, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			_, taken := s.objects[strings.TrimPrefix(r.URL.Path, "/bucket/")]
			if taken && r.Method == http.MethodPut {
				answer(w, 403, "AccessDenied")
				return true
			}
			return false
		},
		short: map[string]string{FindingCreateOnly: "fail allow s3:PutObject"},
		full:  map[string]string{FindingErrors: "fail something else than 412"},
	},
	{
		name:  "does not know If-None-Match",
		hook:  refuseWrites(501, "NotImplemented", func(r *http.Request) bool { return r.Header.Get("If-None-Match") != "" }),
		short: map[string]string{FindingCreateOnly: "fail refuses conditional writes"},
		full:  map[string]string{FindingCreateOnly: "fail refuses conditional writes"},
	},
	{
		name:  "refuses crc32",
		hook:  refuseWrites(400, "InvalidArgument", func(r *http.Request) bool { return r.Header.Get("X-Amz-Checksum-Crc32") != "" }),
		short: map[string]string{FindingChecksum: "fail set checksum=sha256"},
		full:  map[string]string{FindingChecksum: "fail set checksum=sha256"},
	},
	{
		name:  "refuses all of AWS's checksums",
		hook:  refuseWrites(400, "InvalidArgument", hasAmazonChecksum),
		short: map[string]string{FindingChecksum: "fail set checksum=md5"},
		full:  map[string]string{FindingChecksum: "fail set checksum=md5"},
	},
	{
		name: "refuses all checksums",
		hook: refuseWrites(400, "InvalidArgument", func(r *http.Request) bool {
			return hasAmazonChecksum(r) || r.Header.Get("Content-Md5") != ""
		}),
		short: map[string]string{FindingChecksum: "fail set checksum=none"},
		full:  map[string]string{FindingChecksum: "fail set checksum=none"},
	},
	{
		name:   "demands a checksum",
		change: func(o *Options) { o.Checksum = NoChecksum },
		hook: refuseWrites(400, "InvalidRequest", func(r *http.Request) bool {
			return !hasAmazonChecksum(r) && r.Header.Get("Content-Md5") == ""
		}),
		short: map[string]string{FindingChecksum: "fail set checksum=crc32"},
		full:  map[string]string{FindingChecksum: "fail set checksum=crc32"},
	},
	{
		name: "does not check checksums",
		hook: func(_ *store, _ http.ResponseWriter, r *http.Request, _ []byte) bool {
			r.Header.Del("X-Amz-Checksum-Crc32")
			return false
		},
		full: map[string]string{FindingChecksum: "warn wrong checksum"},
	},
	{
		name: "does not check credentials",
		hook: func(_ *store, _ http.ResponseWriter, r *http.Request, _ []byte) bool {
			r.Header.Set("Authorization", "any")
			return false
		},
		full: map[string]string{FindingErrors: "warn whoever reaches the store"},
	},
	{
		name:  "denies writing",
		hook:  refuse(403, "AccessDenied", func(r *http.Request) bool { return r.Method == http.MethodPut }),
		short: map[string]string{FindingCreateOnly: "fail allow s3:PutObject"},
		full:  map[string]string{FindingCreateOnly: "fail allow s3:PutObject"},
	},
	{
		name:  "denies reading",
		hook:  refuse(403, "AccessDenied", func(r *http.Request) bool { return r.Method == http.MethodGet && len(r.URL.Path) > len("/bucket/") }),
		short: map[string]string{FindingRead: "fail allow s3:GetObject"},
		full:  map[string]string{FindingRead: "fail allow s3:GetObject"},
	},
	{
		name:  "denies listing",
		hook:  refuse(403, "AccessDenied", func(r *http.Request) bool { return r.URL.Query().Has("list-type") }),
		short: map[string]string{FindingList: "fail allow s3:ListBucket"},
		full:  map[string]string{FindingList: "fail allow s3:ListBucket"},
	},
	{
		name: "denies deleting",
		hook: refuse(403, "AccessDenied", func(r *http.Request) bool { return r.Method == http.MethodDelete }),
		full: map[string]string{FindingDelete: "ok denied"},
	},
	{
		name: "denies deleting, and looks for the object before the checksum",
		hook: func(s *store, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if r.Method == http.MethodPut {
				r.Header.Del("X-Amz-Checksum-Crc32")
			} else if r.Method == http.MethodDelete {
				answer(w, 403, "AccessDenied")
				return true
			}
			return false
		},
		full: map[string]string{FindingChecksum: "ok cannot be seen"},
	},
	{
		name: "denies to show what it is",
		hook: refuse(403, "AccessDenied", func(r *http.Request) bool {
			return r.URL.Query().Has("object-lock") || r.URL.Query().Has("versioning") || r.URL.Query().Has("versions")
		}),
		short: map[string]string{FindingLock: "warn s3:GetBucketObjectLockConfiguration", FindingVersioning: "warn s3:GetBucketVersioning"},
		full:  map[string]string{FindingLock: "warn s3:GetBucketObjectLockConfiguration", FindingVersioning: "warn s3:GetBucketVersioning", FindingVersions: "ok denied"},
	},
	{
		name: "knows neither locks nor versions",
		hook: refuse(501, "NotImplemented", func(r *http.Request) bool {
			return r.URL.Query().Has("object-lock") || r.URL.Query().Has("versioning") || r.URL.Query().Has("versions")
		}),
		full: map[string]string{FindingVersions: "warn cannot list versions"},
	},
	{
		name:  "locks for ever",
		hook:  say("object-lock", "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>COMPLIANCE</Mode><Years>7</Years></DefaultRetention></Rule></ObjectLockConfiguration>"),
		short: map[string]string{FindingLock: "fail 7 years in COMPLIANCE mode"},
		full:  map[string]string{FindingLock: "fail 7 years in COMPLIANCE mode"},
	},
	{
		name:  "locks unless told otherwise",
		hook:  say("object-lock", "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>30</Days></DefaultRetention></Rule></ObjectLockConfiguration>"),
		short: map[string]string{FindingLock: "warn 30 days in GOVERNANCE mode"},
		full:  map[string]string{FindingLock: "warn 30 days in GOVERNANCE mode", FindingCreateOnly: "ok 32 writers could not write over ledgerlake.json"},
	},
	{
		name: "deletes and keeps the versions",
		hook: func(_ *store, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if r.Method == http.MethodDelete && r.URL.Query().Has("versionId") {
				answer(w, 403, "AccessDenied")
				return true
			}
			if r.URL.Query().Has("versions") {
				fmt.Fprintf(w, "<ListVersionsResult><Version><Key>%s</Key><VersionId>v</VersionId></Version></ListVersionsResult>", r.URL.Query().Get("prefix"))
				return true
			}
			w.Header().Set("X-Amz-Version-Id", "marker")
			return false
		},
		full: map[string]string{FindingDelete: "warn s3:DeleteObjectVersion", FindingCleanUp: "warn old versions of it stay"},
	},
	{
		name: "cannot delete",
		hook: refuse(405, "MethodNotAllowed", func(r *http.Request) bool { return r.Method == http.MethodDelete }),
		full: map[string]string{FindingDelete: "warn cannot delete"},
	},
	{
		name:  "can lock and does not",
		hook:  say("object-lock", "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>"),
		short: map[string]string{FindingLock: "ok no default"},
	},
	{
		name:  "keeps versions",
		hook:  say("versioning", "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"),
		short: map[string]string{FindingVersioning: "ok Enabled"},
		full:  map[string]string{FindingVersioning: "ok Enabled"},
	},
	{
		name:  "lives in the past",
		hook:  dated(-2 * time.Minute),
		short: map[string]string{FindingClock: "warn ahead of the store"},
		full:  map[string]string{FindingClock: "warn ahead of the store"},
	},
	{
		name:  "lives in the far future",
		hook:  dated(16 * time.Minute),
		short: map[string]string{FindingClock: "fail behind the store"},
		full:  map[string]string{FindingClock: "fail behind the store"},
	},
	{
		name: "does not say the time",
		hook: func(_ *store, w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			w.Header()["Date"] = nil
			return false
		},
		short: map[string]string{FindingClock: "warn does not say the time"},
		full:  map[string]string{FindingClock: "warn does not say the time"},
	},
	{
		name: "lists late",
		hook: func(_ *store, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if r.URL.Query().Has("list-type") {
				listed(w, nil, false, nil)
				return true
			}
			return false
		},
		full: map[string]string{FindingListed: "fail not listed"},
	},
	{
		name: "reads late",
		hook: refuse(404, "NoSuchKey", func(r *http.Request) bool {
			return r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/bucket/probe/")
		}),
		full: map[string]string{FindingRead: "fail not found"},
	},
	{
		name:  "is not there",
		hook:  refuse(404, "NoSuchBucket", func(*http.Request) bool { return true }),
		short: map[string]string{FindingList: "fail create it"},
		full:  map[string]string{FindingList: "fail create it"},
	},
	{
		name:  "is a web server",
		hook:  refuse(404, "", func(*http.Request) bool { return true }),
		short: map[string]string{FindingList: "fail not an S3 store"},
		full:  map[string]string{FindingList: "fail not an S3 store"},
	},
}

const root = `{"format":"ledgerlake-v1"}`

// A store either passes or is refused with one line that says what to do, in
// both forms; and whatever happens, the archive in it is as before.
func TestDoctor(t *testing.T) {
	for _, c := range doctorCases {
		for _, full := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/full=%v", c.name, full), func(t *testing.T) {
				t.Parallel()
				s := newStore(t)
				s.objects[archive.RootKey] = []byte(root)
				if c.hook != nil {
					s.hook = func(w http.ResponseWriter, r *http.Request, body []byte) bool {
						s.mu.Lock()
						defer s.mu.Unlock()
						return c.hook(s, w, r, body)
					}
				}
				change := func(o *Options) {}
				if c.change != nil {
					change = c.change
				}
				findings, err := Doctor(t.Context(), s.open(t, "", change), full)
				if err != nil {
					t.Fatalf("no verdict: %v; found %v", err, findings)
				}
				want := c.short
				if full {
					want = c.full
				}
				checkFindings(t, findings, want, full)
				s.holdsOnly(t, map[string]string{archive.RootKey: root})
			})
		}
	}
}

// checkFindings holds findings against "level words" by name. What is not
// named must be ok, and all must be there unless one failed.
func checkFindings(t *testing.T, findings []Finding, want map[string]string, full bool) {
	t.Helper()
	failed := false
	hit := map[string]bool{}
	for _, f := range findings {
		level, words, _ := strings.Cut(want[f.Name], " ")
		failed = failed || f.Level == Fail
		if string(f.Level) == level && strings.Contains(f.Detail, words) {
			hit[f.Name] = true
		} else if f.Level != OK {
			t.Errorf("found %+v, want %q", f, want[f.Name])
		}
		if f.Detail == "" || strings.ContainsAny(f.Detail, "\r\n") {
			t.Errorf("finding is not one line: %+v", f)
		}
	}
	for name, w := range want {
		if !hit[name] {
			t.Errorf("not found: %s: %s; found %+v", name, w, findings)
		}
	}
	if err := Verdict(findings); (err != nil) != failed || err != nil && (!errors.Is(err, ErrUnsafe) || strings.Contains(err.Error(), "\n")) {
		t.Errorf("Verdict = %v, of findings that failed: %v", err, failed)
	}
	names := []string{FindingList, FindingLock, FindingVersioning, FindingChecksum, FindingCreateOnly, FindingClock}
	if full {
		names = append(names, FindingVersions, FindingDelete, FindingRead, FindingListed, FindingErrors)
	}
	for _, name := range names {
		if !failed && !slices.ContainsFunc(findings, func(f Finding) bool { return f.Name == name }) {
			t.Errorf("nothing said about %s; found %+v", name, findings)
		}
	}
}

// The start of ingest costs these requests and no others, and no object.
func TestShortDoctorInAnArchive(t *testing.T) {
	s := newStore(t)
	s.objects["p/"+archive.RootKey] = []byte(root)
	b := s.open(t, "p")
	if _, err := Doctor(t.Context(), b, false); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"ListObjectsV2": 1, "GetObjectLockConfiguration": 1, "GetBucketVersioning": 1, "GetObject": 2, "PutObject": 2}
	if got := b.Requests(); !maps.Equal(got, want) {
		t.Errorf("requests = %v, want %v", got, want)
	}
}

// Without an archive there is nothing to write over. Both forms race on probes
// of their own, and leave nothing. Where nothing may be deleted they write
// nothing, and say what was not probed.
func TestDoctorWithoutAnArchive(t *testing.T) {
	denied := refuse(403, "AccessDenied", func(r *http.Request) bool { return r.Method == http.MethodDelete })
	for _, full := range []bool{false, true} {
		s := newStore(t)
		findings, err := Doctor(t.Context(), s.open(t, "p"), full)
		if err != nil {
			t.Fatal(err)
		}
		checkFindings(t, findings, nil, full)
		s.holdsOnly(t, nil)

		s = newStore(t)
		s.hook = func(w http.ResponseWriter, r *http.Request, body []byte) bool { return denied(s, w, r, body) }
		findings, err = Doctor(t.Context(), s.open(t, "p"), full)
		if err != nil || Verdict(findings) != nil {
			t.Fatalf("findings %v, error %v", findings, err)
		}
		if last := findings[len(findings)-1]; last.Name != FindingCreateOnly || last.Level != Warn || !strings.Contains(last.Detail, "not probed") {
			t.Errorf("the last finding is %v, want one that says what was not probed", last)
		}
		s.holdsOnly(t, nil)
	}
}

// Inspect looks, and writes nothing: also where it refuses.
func TestInspectWritesNothing(t *testing.T) {
	s := newStore(t)
	b := s.open(t, "p")
	if findings, err := Inspect(t.Context(), b); err != nil || Verdict(findings) != nil || len(findings) == 0 {
		t.Errorf("findings %v, error %v", findings, err)
	}
	want := map[string]int64{"ListObjectsV2": 1, "GetObjectLockConfiguration": 1, "GetBucketVersioning": 1}
	if got := b.Requests(); !maps.Equal(got, want) {
		t.Errorf("requests = %v, want %v", got, want)
	}
}

// A store that is down gets no verdict, at whatever point it goes down, so
// that ingest waits for it instead of refusing it.
func TestAStoreThatIsDownGetsNoVerdict(t *testing.T) {
	for _, full := range []bool{false, true} {
		for after := range 8 {
			s := newStore(t)
			s.objects[archive.RootKey] = []byte(root)
			var n atomic.Int64
			s.hook = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
				if n.Add(1) <= int64(after) || n.Load() > 100 {
					return false
				}
				answer(w, 503, "SlowDown")
				return true
			}
			findings, err := Doctor(t.Context(), s.open(t, "", func(o *Options) { o.Attempts = 1 }), full)
			if !full && after >= 7 {
				continue // it was done by then
			}
			if err == nil || errors.Is(err, ErrUnsafe) || Verdict(findings) != nil {
				t.Errorf("full=%v, down after %d requests: %v; found %+v, want an error and no failure", full, after, err, findings)
			}
		}
	}
}

// A caller that stops in the middle leaves no probe behind.
func TestDoctorCleansUpAfterACancelledCaller(t *testing.T) {
	s := newStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.hook = func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/bucket/probe/") {
			cancel()
		}
		return false
	}
	_, err := Doctor(ctx, s.open(t, ""), true)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Doctor = %v, want context.Canceled", err)
	}
	s.holdsOnly(t, nil)
}

// In a versioned bucket a probe is gone when all of its versions and its
// delete marker are. A store says that it keeps versions when it is asked, or
// when it deletes; either is enough.
func TestDoctorDeletesVersions(t *testing.T) {
	for _, saysWhen := range []string{"asked", "deleting"} {
		t.Run(saysWhen, func(t *testing.T) {
			s := newStore(t)
			left := map[string]bool{} // "key?version"
			s.hook = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return serveVersions(w, r, left, saysWhen)
			}
			findings, err := Doctor(t.Context(), s.open(t, "p"), true)
			if err != nil {
				t.Fatal(err)
			}
			checkFindings(t, findings, nil, true)
			if len(left) != 0 {
				t.Errorf("versions stay: %v", left)
			}
			s.holdsOnly(t, nil)
		})
	}
}

// serveVersions has a store keep a version of what is written and a marker of
// what is deleted, in left.
func serveVersions(w http.ResponseWriter, r *http.Request, left map[string]bool, saysWhen string) bool {
	key, query := strings.TrimPrefix(r.URL.Path, "/bucket/"), r.URL.Query()
	switch {
	case query.Has("versioning") && saysWhen == "asked":
		fmt.Fprint(w, "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>")
		return true
	case query.Has("versions"):
		fmt.Fprint(w, "<ListVersionsResult><Version><Key>p/probe/doctor-other</Key><VersionId>v</VersionId></Version>")
		for id := range left {
			kind := map[bool]string{true: "DeleteMarker", false: "Version"}[strings.HasSuffix(id, "marker")]
			if id, version, _ := strings.Cut(id, "?"); strings.HasPrefix(id, query.Get("prefix")) {
				fmt.Fprintf(w, "<%[1]s><Key>%[2]s</Key><VersionId>%[3]s</VersionId></%[1]s>", kind, id, version)
			}
		}
		fmt.Fprint(w, "</ListVersionsResult>")
		return true
	case r.Method == http.MethodDelete && query.Has("versionId"):
		delete(left, key+"?"+query.Get("versionId"))
	case r.Method == http.MethodDelete:
		left[key+"?marker"] = true
		if saysWhen == "deleting" {
			w.Header().Set("X-Amz-Version-Id", "marker")
		}
	case r.Method == http.MethodPut:
		left[key+"?v1"] = true
	}
	return false
}

func TestSkew(t *testing.T) {
	at := func(ms int) time.Time {
		return time.UnixMilli(1_700_000_000_000).Add(time.Duration(ms) * time.Millisecond)
	}
	for _, c := range []struct {
		before, after int // ours
		store         int // its, whole seconds
		want          time.Duration
	}{
		{0, 10, 0, 0},
		{900, 950, 0, 0}, // cut to the second
		{900, 1100, 1000, 0},
		{900, 950, 1000, 50 * time.Millisecond},
		{1100, 1150, 0, -100 * time.Millisecond},
		{0, 10, 60_000, 59_990 * time.Millisecond},
		{60_000, 60_010, 0, -59 * time.Second},
	} {
		if got := skew(at(c.before), at(c.after), at(c.store)); got != c.want {
			t.Errorf("skew(%d, %d, store %d) = %v, want %v", c.before, c.after, c.store, got, c.want)
		}
	}
	if got := skew(at(0), at(1), time.Time{}); got != 0 {
		t.Errorf("skew of no time = %v", got)
	}
}

// holdsOnly checks what the store holds at the end.
func (s *store) holdsOnly(t *testing.T, want map[string]string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	got := map[string]string{}
	for key, body := range s.objects {
		got[key] = string(body)
	}
	if !maps.Equal(got, want) {
		t.Errorf("the store holds %q, want %q", got, want)
	}
}

func refuse(status int, code string, which func(*http.Request) bool) hook {
	return func(_ *store, w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if which(r) {
			answer(w, status, code)
			return true
		}
		return false
	}
}

func refuseWrites(status int, code string, which func(*http.Request) bool) hook {
	return refuse(status, code, func(r *http.Request) bool { return r.Method == http.MethodPut && which(r) })
}

func say(query, body string) hook {
	return func(_ *store, w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if !r.URL.Query().Has(query) {
			return false
		}
		fmt.Fprint(w, body)
		return true
	}
}

// dated has the store live at another time.
func dated(ahead time.Duration) hook {
	return func(_ *store, w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		return false
	}
}

func hasAmazonChecksum(r *http.Request) bool {
	return r.Header.Get("X-Amz-Checksum-Crc32") != "" || r.Header.Get("X-Amz-Checksum-Sha256") != ""
}
