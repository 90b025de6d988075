package s3sink

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ledgerlake/ledgerlake/archive"
)

// A store in which two exporters could both move a cursor is refused, and so is one
// in which none could.
func TestDoctorExport(t *testing.T) {
	isSwap := func(r *http.Request) bool { return r.Method == http.MethodPut && r.Header.Get("If-Match") != "" }
	for name, c := range map[string]struct {
		hook hook
		want string // of the finding; "": all is well
	}{
		"as it should be": {},
		"keeps no If-Match": {func(s *store, w http.ResponseWriter, r *http.Request, body []byte) bool {
			if isSwap(r) {
				r.Header.Del("If-Match")
			}
			return false
		}, "of two exporters one would write over what the other has written"},
		"does not know If-Match":       {refuse(501, "NotImplemented", isSwap), "does not write with If-Match"},
		"answers a lost swap with 400": {refuseSecond(isSwap), "something else than 412"},
		"may not write":                {refuse(403, "AccessDenied", func(r *http.Request) bool { return r.Method == http.MethodPut }), "allow s3:PutObject on export/*"},
		"may not read": {refuse(403, "AccessDenied", func(r *http.Request) bool {
			return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, SwapProbe)
		}), "allow s3:GetObject"},
	} {
		s := newMemoryStore(t, archive.Unversioned)
		if c.hook != nil {
			s.hook = func(w http.ResponseWriter, r *http.Request, body []byte) bool { return c.hook(s, w, r, body) }
		}
		b := s.open(t, "archive")
		for range 2 { // the second one finds the probe of the first
			findings, err := DoctorExport(t.Context(), b)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			i := slices.IndexFunc(findings, func(f Finding) bool { return f.Name == FindingSwap })
			if i < 0 {
				t.Fatalf("%s: %+v", name, findings)
			}
			f := findings[i]
			if (f.Level == OK) != (c.want == "") || !strings.Contains(f.Detail, c.want) {
				t.Errorf("%s: %s %s", name, f.Level, f.Detail)
			}
		}
		for o, err := range s.memory.List(t.Context(), "", "") {
			if err != nil || o.Key != "archive/"+SwapProbe {
				t.Errorf("%s: it left %s, %v", name, o.Key, err)
			}
		}
	}
}

// A compactor that keeps manifests needs the same, at another place.
func TestDoctorManifests(t *testing.T) {
	s := newMemoryStore(t, archive.Unversioned)
	b := s.open(t, "archive")
	for range 2 {
		findings, err := DoctorManifests(t.Context(), b)
		if err != nil || len(findings) == 0 || findings[len(findings)-1].Name != FindingSwap || findings[len(findings)-1].Level != OK {
			t.Fatal(findings, err)
		}
	}
	for o, err := range s.memory.List(t.Context(), "", "") {
		if err != nil || o.Key != "archive/"+archive.ManifestProbe {
			t.Errorf("it left %s, %v", o.Key, err)
		}
	}
	s.hook = func(w http.ResponseWriter, r *http.Request, _ []byte) bool {
		return refuse(403, "AccessDenied", func(r *http.Request) bool { return r.Method == http.MethodPut })(s, w, r, nil)
	}
	findings, err := DoctorManifests(t.Context(), b)
	if err != nil || !strings.Contains(findings[len(findings)-1].Detail, "allow s3:PutObject on sql/*") {
		t.Error(findings, err)
	}
}

// refuseSecond answers 400 to what the store would answer 412.
func refuseSecond(is func(*http.Request) bool) hook {
	return func(s *store, w http.ResponseWriter, r *http.Request, _ []byte) bool {
		if !is(r) {
			return false
		}
		_, tag, err := s.memory.GetTagged(r.Context(), "archive/"+SwapProbe)
		if err == nil && tag != r.Header.Get("If-Match") {
			answer(w, 400, "InvalidRequest")
			return true
		}
		return false
	}
}
