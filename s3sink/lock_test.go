package s3sink

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ledgerlake/ledgerlake/archive"
)

// Only what holds no payload is locked, for the days that were asked for by the
// clock that was handed in, and each PUT says so itself.
func TestCreateLocksFoldersThatMayBe(t *testing.T) {
	s := newMemoryStore(t, archive.Versioned)
	said := map[string][2]string{}
	s.hook = func(_ http.ResponseWriter, r *http.Request, _ []byte) bool {
		if r.Method == http.MethodPut {
			said[strings.TrimPrefix(r.URL.Path, "/bucket/p/")] = [2]string{r.Header.Get("X-Amz-Object-Lock-Mode"), r.Header.Get("X-Amz-Object-Lock-Retain-Until-Date")}
			if r.Header.Get("X-Amz-Object-Lock-Mode") != "" && !hasAmazonChecksum(r) {
				t.Error("a PUT with a lock has no checksum, which S3 refuses")
			}
		}
		return false
	}
	b := s.open(t, "p", func(o *Options) {
		o.Locks = map[string]Lock{"anchor": {Governance, 10}, "catalog": {Compliance, 3650}, "key": {}}
		o.Now = func() time.Time { return time.Date(2026, 2, 27, 23, 59, 59, 999, time.FixedZone("", 3600)) }
	})
	want := map[string][2]string{
		"anchor/t/T/00000/0.note":  {"GOVERNANCE", "2026-03-09T22:59:59Z"},
		"catalog/t/T/00000/0.note": {"COMPLIANCE", "2036-02-25T22:59:59Z"},
		"key/0.note":               {}, "ledgerlake.json": {}, "log/t/T/00000/0.parquet": {}, "data/anchor/x": {}, "anchor": {}, "anchored/x": {},
	}
	for key := range want {
		if _, err := b.Create(t.Context(), key, []byte(key)); err != nil {
			t.Fatal(err)
		}
		if said[key] != want[key] {
			t.Errorf("%s is created with %q, want %q", key, said[key], want[key])
		}
	}
}

// A lock on what may have to be erased, or that no store takes, is refused
// before anything is written.
func TestLocksThatAreRefused(t *testing.T) {
	for says, change := range map[string]func(*Options){
		"may have to be erased": func(o *Options) { o.Locks = map[string]Lock{"data": {Compliance, 1}} },
		"objects of log/":       func(o *Options) { o.Locks = map[string]Lock{"log": {Governance, 1}} },
		"0 days":                func(o *Options) { o.Locks = map[string]Lock{"anchor": {Mode: Governance}} },
		"36501 days":            func(o *Options) { o.Locks = map[string]Lock{"anchor": {Governance, 36501}} },
		`mode "FOREVER"`:        func(o *Options) { o.Locks = map[string]Lock{"anchor": {"FOREVER", 1}} },
		"without a checksum": func(o *Options) {
			o.Checksum, o.Locks = NoChecksum, map[string]Lock{"key": {Governance, 1}}
		},
	} {
		o := Options{Endpoint: "http://127.0.0.1:1", AccessKey: "key", SecretKey: "secret"}
		change(&o)
		if _, err := Open(t.Context(), "s3://bucket", o); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error = %v, want one that says %q", err, says)
		}
	}
}

func TestLockModes(t *testing.T) {
	for _, text := range []string{"none", "governance", "compliance"} {
		m, err := ParseLockMode(text)
		if err != nil || m.String() != text {
			t.Errorf("%s is read as %q, %v", text, m, err)
		}
	}
	for _, text := range []string{"", "GOVERNANCE", "forever"} {
		if m, err := ParseLockMode(text); err == nil {
			t.Errorf("%q is read as %q", text, m)
		}
	}
}
