package s3sink

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
)

// The keys of a deletion in these tests: two of which nothing is said, and what
// is said of the third, data/2, is the case's.
var deletedKeys = []string{"data/1", "data/2", "data/3"}

// A deleteCase is what a store says to a delete, and what is to come of it.
type deleteCase struct {
	name     string
	hook     hook
	key      string           // in place of data/2
	kept     error            // what data/2's error matches; nil: it goes. errAny: some error
	says     string           // part of the error
	requests map[string]int64 // without those that prepare
}

var errAny = errors.New("any")

var deleteCases = []deleteCase{
	{name: "all go", requests: map[string]int64{"DeleteObjects": 1}},
	{
		name: "one fails once inside a success", hook: failEntry("data/2", "InternalError", "We encountered an internal error", 1),
		requests: map[string]int64{"DeleteObjects": 2},
	},
	{
		name: "one is told to slow down for ever", hook: failEntry("data/2", "SlowDown", "Reduce your rate", -1),
		kept: errAny, says: "200 SlowDown", requests: map[string]int64{"DeleteObjects": 3},
	},
	{
		name: "one is not there", hook: failEntry("data/2", "NoSuchVersion", "", -1),
		requests: map[string]int64{"DeleteObjects": 1},
	},
	{
		name: "one may not be deleted", hook: all(failEntry("data/2", "AccessDenied", "", -1), deny("data/2", "AccessDenied", "Access Denied", nil)),
		kept: archive.ErrDenied, says: "403 AccessDenied",
		requests: map[string]int64{"DeleteObjects": 1, "DeleteObject": 1, "HeadObject": 1},
	},
	{
		name: "one is locked, and the store says so",
		hook: all(failEntry("data/2", "AccessDenied", "", -1), deny("data/2", "AccessDenied", "Access Denied because object protected by object lock.", nil)),
		kept: archive.ErrLocked, says: "object lock",
		requests: map[string]int64{"DeleteObjects": 1, "DeleteObject": 2}, // the second one past GOVERNANCE
	},
	{
		name: "one is locked as MinIO says it",
		hook: all(failEntry("data/2", "InvalidRequest", "", -1), deny("data/2", "InvalidRequest", "Object is WORM protected and cannot be overwritten", nil)),
		kept: archive.ErrLocked, says: "WORM", requests: map[string]int64{"DeleteObjects": 1, "DeleteObject": 2},
	},
	{
		name: "one is locked, and only a HEAD tells",
		hook: all(failEntry("data/2", "AccessDenied", "", -1), deny("data/2", "AccessDenied", "Access Denied", http.Header{
			"X-Amz-Object-Lock-Mode": {"COMPLIANCE"}, "X-Amz-Object-Lock-Retain-Until-Date": {"2031-05-06T00:00:00Z"},
		})),
		kept: archive.ErrLocked, says: "locked until 2031-05-06 in COMPLIANCE mode",
		requests: map[string]int64{"DeleteObjects": 1, "DeleteObject": 2, "HeadObject": 1},
	},
	{
		name: "one is under a legal hold of the store",
		hook: all(failEntry("data/2", "AccessDenied", "", -1), deny("data/2", "AccessDenied", "Access Denied", http.Header{"X-Amz-Object-Lock-Legal-Hold": {"ON"}})),
		kept: archive.ErrLocked, says: "legal hold",
		requests: map[string]int64{"DeleteObjects": 1, "DeleteObject": 2, "HeadObject": 1},
	},
	{
		name: "deletes want a device of one's own",
		hook: all(failEntry("data/2", "AccessDenied", "", -1), deny("data/2", "AccessDenied", "Mfa Authentication must be used for this request", nil)),
		kept: archive.ErrLocked, says: "Mfa", requests: map[string]int64{"DeleteObjects": 1, "DeleteObject": 2},
	},
	{
		name: "GOVERNANCE does not keep data", hook: all(failEntry("data/2", "AccessDenied", "", -1), governance("data/2")),
		requests: map[string]int64{"DeleteObjects": 1, "DeleteObject": 2},
	},
	{
		name: "GOVERNANCE keeps an anchor", key: "anchor/2", hook: all(failEntry("anchor/2", "AccessDenied", "", -1), governance("anchor/2")),
		kept: archive.ErrLocked, requests: map[string]int64{"DeleteObjects": 1, "DeleteObject": 1},
	},
	{
		name: "GOVERNANCE keeps a catalog", key: "catalog/2", hook: all(failEntry("catalog/2", "AccessDenied", "", -1), governance("catalog/2")),
		kept: archive.ErrLocked, requests: map[string]int64{"DeleteObjects": 1, "DeleteObject": 1},
	},
	{
		name: "the answer says nothing of one", hook: editAnswer(func(entries []entry) []entry { return slices.Delete(entries, 1, 2) }),
		requests: map[string]int64{"DeleteObjects": 1, "DeleteObject": 1},
	},
	{
		name: "the answer has no ids", hook: editAnswer(func(entries []entry) []entry {
			for i := range entries {
				entries[i].VersionID = ""
			}
			return entries
		}),
		requests: map[string]int64{"DeleteObjects": 1},
	},
	{
		name: "the answer is an error", hook: onMany(200, "InternalError", 1),
		requests: map[string]int64{"DeleteObjects": 2},
	},
	{
		name: "the store is away for a moment", hook: onMany(503, "SlowDown", 2),
		requests: map[string]int64{"DeleteObjects": 3},
	},
	{
		name: "the store is away", hook: onMany(503, "SlowDown", -1),
		kept: errAny, says: "503 SlowDown", requests: map[string]int64{"DeleteObjects": 3},
	},
	{
		name: "the store does not know DeleteObjects", hook: onMany(501, "NotImplemented", -1),
		requests: map[string]int64{"DeleteObjects": 1, "DeleteObject": 3},
	},
	{
		name: "the store refuses DeleteObjects", hook: onMany(400, "MissingContentMD5", -1),
		requests: map[string]int64{"DeleteObjects": 1, "DeleteObject": 3},
	},
	{
		name: "the reply is lost, and it was done",
		hook: func() hook {
			lost := false
			return func(s *store, w http.ResponseWriter, r *http.Request, body []byte) bool {
				if !r.URL.Query().Has("delete") || lost {
					return false
				}
				lost = true
				s.serveMemory(discard{}, r, "", body)
				cut()
				return true
			}
		}(),
		requests: map[string]int64{"DeleteObjects": 2},
	},
}

// A delete tells of every version by itself; what may pass is tried again, what
// is locked is told from what is forbidden, and nothing that may be there is
// called gone.
func TestDeleteReadsWhatIsSaidOfEachKey(t *testing.T) {
	for _, c := range deleteCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newMemoryStore(t, archive.Versioned)
			keys := slices.Clone(deletedKeys)
			if c.key != "" {
				keys[1] = c.key
			}
			slices.Sort(keys)
			for _, key := range keys {
				s.memory.Overwrite(key, []byte("old"))
			}
			b := s.open(t, "")
			doomed := versionsOf(t, b)
			before := b.Requests()
			if c.hook != nil {
				s.hook = func(w http.ResponseWriter, r *http.Request, body []byte) bool { return c.hook(s, w, r, body) }
			}
			kept := b.Delete(t.Context(), doomed)
			s.mu.Lock()
			s.hook = nil
			s.mu.Unlock()
			c.check(t, kept)
			c.checkStore(t, s, kept)
			if got := madeSince(b, before); !maps.Equal(got, c.requests) {
				t.Errorf("requests = %v, want %v", got, c.requests)
			}
		})
	}
}

func (c deleteCase) check(t *testing.T, kept []archive.Kept) {
	t.Helper()
	if c.kept == nil {
		if len(kept) > 0 {
			t.Errorf("kept are %+v, want none", kept)
		}
		return
	}
	for _, k := range kept {
		if c.name != "the store is away" && !strings.HasSuffix(k.Key, "/2") {
			t.Errorf("%s is kept as well: %v", k.Key, k.Err)
		}
		if c.kept != errAny && !errors.Is(k.Err, c.kept) {
			t.Errorf("%v does not match %v", k.Err, c.kept)
		}
		for _, other := range []error{archive.ErrLocked, archive.ErrDenied} {
			if other != c.kept && errors.Is(k.Err, other) {
				t.Errorf("%v matches %v", k.Err, other)
			}
		}
		if !strings.Contains(k.Err.Error(), c.says) || strings.Contains(k.Err.Error(), "\n") {
			t.Errorf("%q does not say %q on one line", k.Err, c.says)
		}
	}
	if len(kept) == 0 {
		t.Error("nothing is kept")
	}
}

// What is not kept is gone, with every version of it.
func (c deleteCase) checkStore(t *testing.T, s *store, kept []archive.Kept) {
	t.Helper()
	told := map[string]bool{}
	for _, k := range kept {
		told[k.Key+" "+k.ID] = true
	}
	for v := range s.memory.Everything() {
		if !told[v.Key+" "+v.ID] {
			t.Errorf("%+v is there, and was called gone", v)
		}
	}
}

func versionsOf(t *testing.T, b *Bucket) (all []archive.Version) {
	t.Helper()
	for v, err := range b.Versions(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

func madeSince(b *Bucket, before map[string]int64) map[string]int64 {
	made := b.Requests()
	for op, n := range before {
		if made[op] -= n; made[op] == 0 {
			delete(made, op)
		}
	}
	return made
}

// An entry of what DeleteObjects answers.
type entry struct {
	XMLName   xml.Name
	Key       string
	VersionID string `xml:"VersionId"`
	Code      string
	Message   string
}

// failEntry has one key fail inside an answer of success, so many times.
func failEntry(key, code, message string, times int) hook {
	return func(s *store, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if !r.URL.Query().Has("delete") || times == 0 {
			return false
		}
		times--
		var in struct {
			Objects []deletedKey `xml:"Object"`
		}
		if err := xml.Unmarshal(body, &in); err != nil {
			panic(err)
		}
		fmt.Fprint(w, "<DeleteResult>")
		for _, o := range in.Objects {
			if o.Key == key {
				fmt.Fprintf(w, "<Error><Key>%s</Key><VersionId>%s</VersionId><Code>%s</Code><Message>%s</Message></Error>", o.Key, o.VersionID, code, message)
				if code == "NoSuchVersion" {
					s.deleteMemory(r, o.Key, o.VersionID)
				}
				continue
			}
			s.deleteMemory(r, o.Key, o.VersionID)
			fmt.Fprintf(w, "<Deleted><Key>%s</Key><VersionId>%s</VersionId></Deleted>", o.Key, o.VersionID)
		}
		fmt.Fprint(w, "</DeleteResult>")
		return true
	}
}

// editAnswer does what is asked and tells it otherwise.
func editAnswer(edit func([]entry) []entry) hook {
	return func(s *store, w http.ResponseWriter, r *http.Request, body []byte) bool {
		if !r.URL.Query().Has("delete") {
			return false
		}
		var answer strings.Builder
		s.deleteMany(writer{&answer}, r, body)
		var out struct {
			Entries []entry `xml:",any"`
		}
		if err := xml.Unmarshal([]byte(answer.String()), &out); err != nil {
			panic(err)
		}
		fmt.Fprint(w, "<DeleteResult>")
		for _, e := range edit(out.Entries) {
			fmt.Fprintf(w, "<%s><Key>%s</Key>", e.XMLName.Local, e.Key)
			if e.VersionID != "" {
				fmt.Fprintf(w, "<VersionId>%s</VersionId>", e.VersionID)
			}
			fmt.Fprintf(w, "</%s>", e.XMLName.Local)
		}
		fmt.Fprint(w, "</DeleteResult>")
		return true
	}
}

// onMany answers DeleteObjects as a whole, so many times.
func onMany(status int, code string, times int) hook {
	return func(_ *store, w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if !r.URL.Query().Has("delete") || times == 0 {
			return false
		}
		times--
		answer(w, status, code)
		return true
	}
}

// deny refuses the deletes of one key, and says to a HEAD what it is told to.
func deny(key, code, message string, lock http.Header) hook {
	return func(_ *store, w http.ResponseWriter, r *http.Request, _ []byte) bool {
		switch {
		case !strings.HasSuffix(r.URL.Path, key):
		case r.Method == http.MethodDelete:
			status := 403
			if code == "InvalidRequest" {
				status = 400
			}
			answerWith(w, status, code, message)
			return true
		case r.Method == http.MethodHead:
			maps.Copy(w.Header(), lock)
			return true
		}
		return false
	}
}

// governance keeps one key from whoever does not ask to bypass it.
func governance(key string) hook {
	refuse := deny(key, "AccessDenied", "Access Denied because object protected by object lock.", nil)
	return func(s *store, w http.ResponseWriter, r *http.Request, body []byte) bool {
		return r.Header.Get("X-Amz-Bypass-Governance-Retention") != "true" && refuse(s, w, r, body)
	}
}

func all(hooks ...hook) hook {
	return func(s *store, w http.ResponseWriter, r *http.Request, body []byte) bool {
		return slices.ContainsFunc(hooks, func(h hook) bool { return h(s, w, r, body) })
	}
}

// writer and discard are answers that do not go out.
type writer struct{ io.Writer }

func (writer) Header() http.Header { return http.Header{} }
func (writer) WriteHeader(int)     {}

type discard struct{}

func (discard) Header() http.Header         { return http.Header{} }
func (discard) WriteHeader(int)             {}
func (discard) Write(p []byte) (int, error) { return len(p), nil }

// What a store was once found not to know is not asked again.
func TestDeleteRemembersWhatTheStoreDoesNotKnow(t *testing.T) {
	s := newMemoryStore(t, archive.Versioned)
	refuse := onMany(501, "NotImplemented", -1)
	s.hook = func(w http.ResponseWriter, r *http.Request, body []byte) bool { return refuse(s, w, r, body) }
	b := s.open(t, "")
	for range 2 {
		for _, key := range deletedKeys {
			s.memory.Overwrite(key, nil)
		}
		if kept := b.Delete(t.Context(), versionsOf(t, b)); len(kept) > 0 {
			t.Errorf("kept: %+v", kept)
		}
	}
	if got := b.Requests(); got["DeleteObjects"] != 1 || got["DeleteObject"] != 6 {
		t.Errorf("requests = %v; want one DeleteObjects in vain, and six deletes", got)
	}
}

// A store that keeps versions without listing them puts a marker above what is
// deleted. That is not gone.
func TestDeleteIsNotFooledByAMarker(t *testing.T) {
	s := newMemoryStore(t, archive.Versioned)
	s.hook = func(w http.ResponseWriter, r *http.Request, body []byte) bool {
		switch {
		case r.URL.Query().Has("versions"):
			answer(w, 501, "NotImplemented")
		case r.Method == http.MethodDelete:
			w.Header().Set("X-Amz-Delete-Marker", "true")
			w.Header().Set("X-Amz-Version-Id", "v9")
			w.WriteHeader(204)
		case r.URL.Query().Has("delete"):
			fmt.Fprint(w, "<DeleteResult>")
			for _, key := range deletedKeys {
				fmt.Fprintf(w, "<Deleted><Key>%s</Key><DeleteMarker>true</DeleteMarker><DeleteMarkerVersionId>v9</DeleteMarkerVersionId></Deleted>", key)
			}
			fmt.Fprint(w, "</DeleteResult>")
		default:
			return false
		}
		return true
	}
	for _, key := range deletedKeys {
		s.memory.Overwrite(key, []byte("old"))
	}
	b := s.open(t, "")
	doomed := versionsOf(t, b)
	for _, batch := range [][]archive.Version{doomed[:1], doomed} {
		kept := b.Delete(t.Context(), batch)
		if len(kept) != len(batch) || !strings.Contains(kept[0].Err.Error(), "keeps versions") {
			t.Errorf("kept are %+v; want all %d, because of the marker", kept, len(batch))
		}
	}
}

// A thousand fit into a request, and each is told of.
func TestDeleteGoesByBatches(t *testing.T) {
	s := newMemoryStore(t, archive.Versioned)
	for i := range 2500 {
		s.memory.Overwrite(fmt.Sprintf("data/%04d", i), nil)
	}
	for _, key := range []string{"data/0000", "data/0999", "data/1000", "data/2499"} {
		s.memory.Lock(key, true)
	}
	b := s.open(t, "")
	kept := b.Delete(t.Context(), versionsOf(t, b))
	var keys []string
	for _, k := range kept {
		keys = append(keys, k.Key)
	}
	if want := "data/0000 data/0999 data/1000 data/2499"; strings.Join(keys, " ") != want {
		t.Errorf("kept are %q, want %s", keys, want)
	}
	if n := b.Requests()["DeleteObjects"]; n != 3 {
		t.Errorf("%d DeleteObjects, want 3", n)
	}
	if left := versionsOf(t, b); len(left) != 4 {
		t.Errorf("%d versions are left, want 4", len(left))
	}
}
