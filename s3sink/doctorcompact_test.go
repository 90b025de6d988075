package s3sink

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A compactDoctorCase is a store, and what must be found; what is not named
// must be ok.
type compactDoctorCase struct {
	name   string
	hook   hook
	change func(*Options)
	want   map[string]string // name: "level words"
	full   map[string]string // nil: as want
	plain  bool              // keeps no versions
	leaves bool              // a probe stays, in the full form: nothing else can be done
}

var compactDoctorCases = []compactDoctorCase{
	{name: "as it should be"},
	{
		name: "may not list versions",
		hook: refuse(403, "AccessDenied", func(r *http.Request) bool { return r.URL.Query().Has("versions") }),
		want: map[string]string{FindingVersions: "fail s3:ListBucketVersions"},
	},
	{
		name: "knows no versions",
		hook: refuse(501, "NotImplemented", func(r *http.Request) bool { return r.URL.Query().Has("versions") }),
		want: map[string]string{FindingVersions: "warn make sure that it keeps none"}, plain: true,
	},
	{
		name: "keeps versions and lists none",
		hook: all(
			refuse(501, "NotImplemented", func(r *http.Request) bool { return r.URL.Query().Has("versions") }),
			say("versioning", "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"),
		),
		want: map[string]string{FindingVersions: "fail what is erased would stay"},
	},
	{
		name: "may not delete",
		hook: refuse(403, "AccessDenied", isDelete),
		want: map[string]string{FindingDelete: "fail s3:DeleteObjectVersion"},
	},
	{
		name: "wants a device to delete",
		hook: all(onMany(403, "AccessDenied", -1), deny("", "AccessDenied", "Mfa Authentication must be used for this request", nil)),
		want: map[string]string{FindingDelete: "fail MFA delete cannot be used"},
	},
	{
		name: "cannot delete", hook: refuse(405, "MethodNotAllowed", isDelete),
		want: map[string]string{FindingDelete: "fail cannot delete"},
	},
	{
		name: "deletes one at a time", hook: onMany(501, "NotImplemented", -1),
		want: map[string]string{FindingDelete: "ok one at a time"},
	},
	{
		name: "locks all for ever", hook: say("object-lock", defaultLock("COMPLIANCE", "<Days>1</Days>")),
		want: map[string]string{FindingLock: "fail forbids every erasure"},
	},
	{
		name: "locks all, and lets us pass", hook: say("object-lock", defaultLock("GOVERNANCE", "<Years>2</Years>")),
		want: map[string]string{FindingLock: "ok 2 years", FindingBypass: "ok can be passed"},
	},
	{
		name: "locks all, and does not let us pass",
		hook: all(say("object-lock", defaultLock("GOVERNANCE", "<Days>1</Days>")),
			refuse(403, "AccessDenied", func(r *http.Request) bool { return r.Header.Get("X-Amz-Bypass-Governance-Retention") != "" })),
		want: map[string]string{FindingBypass: "fail s3:BypassGovernanceRetention"},
	},
	{
		name: "may not list uploads",
		hook: refuse(403, "AccessDenied", func(r *http.Request) bool { return r.URL.Query().Has("uploads") }),
		want: map[string]string{FindingUploads: "fail s3:ListBucketMultipartUploads"},
	},
	{
		name: "knows no uploads",
		hook: refuse(501, "NotImplemented", func(r *http.Request) bool { return r.URL.Query().Has("uploads") }),
		want: map[string]string{FindingUploads: "ok does not list"},
	},
	{
		name: "has no clock",
		hook: func(_ *store, w http.ResponseWriter, _ *http.Request, _ []byte) bool {
			w.Header()["Date"] = nil
			return false
		},
		want: map[string]string{FindingClock: "fail nobody can measure"},
	},
	{name: "lives an hour ahead", hook: dated(time.Hour), want: map[string]string{FindingClock: "fail set it (NTP)"}},
	{
		name: "says gone, and keeps it",
		hook: func(_ *store, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			if isDelete(r) && r.Method == http.MethodDelete {
				w.WriteHeader(204)
				return true
			}
			return false
		},
		full:   map[string]string{FindingErase: "fail is left"},
		leaves: true,
	},
	{
		name: "lists no versions of what is new",
		hook: func(s *store, w http.ResponseWriter, r *http.Request, _ []byte) bool {
			query := r.URL.Query()
			if query.Has("versions") && strings.HasPrefix(query.Get("prefix"), ProbePrefix) {
				fmt.Fprint(w, "<ListVersionsResult/>")
				return true
			}
			return false
		},
		full:   map[string]string{FindingErase: "fail has no version"},
		leaves: true,
	},
	{
		name: "may not write", hook: refuseWrites(403, "AccessDenied", func(*http.Request) bool { return true }),
		full: map[string]string{FindingErase: "fail s3:PutObject"},
	},
	{
		name: "is to lock, and has no Object Lock", change: lockCatalogs,
		hook: refuse(404, "ObjectLockConfigurationNotFoundError", func(r *http.Request) bool { return r.URL.Query().Has("object-lock") }),
		want: map[string]string{FindingLocks: "fail set catalog-lock to none"},
	},
	{
		name: "is to lock, and may", change: lockCatalogs, hook: say("object-lock", lockEnabled),
		want: map[string]string{FindingLocks: "ok catalog/ can be locked for 30 days in GOVERNANCE mode"},
	},
	{
		name: "is to lock, and may not", change: lockCatalogs,
		hook: all(say("object-lock", lockEnabled), refuseWrites(403, "AccessDenied", isLocking)),
		want: map[string]string{FindingLocks: "fail s3:PutObjectRetention"},
	},
	{
		name: "is to lock, and cannot", change: lockCatalogs,
		hook: all(say("object-lock", lockEnabled), refuseWrites(400, "InvalidRequest", isLocking)),
		want: map[string]string{FindingLocks: "fail made with Object Lock"},
	},
}

const lockEnabled = "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled></ObjectLockConfiguration>"

func defaultLock(mode, period string) string {
	return "<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>" + mode +
		"</Mode>" + period + "</DefaultRetention></Rule></ObjectLockConfiguration>"
}

func lockCatalogs(o *Options) { o.Locks = map[string]Lock{"catalog": {Governance, 30}, "key": {}} }

func isLocking(r *http.Request) bool { return r.Header.Get("X-Amz-Object-Lock-Mode") != "" }

func isDelete(r *http.Request) bool {
	return r.Method == http.MethodDelete || r.URL.Query().Has("delete")
}

// A store either lets things go or is refused with one line that says what to
// do; and the archive in it is as before, as is what was there besides.
func TestDoctorCompact(t *testing.T) {
	for _, c := range compactDoctorCases {
		for _, full := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/full=%v", c.name, full), func(t *testing.T) {
				t.Parallel()
				s := newMemoryStore(t, map[bool]archive.Versioning{false: archive.Versioned}[c.plain])
				s.memory.Overwrite(archive.RootKey, []byte(root))
				s.hook = func(w http.ResponseWriter, r *http.Request, body []byte) bool {
					s.mu.Lock()
					defer s.mu.Unlock()
					return c.hook != nil && c.hook(s, w, r, body) || lockQuestions(s, w, r, body)
				}
				change := func(*Options) {}
				if c.change != nil {
					change = c.change
				}
				findings, err := DoctorCompact(t.Context(), s.open(t, "", change), full)
				if err != nil {
					t.Fatalf("no verdict: %v; found %v", err, findings)
				}
				want := c.want
				if full && c.full != nil {
					want = c.full
				}
				checkCompactFindings(t, findings, want, full)
				for v := range s.memory.Everything() {
					if v.Key != archive.RootKey && !(full && c.leaves) {
						t.Errorf("%+v is left", v)
					}
				}
			})
		}
	}
}

// lockQuestions are answered by a bucket with versions and without a lock.
func lockQuestions(s *store, w http.ResponseWriter, r *http.Request, body []byte) bool {
	switch query := r.URL.Query(); {
	case query.Has("object-lock"):
		answer(w, 404, "ObjectLockConfigurationNotFoundError")
	case query.Has("versioning"):
		fmt.Fprint(w, "<VersioningConfiguration/>")
	default:
		return false
	}
	return true
}

func checkCompactFindings(t *testing.T, findings []Finding, want map[string]string, full bool) {
	t.Helper()
	failed := false
	for _, f := range findings {
		failed = failed || f.Level == Fail
		level, words, named := strings.Cut(want[f.Name], " ")
		if want[f.Name] != "" && (string(f.Level) != level || named && !strings.Contains(f.Detail, words)) || want[f.Name] == "" && f.Level != OK {
			t.Errorf("found %+v, want %q", f, want[f.Name])
		}
	}
	names := []string{FindingList, FindingLock, FindingVersioning, FindingVersions, FindingDelete, FindingUploads, FindingClock}
	if full {
		names = append(names, FindingErase)
	}
	for name := range want {
		names = append(names, name)
	}
	for _, name := range names {
		if (!failed || want[name] != "") && !slices.ContainsFunc(findings, func(f Finding) bool { return f.Name == name }) {
			t.Errorf("nothing said about %s; found %+v", name, findings)
		}
	}
}

// A start of compact costs these requests, and no object.
func TestShortDoctorCompact(t *testing.T) {
	s := newMemoryStore(t, archive.Versioned)
	s.memory.Overwrite("p/"+archive.RootKey, []byte(root))
	s.hook = func(w http.ResponseWriter, r *http.Request, body []byte) bool { return lockQuestions(s, w, r, body) }
	b := s.open(t, "p")
	if _, err := DoctorCompact(t.Context(), b, false); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{
		"ListObjectsV2": 1, "GetObjectLockConfiguration": 1, "GetBucketVersioning": 1,
		"ListObjectVersions": 1, "DeleteObjects": 1, "ListMultipartUploads": 1, "HeadObject": 1,
	}
	if got := b.Requests(); !maps.Equal(got, want) {
		t.Errorf("requests = %v, want %v", got, want)
	}
}

// A store that is down gets no verdict, at whatever point it goes down.
func TestAStoreThatIsDownGetsNoVerdictOfCompact(t *testing.T) {
	for after := range 12 {
		s := newMemoryStore(t, archive.Versioned)
		s.memory.Overwrite(archive.RootKey, []byte(root))
		n := 0
		s.hook = func(w http.ResponseWriter, r *http.Request, body []byte) bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			if n++; n > after {
				answer(w, 503, "ServiceUnavailable")
				return true
			}
			return lockQuestions(s, w, r, body)
		}
		findings, err := DoctorCompact(t.Context(), s.open(t, "", func(o *Options) { o.Attempts = 1 }), true)
		if n > after && err == nil || Verdict(findings) != nil {
			t.Errorf("down after %d requests: %v, %v", after, findings, err)
		}
	}
}
