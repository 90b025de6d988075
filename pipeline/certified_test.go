package pipeline_test

import (
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/pipeline"
)

// A start reads the certificate of whoever signed the newest anchor, and not
// those of all processes that there ever were.
func TestAStartReadsOneCertificate(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		long := newControlKey(t)
		var members []*sign.Signer
		for range 3 {
			m, err := sign.GenerateMember(rand.Reader, long.Name())
			if err != nil {
				t.Fatal(err)
			}
			members = append(members, m)
		}
		by := func(m *sign.Signer) func(*pipeline.Settings) {
			return func(s *pipeline.Settings) {
				signedBy(t, long)(s)
				s.AnchorTopic, s.Signers = "", func(time.Time) []note.Signer { return []note.Signer{m} }
			}
		}
		w.archivedWith(by(members[1]), calls("s", 0, 3))
		for _, m := range members {
			w.certify(long, m)
		}
		var mu sync.Mutex
		var asked []string
		w.bucket.set(func(op, key string) error {
			if mu.Lock(); strings.HasPrefix(key, "key/") {
				asked = append(asked, op+" "+key)
			}
			mu.Unlock()
			return nil
		}, nil)
		w.produce(0, calls("s", 3, 3)...)
		w.tether().ingest(2, by(members[2])).waitAndStop(6)
		if want := []string{"get " + sign.KeyNoteKey(members[1].VKey())}; !slices.Equal(asked, want) {
			t.Errorf("%q, want %q", asked, want)
		}
		w.wantProved(long)
	})
}
